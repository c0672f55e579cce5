"""Convert model files of version 1 of the format to version 2: `python experiments/convert_models.py MODEL...`.

Version 2 says the kind of a model in one place, keeps its clusters beside it, and calls settings by their new names.
The arrays stay as they are, byte for byte. Files are replaced; an interruption leaves the old one.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from headway.atomic import write_file

KINDS = {"arc": "arc", "automata": "higher-order", "grammar": "grammar"}
SETTINGS = {"trainings": "runs", "threshold": "prune_threshold"}


def converted(data: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a model in version 2."""
    data = {**data, "headway": 2}
    if data["kind"] == "coreference model":
        return {**data, "kind": "coreference"}
    data["kind"] = KINDS[data.pop("model")]
    data["clusters"] = data["coder"].pop("clusters")
    if "trust" in data:
        data["calibration"] = data.pop("trust")
    settings = data["about"].get("settings", {})
    data["about"] = {**data["about"], "settings": {SETTINGS.get(name, name): each for name, each in settings.items()}}
    return data


def convert(path: Path) -> None:
    """Rewrite a model file."""
    draft = path.with_name(f".{path.name}.version2")
    try:
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(draft, "w") as new:
            for info in old.infolist():
                content = old.read(info)
                if info.filename == "headway.json":
                    content = json.dumps(converted(json.loads(content)), ensure_ascii=False).encode()
                new.writestr(info, content, compresslevel=4)
        write_file(path, draft.read_bytes())
    finally:
        draft.unlink(missing_ok=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        convert(Path(name))
        print(f"{name}: converted")
