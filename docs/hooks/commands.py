"""The page `commands.md`: the help of every command (a hook of MkDocs)."""

from __future__ import annotations

import os
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from st_paragram.cli.main import COMMANDS, build_parser
from st_paragram.cli.train import KINDS

_INTRODUCTION = """# All commands

`st-paragram COMMAND --help` prints the same in the terminal. A command ends with status 0 if all
went well, 1 with one line on stderr if it refuses something, 2 if its options are wrong, and 130
after Ctrl-C. In every command, the model is the first argument or `--model NAME`:
`embed p-sp-es lines.txt`, `serve --model p-sp-es`.
"""


def helps() -> Iterator[tuple[str, str]]:
    """Each command, or kind of a command, and its help."""
    for name in COMMANDS:
        yield name, build_parser(name).format_help()
    for kind in KINDS:
        yield f"train {kind}", build_parser("train", kind).format_help()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    os.environ["COLUMNS"] = "88"
    sections = [f"## st-paragram {name}\n\n```text\n{text}```\n" for name, text in helps()]
    files.append(
        File.generated(config, "commands.md", content="\n".join([_INTRODUCTION, *sections]))
    )
    return files
