"""The command `st-paragram`: one file per command, imported when the command is called.

A command's file has `DESCRIPTION`, `EPILOG` (examples; may be empty), `add_options(parser)` and
`run(arguments)`, which returns the exit status. It imports nothing heavy at the top, so that
`--help` is fast. `train` has `KINDS`, and sets the parser's description and epilog itself.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import re
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from st_paragram.cli.overview import GROUPS, START, overview
from st_paragram.core.extras import installed_version, missing_from_light
from st_paragram.core.files import is_full_disk
from st_paragram.errors import ParagramError, one_line

# Settings need no pydantic plugin, and searching the installed packages for plugins takes 20 ms.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

#: Command -> one line of help.
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}

_HELP = ("-h", "--help")
# Option in a usage that may be left out, with its value, which may have brackets
_OPTION = re.compile(r" \[-(?:[^\[\]]|\[[^\[\]]*\])*\]")
_NEED_TORCH = ("train", "towers", "generate", "import", "push")
_CHATTY = ("faiss", "httpx", "httpx2", "sentence_transformers", "transformers", "accelerate")


class CommandParser(argparse.ArgumentParser):
    """The parser of one command, which names the option that a misspelled one may mean."""

    words: Sequence[str] = ()  # those that are parsed

    def plain_help(self) -> str:
        """Return the help without colors."""
        return _without_colors(self.format_help())

    def short_usage(self) -> str:
        """Return the usage in one line, with only the arguments and options that are required."""
        usage = " ".join(_without_colors(self.format_usage()).split())
        required = _OPTION.sub("", usage)
        if required == usage:
            return usage
        return required.replace(self.prog, f"{self.prog} [options]", 1)

    def error(self, message: str) -> NoReturn:
        """End with a line of usage, and the message with a suggestion."""
        options = re.findall(r"^  (?:-\w.*?, )?(--[\w-]+)", self.plain_help(), re.MULTILINE)
        for word in self.words:
            name = word.partition("=")[0]
            is_known = any(option.startswith(name) for option in options)
            if name.startswith("--") and not is_known and not message.startswith("argument "):
                message += _suggestion(f"; there is no {name}", name, options)
                break
        self.exit(2, f"{self.short_usage()}\n{self.prog}: error: {message}\n")


def _without_colors(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def build_parser(command: str, kind: str | None = None) -> CommandParser:
    """Make the parser of a command; `kind` is the kind of training."""
    module = _module(command)
    program = " ".join(filter(None, ["st-paragram", command, kind]))
    formatter = argparse.RawDescriptionHelpFormatter
    parser = CommandParser(program, formatter_class=formatter)
    parser.description = module.DESCRIPTION
    parser.epilog = module.EPILOG
    if kind is None:
        module.add_options(parser)
    else:
        module.KINDS[kind].add_options(parser)
        parser.set_defaults(kind=kind)
    parser.set_defaults(command=command)
    columns = shutil.get_terminal_size().columns
    parser.description = textwrap.fill(str(parser.description), columns - 2)
    return parser


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command and its options, which may stand between its arguments."""
    command = words[0]
    words = list(words[1:])
    if command not in COMMANDS:
        seen = f"there is no command {command!r}"
        _overview_parser().error(
            _suggestion(seen, command, COMMANDS) or f"{seen}; `st-paragram --help` lists them"
        )
    kinds = getattr(_module(command), "KINDS", None)
    if kinds is None:
        parser = build_parser(command)
    else:
        kind = _kind(command, words)
        parser = build_parser(command, kind)
    from st_paragram.cli.options import with_model_in_place

    words = with_model_in_place(words, parser.plain_help())
    parser.words = words
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        arguments, unknown = parser.parse_known_intermixed_args(words)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def _kind(command: str, words: list[str]) -> str:
    """Take the kind from the words; without one, it is the first kind."""
    from st_paragram.core.languages import LANGUAGES

    kinds: dict[str, object] = _module(command).KINDS
    if not words:
        build_parser(command).error("the following arguments are required: KIND")
    if not words[0].startswith("-"):
        kind = words.pop(0)
        if kind not in kinds:
            parser = build_parser(command)
            seen = f"there is no kind {kind!r}"
            if kind in LANGUAGES:
                parser.error(f"{seen}; did you mean --lang {kind}?")
            parser.error(
                _suggestion(seen, kind, kinds) or f"{seen}; `{parser.prog} --help` lists them"
            )
        return kind
    if words[0] in _HELP:
        build_parser(command).parse_args(words)
    return next(iter(kinds))


def _overview_parser() -> argparse.ArgumentParser:
    usage = "st-paragram [-h] [--version] COMMAND ..."
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("st-paragram", usage, overview(), formatter_class=formatter)
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    return parser


def _suggestion(message: str, word: str, known: Iterable[str]) -> str:
    """Return the message with the known word that is like this one; empty if there is none."""
    matches = get_close_matches(word, known, n=1)
    return f"{message}; did you mean {matches[0]}?" if matches else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        print(START, file=sys.stderr)
        return 2  # as for any wrong call, so that a script that lost its arguments stops
    if words[0].startswith("-"):
        return run_reporting_errors("st-paragram", partial(_show, words[0]))
    needs_torch = words[0] in _NEED_TORCH
    return run_reporting_errors(f"st-paragram {words[0]}", partial(_run, words), needs_torch)


def _show(option: str) -> int:
    """Show the version or the list of commands; refuse other options without a command."""
    if option == "--version":
        print(f"st-paragram {installed_version()}")
    elif option in _HELP:
        _overview_parser().print_help()
    else:
        _overview_parser().error(f"{option} is not a command; name a command before its options")
    return 0


def _run(words: Sequence[str]) -> int:
    arguments = parse(words)
    return int(_module(arguments.command).run(arguments))


def run_reporting_errors(name: str, run: Callable[[], int], needs_torch: bool = False) -> int:
    """Call `run`, and turn errors raised on purpose into one line on stderr.

    The status is 1 after an error, and 130 after Ctrl-C.
    """
    # Waiting threads must sleep soon: with GNU OpenMP's default, a second busy process makes the
    # many small steps of training ten times slower. libgomp reads the variable when `run` imports
    # torch.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for library in _CHATTY:
        logging.getLogger(library).setLevel(logging.WARNING)
    if threading.current_thread() is threading.main_thread():
        # batch systems send it: clean up as on Ctrl-C
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    try:
        status = run()
        sys.stdout.flush()  # so that errors are noticed here, not at exit
        return status
    except ParagramError as error:
        reason = str(error)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        with suppress(OSError, ValueError):
            # or Python prints an error at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a missing permission
        reason = one_line(error)
        if is_full_disk(error):  # files have a name by `naming_full_disk`
            place = error.filename or "standard output"
            reason = f"{place}: {error.strerror or error}; free disk space"
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except MemoryError as error:
        reason = f"not enough memory ({error}); close other programs, or use a smaller batch"
    except ImportError as error:
        advice = missing_from_light(error, needs_torch)
        if advice is None:
            raise
        reason = advice
    except Exception as error:
        if not is_full_disk(error):
            raise
        reason = f"no space left on the disk ({one_line(error)}); free disk space"
    print(f"{name}: {reason}", file=sys.stderr)
    return 1


def _module(command: str) -> ModuleType:
    """Import the file of a command; `import` is a keyword of Python."""
    name = "import_model" if command == "import" else command
    return importlib.import_module(f"st_paragram.cli.{name}")


if __name__ == "__main__":
    sys.exit(main())
