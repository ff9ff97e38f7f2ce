"""How many threads encode where nobody says."""

from __future__ import annotations

import os
from contextlib import suppress


def usable_cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_threads() -> int:
    """As many as cores that this process may use, or fewer if `OMP_NUM_THREADS` says so, as for torch and faiss."""
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    with suppress(ValueError):
        return max(1, min(usable_cores(), int(limit)))
    return usable_cores()
