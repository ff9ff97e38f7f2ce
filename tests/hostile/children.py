"""Commands in processes of their own, forked from one that has imported everything: they start at once.

Nothing may be computed in the parent: threads of torch or of the kernels do not live on in a fork.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from hostile.commands import COMMANDS

_MODULES = ("cli.main", "tools.preparation.prepare", "tools.preparation.pivot", "families.sp.paranmt", "cli.bitext")
_MODULES_OF_TORCH = (
    "tools.embed_files",
    "tools.score_files",
    "learning.models.directory",
    "tools.search.search_index",
    "tools.bitext_mining.background",
    "tools.bitext_mining.miner",
    "tools.alignment.documents",
    "learning.training.train",
    "learning.training.run",
)
_POLL = 0.0005  # seconds


def import_all(names: Iterable[str]) -> None:
    """Import what the commands will need."""
    modules = _MODULES
    if any(COMMANDS[name].torch for name in names):
        modules += _MODULES_OF_TORCH
        importlib.import_module("faiss")
    for module in modules:
        importlib.import_module(f"st_paragram.{module}")


class Child:
    """A process at the head of a group of its own."""

    def __init__(self, work: Callable[[], int | None], log: Path) -> None:
        """Start it.

        Args:
            work: What it does; returns its exit status.
            log: What it prints is written there.
        """
        self.log, self.status = log, None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _run(work, log)

    def ended(self) -> bool:
        """Whether it has ended; `status` is set then, negative after a signal."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.status = os.waitstatus_to_exitcode(status) if pid else None
        return self.status is not None

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
        """Wait for its end, or for something to become true; returns the seconds that took.

        Raises:
            TimeoutError: Neither came.
        """
        started = time.perf_counter()
        while not (self.ended() or until()):
            if (waited := time.perf_counter() - started) > seconds:
                raise TimeoutError(f"nothing after {waited:.0f} s; see {self.log}")
            time.sleep(_POLL)
        return time.perf_counter() - started

    def kill(self) -> None:
        """Kill the whole group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def alone(self, seconds: float = 3) -> bool:
        """Whether none of its group is left, after it has ended and some time at most."""
        last = time.perf_counter() + seconds
        while time.perf_counter() < last:
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.01)
        return False

    @property
    def said(self) -> str:
        """What it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")


def command(
    words: list[str], folder: Path, gate: tuple[int, int] | None = None, delay: float = 0
) -> Callable[[], int | None]:
    """The work of a child: a command, as the command line runs it.

    Args:
        words: Of the command line.
        folder: To work in.
        gate: Both ends of a pipe; the command starts when everybody else has closed the second one.
        delay: Seconds after that.
    """

    def work() -> int:
        from st_paragram.cli.main import main

        if gate is not None:
            os.close(gate[1])
            os.read(gate[0], 1)
        time.sleep(delay)
        os.chdir(folder)
        return main(words)

    return work


def _run(work: Callable[[], int | None], log: Path) -> NoReturn:
    """In the child: do the work and end."""
    status = 70
    try:
        os.setsid()
        written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        for number in (1, 2):
            os.dup2(written, number)
        sys.stdout = sys.stderr = os.fdopen(written, "w", buffering=1, encoding="utf-8")
        status = work() or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # whatever it is, it is told, and the parent's code must not go on here
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
