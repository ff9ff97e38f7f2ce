"""Memory of a process and all it has started. Linux only."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.children import child_environment

_LOOK = 0.1  # seconds between two looks


@dataclass(frozen=True)
class Run:
    """A command that has ended.

    Attributes:
        output: What it printed.
        seconds: Of wall time.
        peak_anonymous_mb: The most anonymous memory (RssAnon, in 2^20 bytes) that it and its children had together;
            the page cache of mapped files is left out.
    """

    output: str
    seconds: float
    peak_anonymous_mb: float


def watch(command: Sequence[str]) -> Run:
    """Run a command and look at its memory ten times a second.

    Raises:
        SystemExit: The command failed; what it said stands in the message.
    """
    started, peak = time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as log:  # a pipe that nobody reads would fill up and stop the process
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=child_environment()
        )
        while process.poll() is None:
            peak = max(peak, sum(map(_anonymous_kib, _family(process.pid))))
            time.sleep(_LOOK)
        seconds = time.perf_counter() - started
        log.seek(0)
        output = log.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{output}")
    return Run(output, seconds, peak / 1024)


def _family(process: int) -> list[int]:
    children: defaultdict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        children[int(fields[1])].append(int(path.parent.name))
    family = [process]
    for member in family:
        family += children[member]
    return family


def _anonymous_kib(process: int) -> int:
    try:
        found = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0
