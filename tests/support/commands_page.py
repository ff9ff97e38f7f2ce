"""docs/commands.md, made of what the commands say of themselves: `PYTHONPATH=tests python -m support.commands_page`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from st_paragram.cli.main import COMMANDS, build_parser

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
INTRODUCTION = """# Command line

Every command, its examples and its options. `st-paragram COMMAND --help` prints the same in the terminal.
A command ends with status 0 if all went well, 1 with one line on stderr if it refuses something, 2 if its options are
wrong, and 130 after Ctrl-C.

<!-- Made by `make docs` of the commands themselves: change their files in st_paragram/cli, not this page. -->
"""


def page() -> str:
    """The whole page as Markdown."""
    overview = ["| command | what it is for |", "| --- | --- |"]
    overview += [f"| [`{name}`](#{_anchor(f'st-paragram {name}')}) | {use} |" for name, use in COMMANDS.items()]
    return "\n".join([INTRODUCTION, *overview, *(line for name in COMMANDS for line in _command(name)), ""])


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Subcommands of a parser by name; empty if there are none."""
    kinds = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    found = dict(kinds[0].choices) if kinds else {}
    for inner in found.values():
        if hasattr(inner, "fill"):  # with options that it gets when it is first used
            inner.fill()
    return found


def _command(name: str) -> list[str]:
    parser = subparsers(build_parser(name))[name]
    lines = _section(parser, f"st-paragram {name}", "##", COMMANDS[name])
    for below, inner in subparsers(parser).items():
        lines += _section(inner, f"st-paragram {name} {below}", "###", "")
    return lines


def _section(parser: argparse.ArgumentParser, title: str, level: str, purpose: str) -> list[str]:
    said = (parser.description or f"{purpose[:1].upper()}{purpose[1:]}.").strip()
    lines = ["", f"{level} {title}", "", *_prose(said)]
    if parser.epilog:
        lines += ["", *_prose(parser.epilog.strip("\n"))]
    options = [action for action in parser._actions if _is_shown(action)]
    if options:
        lines += ["", "| option | what it is |", "| --- | --- |", *(_row(option, title) for option in options)]
    return lines


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
    """Text whose signs Markdown would read as its own."""
    return re.sub(r"([|<>*_\[\]])", r"\\\1", text)


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
