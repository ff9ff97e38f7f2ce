"""Whether a command of the documentation is one that exists, with the options that it is given."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from st_paragram.cli.main import COMMANDS, parse

ROOT = Path(__file__).parents[2]


class _AcceptedError(BaseException):
    """Raised when a script has read its options."""


def problem(words: list[str]) -> str | None:
    """What is wrong with a command; None if it can be given, or is of a program of others."""
    name, *given = words
    ours = {"st-paragram": _command, "python": _python}
    return ours[name](given) if name in ours else None


def _command(words: list[str]) -> str | None:
    if words in (["--help"], ["--version"]):
        return None
    if words[0] not in COMMANDS:
        return f"no command {words[0]}"
    return _errors_of(lambda: parse(words))


def _errors_of(read: Callable[[], object]) -> str | None:
    """What a parser complains about; `--help` and `--version` end it without a complaint."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            read()
        except SystemExit as ended:
            return said.getvalue().strip().split("\n")[-1] if ended.code else None
        except _AcceptedError:
            return None
    return None


def _python(words: list[str]) -> str | None:
    if words[0] == "-m":
        return None if importlib.util.find_spec(words[1]) else f"no module {words[1]}"
    if words[0] == "-c":
        compile(words[1], "-c", "exec")
        return None
    if not (ROOT / words[0]).is_file():
        return f"no script {words[0]}"
    read_options = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, *given: object, **named: object) -> None:
        read_options(self, *given, **named)  # type: ignore[call-overload]
        raise _AcceptedError  # nothing of a script runs behind its options

    def parse_command(words: list[str]) -> None:
        parse(words)
        raise _AcceptedError

    path = ROOT / words[0]
    with (
        mock.patch.object(sys, "argv", [str(path), *words[1:]]),
        mock.patch.object(sys, "path", [str(path.parent), *sys.path]),
        mock.patch.object(argparse.ArgumentParser, "parse_args", parse_args),
        mock.patch("st_paragram.cli.main.parse", parse_command),
    ):
        return _errors_of(lambda: runpy.run_path(str(path), run_name="__main__"))
