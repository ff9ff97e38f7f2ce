"""Seeds that follow from numbers."""

from __future__ import annotations

import numpy as np


def seed_of(*parts: int) -> int:
    """A seed of 63 bits that follows from numbers of 0 or more, and -1."""
    return int(np.random.SeedSequence([part + 1 for part in parts]).generate_state(1, np.uint64)[0] >> np.uint64(1))
