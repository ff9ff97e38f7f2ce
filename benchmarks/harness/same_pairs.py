"""Whether two preparations have stored the same pairs."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np

from st_paragram.core.data.pair_store import PairStore


def same_pairs(store: Path, baseline: Path) -> int:
    """Compare the pairs of a store with those of `baseline_preparation`, whatever their order.

    Returns:
        How many there are.

    Raises:
        SystemExit: They differ; the message says in how many pairs.
    """
    ours = PairStore(store)
    sides = []
    for side in "ab":
        ids, offsets = ours.take(side, np.arange(len(ours)))
        sides.append([ids[start:end].astype(np.int32).tobytes() for start, end in pairwise(offsets)])
    with h5py.File(baseline, "r") as file:
        others = [[np.asarray(row, dtype=np.int32).tobytes() for row in file[side][:]] for side in "ab"]
    counts, other_counts = (Counter(map(_hash, *both)) for both in (sides, others))
    difference = (counts - other_counts).total() + (other_counts - counts).total()
    if difference:
        raise SystemExit(f"{difference} of {len(ours)} pairs differ")
    return len(ours)


def _hash(first: bytes, second: bytes) -> bytes:
    return blake2b(first + b"|" + second, digest_size=16).digest()
