"""Default numbers of threads."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_threads() -> int:
    """Return the number of threads to compute with: `OMP_NUM_THREADS`, or one for each processor that may be used."""
    wish = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(wish) if wish.isdecimal() and int(wish) else usable_cores()
