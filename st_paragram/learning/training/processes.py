"""Which of the processes of torchrun or accelerate this is. Nothing here needs torch."""

from __future__ import annotations

import os


def is_main_process() -> bool:
    """Whether this is the only process of a run, or the first of several: what a run writes, that one writes alone."""
    return os.environ.get("RANK", "0") in ("", "0")
