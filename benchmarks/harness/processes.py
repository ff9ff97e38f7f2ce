"""Processes that benchmarks start: what they find around them, and the memory that they and their children take."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

LOOK = 0.1  # seconds between two looks at the memory of a process


@dataclass(frozen=True)
class Run:
    """A command that has ended.

    Attributes:
        output: What it printed.
        seconds: Of wall time.
        peak_anonymous_mb: The most anonymous memory (RssAnon, in 2^20 bytes) that it and its children had together;
            the page cache of mapped files is left out.
        peak_resident_mb: The most resident memory (RSS) that they had together, the page cache of mapped files
            included; what they share is counted for each.
    """

    output: str
    seconds: float
    peak_anonymous_mb: float
    peak_resident_mb: float = 0.0


def child_environment() -> dict[str, str]:
    """This process's variables, with the benchmarks' folder and the source tree on Python's path."""
    benchmarks = Path(__file__).parents[1]
    path = [str(benchmarks), str(benchmarks.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that keep every library of a process to so many threads; pools read them once, when they start."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    return {name: str(threads) for name in names} | {"TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}


def watch(command: Sequence[str]) -> Run:
    """Run a command and look at its memory ten times a second (Linux; elsewhere the anonymous memory is 0).

    Raises:
        SystemExit: The command failed; the message has what it said.
    """
    started, anonymous, resident = time.perf_counter(), 0, 0
    with tempfile.TemporaryFile("w+") as log:  # a pipe that nobody reads would fill up and stop the process
        process = psutil.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=child_environment()
        )
        while process.poll() is None:
            with suppress(psutil.NoSuchProcess):  # it has just ended
                family = [process, *process.children(recursive=True)]
                anonymous = max(anonymous, sum(anonymous_kib(member.pid) for member in family))
                resident = max(resident, sum(map(_resident, family)))
            time.sleep(LOOK)
        seconds = time.perf_counter() - started
        log.seek(0)
        output = log.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{output}")
    return Run(output, seconds, anonymous / 2**10, resident / 2**20)


def anonymous_kib(pid: int) -> int:
    """Memory of a process that is its own (RssAnon), in KiB: files mapped into it are left out. 0 if unknown.

    psutil tells it by `memory_maps` alone, which takes thousands of times as long.
    """
    try:
        found = re.search(r"RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:  # it has ended, or this is not Linux
        return 0
    return int(found[1]) if found else 0


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
