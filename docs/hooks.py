"""What the site takes from the repository at build time: the help of all commands, and the results that pages link to.

`<!-- help -->` in a page is replaced by the help of all commands. Links that leave docs/ (`../experiments/...`) are
written for readers of the repository; the site has the files they name, too, and the links are changed to lead there.
So are the links from these files back to docs/.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

REPOSITORY = Path(__file__).resolve().parent.parent
SHOWN = (
    "benchmarks/results/*.md",
    "benchmarks/results/english_fast.json",
    "experiments/*/tables.md",
    "experiments/*/*/tables.md",
    "experiments/*/*.svg",
    "experiments/english/README.md",
    "experiments/english/results/en*.json",
    "experiments/english/results/sentence-ends-dev.json",
    "experiments/english/results/splitter-*.json",
    "experiments/README.md",
    "experiments/portuguese/README.md",
    "experiments/portuguese/results.json",
    "experiments/segmentation/README.md",
)

_HELP = "<!-- help -->"
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+)((?:benchmarks|experiments)/[^)#\s]*)")
_BACK = re.compile(r"\]\(((?:\.\./)+)docs/")


def on_files(files: Files, config: Any) -> Files:
    """Add the results that are committed outside docs/."""
    for pattern in SHOWN:
        for path in sorted(REPOSITORY.glob(pattern)):
            name = path.relative_to(REPOSITORY).as_posix()
            files.append(File(name, str(REPOSITORY), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Insert the help, and change links into the repository: the site does not have the level docs/."""
    if _HELP in markdown:
        markdown = markdown.replace(_HELP, commands())
    if page.file.src_uri.startswith(("benchmarks/", "experiments/")):
        return _BACK.sub(r"](\1", markdown)
    return _OUTSIDE.sub(lambda link: f"]({link[1].removeprefix('../')}{link[2]}", markdown)


def commands() -> str:
    """The output of `headway --help` and of every command's `--help`."""
    import typer
    from typer.testing import CliRunner

    from headway.cli.app import app

    group = typer.main.get_command(app)
    names: list[str] = sorted(group.commands)  # type: ignore[attr-defined]
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    sections = []
    below = [[name, inner] for name in names for inner in getattr(group.commands[name], "commands", ())]  # type: ignore[attr-defined]
    for words in sorted([[], *([name] for name in names), *below]):
        shown = runner.invoke(app, [*words, "--help"], prog_name="headway", terminal_width=100)
        if shown.exit_code != 0:
            raise RuntimeError(f"headway {' '.join(words)} --help failed: {shown.output}")
        sections.append(f"## {' '.join(['headway', *words])}\n\n```text\n{shown.output.rstrip()}\n```\n")
    return "\n".join(sections)
