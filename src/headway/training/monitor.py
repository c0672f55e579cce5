"""The signature of a training: what a checkpoint must agree with before training resumes from it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path

from headway.features.templates import load_templates
from headway.training.settings import Settings


def signature(settings: Settings, *data: str) -> str:
    """Data, templates and settings in one line of text; the number of passes may change."""
    options = {name: value for name, value in asdict(settings).items() if name not in ("epochs", "patience")}
    tables = [settings.templates] if settings.parts is None else [settings.templates, settings.parts]
    table = "\n".join(str(template) for name in tables for template in load_templates(name)).encode()
    clusters = b"" if settings.clusters is None else _content(settings.clusters)
    return f"{' '.join(data)} {hashlib.sha256(table + clusters).hexdigest()[:16]} {sorted(options.items())}"


def _content(path: str) -> bytes:
    """The content of a file; nothing if it is gone, as it may be when training resumes."""
    return Path(path).read_bytes() if Path(path).is_file() else b""
