"""The command `st-paragram`."""

from __future__ import annotations

import argparse
import importlib
import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from st_paragram.errors import ParagramError
from st_paragram.version import installed_version

_COMMANDS = (
    "bitext",
    "download",
    "prepare",
    "paranmt",
    "pivot",
    "inspect_store",
    "embed",
    "score",
    "mine",
    "align",
    "evaluate",
    "index",
    "search",
    "export",
)
_FILES = {"inspect": "inspect_store"}  # a file inspect.py would stand in the way of Python's own


def build_parser() -> argparse.ArgumentParser:
    """The parser; each subcommand is a file of this folder with `add_parser(subparsers)` and `run(arguments)`."""
    parser = argparse.ArgumentParser(prog="st-paragram", description="Efficient paraphrastic sentence embeddings.")
    parser.add_argument("--version", action="version", version=f"st-paragram {installed_version()}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in _COMMANDS:
        importlib.import_module(f"st_paragram.cli.{name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    arguments = build_parser().parse_args(argv)
    command = importlib.import_module(f"st_paragram.cli.{_FILES.get(arguments.command, arguments.command)}")
    return run_reporting_errors(f"st-paragram {arguments.command}", lambda: command.run(arguments))


def run_reporting_errors(name: str, run: Callable[[], int]) -> int:
    """Call `run`; errors raised on purpose become one line on stderr and status 1, Ctrl-C status 130."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    for chatty in ("faiss", "httpx", "sentence_transformers", "transformers", "accelerate"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # batch systems send it: clean up as on Ctrl-C
    try:
        return run()
    except ParagramError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
    except OSError as error:  # a full disk, a missing permission
        print(f"{name}: {error.filename or 'file'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
