"""Whether a command of the documentation is one that exists, with the options that it is given."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from pathlib import Path
from unittest import mock

from st_paragram.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
#: Programs that are not ours: nothing is asked about them.
OTHERS = {"cat", "cd", "cmp", "curl", "docker", "git", "gunzip", "head", "jupyter", "less", "ls", "mkdir", "mv"}
OTHERS |= {"mount", "mtdata", "node", "npm", "paste", "pre-commit", "ray", "rm", "sha256sum", "sort", "source", "tar"}
OTHERS |= {"unzip", "wget", "wc", "xz", "zip", "export", "hf", "echo", "printf", "time", "nproc", "uv", "chroot"}
OTHERS |= {"debootstrap"}


class _AcceptedError(BaseException):
    """Raised when a script has read its options."""


def problem(words: list[str]) -> str | None:
    """What is wrong with a command; None if it is one that can be given."""
    name, *given = words
    name = re.sub(r"^(?:\S*/bin/)?(python3?|pip|st-paragram)$", r"\1", name)
    known: dict[str, Callable[[list[str]], str | None]] = {
        "st-paragram": _parsed,
        "python": _python,
        "python3": _python,
        "make": _made,
        "pip": _installed,
    }
    if name in OTHERS:
        return None
    return known[name](given) if name in known else f"{name}: no program that the tests know"


def mention_problem(words: list[str]) -> str | None:
    """What is wrong with a command in the middle of a sentence, which may leave required options out."""
    if len(words) == 1 or {"COMMAND", "KIND", "..."}.intersection(words[1:3]) or words[1].endswith("..."):
        return None
    words = [word.partition("|")[0] for word in words]  # of A|B|C any will do
    if problem(words) is None:
        return None
    with _lenient():
        return problem(words)


def _parsed(words: list[str]) -> str | None:
    called = next((word for word in words if not word.startswith("-")), None)
    if called not in COMMANDS and words not in (["--help"], ["--version"]):
        return f"no command {called}"
    return _errors_of(lambda: build_parser(called).parse_args(words))


def _errors_of(parse: Callable[[], object]) -> str | None:
    """What a parser complains about; `--help` and `--version` end it without a complaint."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            parse()
        except SystemExit as ended:
            return said.getvalue().strip().split("\n")[-1] if ended.code else None
        except _AcceptedError:
            return None
    return None


@contextlib.contextmanager
def _lenient() -> Iterator[None]:
    """Parsers miss no argument."""
    parse = argparse.ArgumentParser.parse_known_args

    def parse_known_args(self: argparse.ArgumentParser, *given: object, **named: object) -> object:
        for action in self._actions:
            action.required = False
            action.type = None
            if action.nargs is None:
                action.nargs = "?" if action.option_strings or action.choices else "*"
        for group in self._mutually_exclusive_groups:
            group.required = False
        return parse(self, *given, **named)  # type: ignore[arg-type]

    with mock.patch.object(argparse.ArgumentParser, "parse_known_args", parse_known_args):
        yield


def _python(words: list[str]) -> str | None:
    if words[0] == "-m":
        return None if importlib.util.find_spec(words[1]) else f"no module {words[1]}"
    if words[0] == "-c":
        compile(words[1], "-c", "exec")
        return None
    if not (ROOT / words[0]).is_file():
        return f"no script {words[0]}"
    return _script(words[0], words[1:])


def _script(script: str, words: list[str]) -> str | None:
    """What a script of this repository says to its options; nothing of it runs behind that."""
    parse = argparse.ArgumentParser.parse_args

    def parse_args(self: argparse.ArgumentParser, *given: object, **named: object) -> None:
        parse(self, *given, **named)  # type: ignore[call-overload]
        raise _AcceptedError

    path = str(ROOT / script)
    with (
        mock.patch.object(sys, "argv", [path, *words]),
        mock.patch.object(sys, "path", [str((ROOT / script).parent), *sys.path]),
        mock.patch.object(argparse.ArgumentParser, "parse_args", parse_args),
    ):
        return _errors_of(lambda: runpy.run_path(path, run_name="__main__"))


def _made(words: list[str]) -> str | None:
    targets = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    unknown = [word for word in words if "=" not in word and word not in targets]
    return f"no target {unknown} in the Makefile" if unknown else None


def _installed(words: list[str]) -> str | None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    named = [found for word in words for found in re.findall(r"(?:^\.|st_paragram)\[(.+)\]", word)]
    asked = [extra for names in named for extra in names.split(",")]
    unknown = [extra for extra in asked if extra not in extras]
    return f"no extra {unknown} in setup.cfg" if unknown else None
