"""The command `st-paragram`: a table of subcommands, each in a separate file that is imported when
called.

A command's file has `DESCRIPTION`, `EPILOG` (examples; may be empty), `add_options(parser)` and
`run(arguments)`, which returns the exit status. It imports nothing heavy at the top, so that
`--help` is fast.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

from st_paragram.cli.overview import GROUPS, START, listed
from st_paragram.core.extras import installed_version, missing_from_light
from st_paragram.core.families import commands
from st_paragram.core.files import is_full_disk
from st_paragram.errors import ParagramError, one_line

# Settings need no pydantic plugin, and searching the installed packages for plugins takes 20 ms.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

_FAMILIES = commands()
#: Command -> one line of help.
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}
COMMANDS |= {name: about for name, (_, about) in _FAMILIES.items()}


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Wraps descriptions, which are one line each, at the width of the terminal; leaves the
    examples as they are.
    """

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        formatter = (
            argparse.RawDescriptionHelpFormatter if "\n" in text.strip() else argparse.HelpFormatter
        )
        return formatter._fill_text(self, text, width, indent)


class _Parser(argparse.ArgumentParser):
    """Reports an unknown option with the usage of the subcommand, and suggests the option or
    command that is meant.
    """

    first_word = ""  # inserted where the arguments begin with an option
    # true while options may come between the values of one argument: `search INDEX -k 5 QUERY`
    _intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        words = [str(word) for word in (sys.argv[1:] if args is None else args)]
        if (
            self.first_word
            and words
            and words[0].startswith("-")
            and words[0] not in ("-h", "--help")
        ):
            words = [self.first_word, *words]
        if not (self._intermixed or self._subparsers):
            from st_paragram.cli.options import with_model

            words = with_model(self, words)
        self._given = words
        known, unknown = super().parse_known_args(words, namespace)
        several = any(action.nargs in ("*", "+") for action in self._get_positional_actions())
        if unknown and several and not self._intermixed:
            self._intermixed = True
            known, unknown = self.parse_known_intermixed_args(words, namespace)
            self._intermixed = False
        if unknown and not self._intermixed:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def error(self, message: str) -> NoReturn:
        """End with usage and the message, which names a misspelled option."""
        known = self._option_string_actions
        options = [word.partition("=")[0] for word in self._given if word.startswith("--")]
        unknown = [word for word in options if not any(option.startswith(word) for option in known)]
        if unknown and not message.startswith("argument "):
            message += _guess(f"; there is no {unknown[0]}", unknown[0], known)
        super().error(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            seen = f"there is no {str(action.metavar).lower()} {value!r}"
            self.error(
                _guess(seen, value, action.choices) or f"{seen}; `{self.prog} --help` lists them"
            )
        super()._check_value(action, value)


def _guess(seen: str, word: str, known: Iterable[str]) -> str:
    like = get_close_matches(word, known, n=1)
    return f"{seen}; did you mean {like[0]}?" if like else ""


def build_parser(called: str | None = None) -> argparse.ArgumentParser:
    """Build the parser with the options of the command that is called, and only the names of the
    others.
    """
    parser = _Parser("st-paragram", description=listed(COMMANDS), formatter_class=_HelpFormatter)
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        command = subparsers.add_parser(name, formatter_class=_HelpFormatter)
        if name == called:
            module = _module(name)
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            command.first_word = getattr(module, "FIRST_WORD", "")
            module.add_options(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given:
        print(START, file=sys.stderr)
        return 2  # as for any wrong call, so that a script that lost its arguments stops
    if given == ["--version"]:
        print(f"st-paragram {installed_version()}")
        return 0
    called = next((word for word in given if not word.startswith("-")), None)

    def run() -> int:  # also options need packages that the light installation lacks
        arguments = build_parser(called).parse_args(given)
        return int(_module(str(called)).run(arguments))

    return run_reporting_errors(f"st-paragram {called}", run)


def run_reporting_errors(name: str, run: Callable[[], int]) -> int:
    """Call `run`; turn errors raised on purpose into one line on stderr and status 1, and Ctrl-C
    into status 130.
    """
    # Waiting threads must sleep soon: with GNU OpenMP's default, a second busy process makes the
    # many small steps of training ten times slower. libgomp reads the variable when `run` imports
    # torch.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for chatty in (
        "faiss",
        "httpx",
        "httpx2",
        "sentence_transformers",
        "transformers",
        "accelerate",
    ):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    if threading.current_thread() is threading.main_thread():
        # batch systems send it: clean up as on Ctrl-C
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return run()
    except ParagramError as error:
        reason = str(error)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        with suppress(OSError, ValueError):
            # or Python prints an error at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:  # a full disk, a missing permission
        space = "; free disk space" if is_full_disk(error) else ""
        reason = f"{error.filename or 'file'}: {error.strerror or error}{space}"
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except MemoryError as error:
        reason = f"not enough memory ({error}); close other programs, or use a smaller batch"
    except ImportError as error:
        if (advice := missing_from_light(error)) is None:
            raise
        reason = advice
    except Exception as error:
        if not is_full_disk(error):
            raise
        reason = f"no space left on the disk ({one_line(error)}); free disk space"
    print(f"{name}: {reason}", file=sys.stderr)
    return 1


def _module(command: str) -> ModuleType:
    return importlib.import_module(
        f"st_paragram.cli.{'import_model' if command == 'import' else command}"
    )


if __name__ == "__main__":
    sys.exit(main())
