"""How many threads work where nobody says."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_threads() -> int:
    """Threads to compute with: what `OMP_NUM_THREADS` asks for, else one for each processor that may be used."""
    wish = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(wish) if wish.isdecimal() and int(wish) else usable_cores()
