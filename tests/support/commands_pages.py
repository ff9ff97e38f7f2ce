"""docs/commands.md and docs/commands/*.md, built from the commands.

`PYTHONPATH=tests python -m support.commands_pages` writes them.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

from st_paragram.cli.main import COMMANDS, build_parser

DOCS = Path(__file__).parents[2] / "docs"
_INDEX, _FOLDER = "commands.md", "commands"
_INTRODUCTION = """# All commands

Every command has a page with examples and options. `st-paragram COMMAND --help` prints the same in the terminal.
A command ends with status 0 if all went well, 1 with one line on stderr if it refuses something, 2 if its options are
wrong, and 130 after Ctrl-C.

<!-- Made by `make docs` from the commands: change their files in st_paragram/cli, not this page. -->
"""
_SHARED = """## Shared options

These options mean the same wherever a command has them; its page only names them.
"""
_COMMANDS_WITH_SHARED = 4  # that have an option with the same words
_HEADER = ["| option | what it is |", "| --- | --- |"]


def pages() -> dict[str, str]:
    """Text of each page by its path below docs."""
    parsers = {name: subparsers(build_parser(name))[name] for name in COMMANDS}
    shared = _shared(parsers)
    overview = ["| command | what it is for |", "| --- | --- |"]
    overview += [f"| [`{name}`]({_FOLDER}/{name}.md) | {use} |" for name, use in COMMANDS.items()]
    made = {_INDEX: "\n".join([_INTRODUCTION, *overview, "", _SHARED, *_HEADER, *shared, ""])}
    return made | {f"{_FOLDER}/{name}.md": _command(name, parser, shared) for name, parser in parsers.items()}


def _shared(parsers: dict[str, argparse.ArgumentParser]) -> list[str]:
    """Rows of the options that several commands have with the same words."""
    sections = [each for parser in parsers.values() for each in (parser, *subparsers(parser).values())]
    counts = Counter(_row(action, "COMMAND") for parser in sections for action in _options(parser))
    often = [row for row, count in counts.most_common() if count >= _COMMANDS_WITH_SHARED and row.startswith("| `--")]
    return sorted({row.split("`")[1]: row for row in reversed(often)}.values())  # of each option the commonest words


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Subcommands of a parser by name; empty if there are none."""
    kinds = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    found = dict(kinds[0].choices) if kinds else {}
    for inner in found.values():
        if hasattr(inner, "fill"):  # with options that it gets when it is first used
            inner.fill()
    return found


def _command(name: str, parser: argparse.ArgumentParser, shared: list[str]) -> str:
    lines = _section(parser, f"# st-paragram {name}", COMMANDS[name], shared)
    for below, inner in subparsers(parser).items():
        lines += ["", *_section(inner, f"## st-paragram {name} {below}", "", shared)]
    return "\n".join([*lines, ""])


def _section(parser: argparse.ArgumentParser, title: str, purpose: str, shared: list[str]) -> list[str]:
    said = (parser.description or f"{purpose[:1].upper()}{purpose[1:]}.").strip()
    lines = [title, "", *_prose(said)]
    if parser.epilog:
        lines += ["", *_prose(parser.epilog.strip("\n"))]
    rows = {_row(action, title.lstrip("# ")): action for action in _options(parser)}
    general = {_row(action, "COMMAND"): action for action in _options(parser)}
    common = [action.option_strings[-1] for row, action in general.items() if row in shared]
    if own := [row for row, action in rows.items() if not set(action.option_strings) & set(common)]:
        lines += ["", *_HEADER, *own]
    if common:
        named = ", ".join(f"`{name}`" for name in common)
        lines += ["", f"It also has these [shared options](../{_INDEX}#shared-options): {named}."]
    return lines


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if _is_shown(action)]


def _prose(text: str) -> list[str]:
    """Text of a command's help: lines that are indented, and calls of the command, are code."""
    lines: list[str] = []
    for line in text.split("\n"):
        code = bool(line.strip()) and (line.startswith("  ") or line.startswith("st-paragram "))
        before = bool(lines) and lines[-1].startswith("    ")
        if lines and lines[-1] and code != before and line.strip():
            lines.append("")
        lines.append(f"    {line.strip()}" if code else line if before else _escaped(line))
    return lines


def _is_shown(action: argparse.Action) -> bool:
    hidden = isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    return not hidden and action.help != argparse.SUPPRESS


def _row(action: argparse.Action, prog: str) -> str:
    names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{_value(action)}`"
    if action.option_strings and action.nargs != 0:
        names += f" `{_value(action)}`"
    needed = " (required)" if action.required and action.option_strings else ""
    said = _escaped(" ".join((action.help or "").split()) % (vars(action) | {"prog": prog}))
    return f"| {names}{needed} | {said} |"


def _value(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    if action.choices is not None and action.metavar is None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    shown = value if isinstance(value, str) else " ".join(value)
    shown = shown.replace("|", " or ")  # a bar would end a cell of the table
    many = {"*": f"[{shown} ...]", "+": f"{shown} [{shown} ...]", "?": f"[{shown}]"}
    if isinstance(action.nargs, int) and isinstance(value, str):
        return " ".join([shown] * action.nargs)
    return many.get(str(action.nargs), shown)


def _escaped(text: str) -> str:
    """Text with options as code, and with the signs escaped that Markdown would interpret."""
    parts = re.split(r"(`[^`]*`|(?<![\w-])--[a-z][\w-]*)", text)
    return "".join(_as_code(part) if place % 2 else _plain(part) for place, part in enumerate(parts))


def _as_code(part: str) -> str:
    return part if part.startswith("`") else f"`{part}`"


def _plain(text: str) -> str:
    return re.sub(r"([|<>*_\[\]])", r"\\\1", text)


def main() -> None:
    """Write all pages."""
    (DOCS / _FOLDER).mkdir(exist_ok=True)
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
