"""The environment of processes that benchmarks start: they must find these files, and the package."""

from __future__ import annotations

import os
from pathlib import Path


def child_environment() -> dict[str, str]:
    """This process's variables, with the benchmarks' folder and the source tree on Python's path."""
    benchmarks = Path(__file__).parents[1]
    path = [str(benchmarks), str(benchmarks.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
