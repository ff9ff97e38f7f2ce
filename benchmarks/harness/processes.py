"""Measured processes: their time, their output, and the memory of them and their children."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tqdm import tqdm

import st_paragram

_SOURCES = Path(__file__).parents[2]
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Run:
    """A process that has ended.

    Attributes:
        output: Its output, on both streams.
        seconds: Wall time.
        started: `time.perf_counter()` just before it started. On Linux, macOS and Windows, all
            processes have the same clock.
        peak_anonymous_mb: Peak anonymous memory (RssAnon, 2^20 bytes) of the process and its
            children together, without memory-mapped files. Sampled ten times per second; 0 outside
            Linux.
        peak_resident_mb: Peak resident memory, including memory-mapped files.
    """

    output: str
    seconds: float
    started: float
    peak_anonymous_mb: float
    peak_resident_mb: float

    @property
    def figures(self) -> Any:
        """The JSON value in the last line of the output."""
        return json.loads(self.output.strip().split("\n")[-1])


@dataclass(frozen=True)
class Program:
    """A program to run in a process: a command, or arguments of `python`; with variables, on a
    number of threads.
    """

    arguments: Sequence[str]
    threads: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> Run:
        """Run it to its end; raise SystemExit with its output if it fails."""
        folders = [str(_SOURCES / "benchmarks"), os.environ.get("PYTHONPATH", "")]
        # the package that this process uses: an installed one is compiled, its sources may not be
        if Path(st_paragram.__file__).parents[1] == _SOURCES:
            folders.append(str(_SOURCES))
        limits = {} if self.threads is None else dict.fromkeys(_THREADS, str(self.threads))
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, folders)),
            "PYTHONSAFEPATH": "1",  # not the package in the working folder; from Python 3.11
            "HF_HUB_OFFLINE": "1",
            **limits,
            **self.variables,
        }
        started, anonymous, resident = time.perf_counter(), 0, 0
        # an unread pipe would fill up and block the process
        with tempfile.TemporaryFile("w+") as log:
            streams: dict[str, Any] = {
                "stdin": subprocess.DEVNULL,
                "stdout": log,
                "stderr": subprocess.STDOUT,
            }
            process = psutil.Popen([sys.executable, *self.arguments], env=environment, **streams)
            while process.poll() is None:
                with suppress(psutil.Error):  # it has just ended
                    family = [process, *process.children(recursive=True)]
                    anonymous = max(anonymous, sum(_anonymous_kib(each.pid) for each in family))
                    resident = max(resident, sum(each.memory_info().rss for each in family))
                with suppress(psutil.TimeoutExpired):
                    process.wait(0.1)
            seconds = time.perf_counter() - started
            log.seek(0)
            output = log.read()
        if process.returncode:
            raise SystemExit(f"{' '.join(self.arguments)[:300]} failed:\n{output}")
        return Run(output, seconds, started, anonymous / 2**10, resident / 2**20)


def command(*words: object, threads: int | None = None) -> Program:
    """Return the command `st-paragram` with these arguments."""
    return Program(["-m", "st_paragram.cli.main", *map(str, words)], threads)


def in_turn(programs: Mapping[str, Program], rounds: int) -> dict[str, list[Run]]:
    """Run programs one after another, round by round, so that disturbances affect all programs.

    A first round is not counted. A program that fails in it is left out, with the reason on
    standard error.
    """
    runs: dict[str, list[Run]] = {name: [] for name in programs}
    with tqdm(total=len(programs) * (rounds + 1), disable=None) as bar:
        for number in range(rounds + 1):
            for name, program in programs.items():
                bar.set_postfix_str(name)
                bar.update()
                if name in runs:
                    try:
                        run = program.run()
                    except SystemExit as failure:
                        if number:
                            raise
                        tqdm.write(
                            f"{name} is left out: {str(failure).strip().splitlines()[-1]}",
                            file=sys.stderr,
                        )
                        del runs[name]
                    else:
                        runs[name] += [run] if number else []
    return runs


def spread(values: Sequence[float]) -> str:
    """Format median and range, with at least three digits."""

    def number(value: float) -> str:
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

    return f"{number(statistics.median(values))} ({number(min(values))} - {number(max(values))})"


def _anonymous_kib(pid: int) -> int:
    """Return RssAnon of a process; psutil's `memory_maps` takes thousands of times as long."""
    with suppress(OSError):  # it has ended, or this is not Linux
        if found := re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1])
    return 0
