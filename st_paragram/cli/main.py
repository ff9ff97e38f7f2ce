"""The command `st-paragram`: a table of commands, each in a separate file that is imported when it is called.

A command's file has `DESCRIPTION`, `EPILOG` (examples; may be empty), `add_options(parser)` and `run(arguments)`, which
returns the exit status. At its top it imports nothing heavy, so that `--help` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from types import ModuleType
from typing import Any, NoReturn

from st_paragram.core.extras import missing_from_light
from st_paragram.core.families import commands
from st_paragram.errors import ParagramError

# No plugin of pydantic has a part in settings, and looking for them among the installed packages takes 20 ms.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

# Command -> what it is for, in the order of a first day's work.
_OWN_COMMANDS = {
    "bitext": "download public parallel text and turn it into a pair store",
    "download": "download parallel text, test sets and models by their names",
    "prepare": "turn your own parallel text into a pair store",
    "pivot": "extract paraphrases from bitext: sentences that share a translation",
    "inspect": "show what is in a pair store",
    "train": "train a model",
    "evaluate": "score models on similarity, translations, retrieval, transfer and inference",
    "info": "describe a model, a pair store, an index or this installation",
    "embed": "turn the lines of a file into vectors, the rows of a .npy matrix",
    "score": "score pairs of sentences",
    "dedupe": "remove exact and near-duplicates from a text or a parallel corpus",
    "mine": "find translations, or paraphrases, among sentences",
    "align": "align the sentences of a document with those of its translation",
    "index": "make the sentences of a file searchable",
    "search": "find the sentences of an index that are most similar to a query",
    "export": "write a copy of a model that is smaller, or that other software reads",
    "import": "turn a checkpoint of the original P-SP or SP code into a model directory",
    "get": "write an included model to a directory that other software can also read",
    "push": "upload a model to the Hugging Face hub",
    "serve": "run an HTTP server that answers requests for embeddings, scores and searches",
    "demo": "open a page in the browser that shows what a model does",
    "cache": "list what is stored in the cache, and clear it",
}
#: All commands; those of families come last.
COMMANDS = _OWN_COMMANDS | {name: about for name, (_, about) in commands().items()}
# Python's own module has the first name, and the second is a keyword.
_FILES = {"inspect": "inspect_store", "import": "import_model"}


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Fills descriptions, which are one line each, to the width of the terminal; examples below stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text.strip():
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


class _Parser(argparse.ArgumentParser):
    """Refuses an option that it does not know itself, with its own usage, and names the one that may be meant."""

    _intermixed = False  # while options between the values of one argument are allowed

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:  # noqa: ANN401
        self._given = [str(word) for word in (sys.argv[1:] if args is None else args)]
        found, unknown = super().parse_known_args(args, namespace)
        several = any(action.nargs in ("*", "+") for action in self._get_positional_actions())
        if unknown and several and not self._intermixed:
            found, unknown = self._parsed_intermixed(args, namespace) or (found, unknown)
        if unknown and not self._intermixed:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def _parsed_intermixed(self, args: Any, namespace: Any) -> tuple[Any, list[str]] | None:  # noqa: ANN401
        """Parse `search INDEX -k 5 QUERY`, where options separate arguments; None if words remain unknown."""
        self._intermixed = True
        try:
            found, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._intermixed = False
        return None if unknown else (found, [])

    def error(self, message: str) -> NoReturn:
        """End with usage, the message, and a guess where an option was misspelt."""
        missing = message.startswith(("unrecognized arguments", "the following arguments are required"))
        super().error(message + (self._guess() if missing else ""))

    def _guess(self) -> str:
        known = [option for action in self._actions for option in action.option_strings]
        for word in (word.partition("=")[0] for word in self._given if word.startswith("--")):
            if not any(option.startswith(word) for option in known):
                like = get_close_matches(word, known, n=1)
                return f" (there is no {word}; did you mean {like[0]}?)" if like else ""
        return ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:  # noqa: ANN401
        """Refuse a command that there is not, and name the one that may be meant."""
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            like = get_close_matches(str(value), action.choices, n=1)
            advice = f"did you mean {like[0]}?" if like else f"`{self.prog} --help` lists them"
            kind = "kind" if action.metavar == "KIND" else "command"
            self.error(f"there is no {kind} {value!r}; {advice}")
        super()._check_value(action, value)


class _AllCommands(_Parser):
    """Shows what people come for first, and the commands in groups."""

    def format_help(self) -> str:
        """The help as text."""
        from st_paragram.cli.overview import grouped, tasks

        return f"{self.format_usage()}\n{self.description}\n\n{tasks()}\n\n{grouped(COMMANDS)}"


class _Version(argparse.Action):
    """Print the version; looking it up takes longer than everything else."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> None:  # noqa: ANN401
        from st_paragram.core.version import installed_version

        print(f"st-paragram {installed_version()}")
        parser.exit()


def build_parser(called: str | None = None) -> argparse.ArgumentParser:
    """The parser, with the options of the command that is called; of the others only their names and help."""
    parser = _AllCommands(prog="st-paragram", description="Efficient paraphrastic sentence embeddings.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    for name, purpose in COMMANDS.items():
        command = subparsers.add_parser(name, help=purpose, formatter_class=_HelpFormatter)
        if name == called:
            module = _module(name)
            command.description, command.epilog = module.DESCRIPTION, module.EPILOG
            module.add_options(command)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = list(sys.argv[1:] if argv is None else argv)
    if not given:
        from st_paragram.cli.overview import start

        print(start(), file=sys.stderr)
        return 2  # as for any call that cannot be run: a script that lost its arguments must not go on
    called = next((word for word in given if not word.startswith("-")), None)
    arguments = build_parser(called).parse_args(given)
    return run_reporting_errors(f"st-paragram {called}", lambda: int(_module(str(called)).run(arguments)))


def run_script(name: str, command: str, description: str | None, given: Sequence[str] = ()) -> int:
    """Run a command as a separate script, which takes the options of that command.

    Args:
        name: of the script, for errors.
        command: e.g. "mine"; with a subcommand "train bitext".
        description: the script's docstring, for its `--help`.
        given: arguments put before those of the command line.
    """
    module = _module(command)
    parser = _Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    module.add_options(parser)
    arguments = parser.parse_args([*given, *sys.argv[1:]])
    return run_reporting_errors(name, lambda: int(module.run(arguments)))


def run_reporting_errors(name: str, run: Callable[[], int]) -> int:
    """Call `run`; errors raised on purpose become one line on stderr and status 1, Ctrl-C status 130."""
    # Threads that wait should soon sleep: with GNU OpenMP's default, a second busy process makes the many small steps
    # of training ten times slower. libgomp reads it when torch is imported, which `run` does.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for chatty in ("faiss", "httpx", "httpx2", "sentence_transformers", "transformers", "accelerate"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # batch systems send it: clean up as on Ctrl-C
    try:
        return run()
    except ParagramError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # who reads has seen enough, as `head` has
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends
        return 1
    except OSError as error:  # a full disk, a missing permission
        print(f"{name}: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except MemoryError as error:
        print(f"{name}: not enough memory ({error}); close other programs, or use a smaller batch", file=sys.stderr)
        return 1
    except ImportError as error:
        if (reason := missing_from_light(error)) is None:
            raise
        print(f"{name}: {reason}", file=sys.stderr)
        return 1


def _module(command: str) -> ModuleType:
    if command in _OWN_COMMANDS:
        return importlib.import_module(f"st_paragram.cli.{_FILES.get(command, command)}")
    entry, _ = commands()[command]
    return entry.module(f"{command}_command")


if __name__ == "__main__":
    sys.exit(main())
