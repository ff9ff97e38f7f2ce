"""Processes that are measured: their time, what they print, and the memory that they and their children take."""

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

_SOURCES = Path(__file__).parents[2]
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Run:
    """A process that has ended.

    Attributes:
        output: What it printed, on both streams.
        seconds: Of wall time.
        peak_anonymous_mb: Most anonymous memory (RssAnon, 2^20 bytes) that it and its children had together: files
            mapped into memory are left out. Sampled ten times per second; 0 outside Linux.
        peak_resident_mb: Most resident memory, mapped files included.
    """

    output: str
    seconds: float
    peak_anonymous_mb: float
    peak_resident_mb: float

    @property
    def figures(self) -> Any:  # noqa: ANN401
        """What a process printed as JSON in its last line."""
        return json.loads(self.output.strip().split("\n")[-1])


@dataclass(frozen=True)
class Program:
    """What is run in a process: a command, or the arguments of `python`; with variables, on so many threads."""

    arguments: Sequence[str]
    threads: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> Run:
        """Run it to its end; SystemExit with what it printed if it fails."""
        path = os.pathsep.join([str(_SOURCES / "benchmarks"), os.environ.get("PYTHONPATH", ""), str(_SOURCES)])
        limits = {} if self.threads is None else dict.fromkeys(_THREADS, str(self.threads))
        environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", **limits, **self.variables}
        started, anonymous, resident = time.perf_counter(), 0, 0
        with tempfile.TemporaryFile("w+") as log:  # a pipe that nobody reads would fill up and stop the process
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
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
        return Run(output, seconds, anonymous / 2**10, resident / 2**20)


def command(*words: object, threads: int | None = None) -> Program:
    """The command `st-paragram` with these arguments."""
    return Program(["-m", "st_paragram.cli.main", *map(str, words)], threads)


def in_turn(programs: Mapping[str, Program], rounds: int) -> dict[str, list[Run]]:
    """Run programs one after another, round by round: what disturbs one round disturbs all programs.

    A first round is not counted. A program that fails in it is left out, with the reason on standard error.
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
                        tqdm.write(f"{name} is left out: {str(failure).strip().splitlines()[-1]}", file=sys.stderr)
                        del runs[name]
                    else:
                        runs[name] += [run] if number else []
    return runs


def spread(values: Sequence[float]) -> str:
    """Median and range, with at least three digits."""

    def number(value: float) -> str:
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

    return f"{number(statistics.median(values))} ({number(min(values))} - {number(max(values))})"


def _anonymous_kib(pid: int) -> int:
    """RssAnon of a process; psutil has it only through `memory_maps`, which takes thousands of times as long."""
    with suppress(OSError):  # it has ended, or this is not Linux
        if found := re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1])
    return 0
