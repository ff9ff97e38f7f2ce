"""Options that say who does the work: this machine or a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.stages.executors import Executor


def add_executor_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument_group("processes and machines").add_argument
    add(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes on this machine; on a cluster: parts running at a time (default: %(default)s)",
    )
    add(
        "--executor",
        choices=("local", "datatrove", "ray", "slurm"),
        default="local",
        help="executor (default: %(default)s); all except `local` need st_paragram[distributed] and a shared "
        "file system",
    )
    add(
        "--ranks",
        type=int,
        metavar="N",
        help="on a cluster: parts per stage (default: --workers)",
    )
    add(
        "--executor-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option for datatrove's executor, such as partition=cpu, time=4:00:00, or address=HOST:PORT for "
        "Ray; repeatable",
    )


def executor_from(arguments: argparse.Namespace, folder: Path | None) -> Executor:
    """The executor that the options describe.

    Args:
        arguments: What was given.
        folder: The work folder, for the logs of a cluster; None: the current one.

    Raises:
        SettingsError: Options contradict each other.
        MissingExtraError: What a cluster needs is not installed.
    """
    from st_paragram.tools.stages.distributed import Cluster, ClusterExecutor
    from st_paragram.tools.stages.executors import LocalExecutor

    if arguments.executor == "local":
        if arguments.executor_option or arguments.ranks:
            raise SettingsError("--ranks and --executor-option are for --executor datatrove, ray or slurm; name one")
        return LocalExecutor(arguments.workers)
    options = _options(arguments.executor_option)
    logs = ((folder or Path()) / "logs").absolute()
    ranks = arguments.ranks or arguments.workers
    return ClusterExecutor(Cluster(arguments.executor), logs, ranks, arguments.workers, options)


def _options(given: Sequence[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not (name and equals):
            raise SettingsError(f"--executor-option {item}: write NAME=VALUE")
        options[name] = int(value) if value.lstrip("-").isdigit() else value
    return options
