"""The page `commands.md`: the help of every command (a hook of MkDocs)."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from st_paragram.cli.main import COMMANDS, build_parser

_INTRODUCTION = """# All commands

`st-paragram COMMAND --help` prints the same in the terminal. A command ends with status 0 if all went well, 1 with one
line on stderr if it refuses something, 2 if its options are wrong, and 130 after Ctrl-C.
In every command, the model is the first argument or `--model NAME`: `embed p-sp-es lines.txt`, `serve --model p-sp-es`.
"""


def parsers_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Subcommands of a parser by name."""
    nested = [
        action.choices
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return {name: found for some in nested for name, found in some.items()}


def helps() -> Iterator[tuple[str, str]]:
    """Each command, or kind of a command, and its help."""
    for name in COMMANDS:
        parser = parsers_of(build_parser(name))[name]
        yield name, parser.format_help()
        yield from (
            (f"{name} {kind}", inner.format_help()) for kind, inner in parsers_of(parser).items()
        )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    os.environ["COLUMNS"] = "88"
    sections = [f"## st-paragram {name}\n\n```text\n{text}```\n" for name, text in helps()]
    files.append(
        File.generated(config, "commands.md", content="\n".join([_INTRODUCTION, *sections]))
    )
    return files
