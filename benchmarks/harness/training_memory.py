"""Memory of training against the number of pairs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.process_memory import watch
from st_paragram.core.data.pair_store import PairStore, PairStoreWriter

RECIPE = Path(__file__).parents[2] / "recipes" / "train_bitext.py"
HEAD = ("pairs", "store, MB", "peak RssAnon, MB", "peak RSS, MB")
BATCH = 128


@dataclass(frozen=True)
class TrainingMemory:
    """What a training run on so many pairs took, in 2^20 bytes."""

    pairs: int
    store_mb: float
    peak_anonymous_mb: float
    peak_resident_mb: float

    def row(self) -> list[str]:
        """Cells under `HEAD`."""
        return [
            f"{self.pairs:,}",
            *(f"{mb:.0f}" for mb in (self.store_mb, self.peak_anonymous_mb, self.peak_resident_mb)),
        ]


def measure(
    store: PairStore, sizes: Sequence[int], steps: int, dim: int, megabatch_size: int
) -> Iterator[TrainingMemory]:
    """Train on as many pairs as asked for, each size in a process of its own.

    Args:
        store: whose rows are repeated.
        sizes: numbers of pairs.
        steps: of each training run; fewer than an epoch of the smallest size.
        dim: components of an embedding.
        megabatch_size: M.
    """
    with tempfile.TemporaryDirectory(dir=store.path.parent) as folder:
        for count in sizes:
            data = Path(folder) / f"{count}.h5"
            repeat(store, count, data)
            command = [sys.executable, str(RECIPE), "--lang", store.languages[1], "--data", str(data)]
            command += ["--output", f"{folder}/model", "--config", str(RECIPE.parent / "configs" / "small.yaml")]
            command += ["--overwrite", "--dim", str(dim), "--megabatch-size", str(megabatch_size)]
            command += ["--anneal-interval", "10", "--epochs", str(steps * BATCH / count)]
            run = watch(command)
            yield TrainingMemory(count, data.stat().st_size / 2**20, run.peak_anonymous_mb, run.peak_resident_mb)
            data.unlink()


def repeat(store: PairStore, count: int, path: Path, block: int = 50_000) -> None:
    """Write a store of `count` pairs, the rows of `store` again and again."""
    with PairStoreWriter(path, store.languages, store.tokenizer(), store.max_length) as writer:
        for start in range(0, count, block):
            rows = np.arange(start, min(start + block, count)) % len(store)
            writer.append(*store.take("a", rows), *store.take("b", rows))
