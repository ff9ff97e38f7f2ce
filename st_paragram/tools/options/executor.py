"""The option that says how many processes do the work of `mine`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from st_paragram.tools.stages.executors import Executor


def add_executor_options(parser: argparse.ArgumentParser) -> None:
    """Add the option."""
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: %(default)s)")


def executor_from(arguments: argparse.Namespace, folder: Path | None) -> Executor:
    """The executor that the option describes."""
    from st_paragram.tools.stages.executors import LocalExecutor

    return LocalExecutor(arguments.workers)
