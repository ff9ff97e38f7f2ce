"""Preparation in processes of its own: the pairs read per second, and the baseline beside it."""

from __future__ import annotations

import re
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
from harness.processes import Run, watch
from harness.texts import write_repeats

from st_paragram.core.pair_store import PairStore

STEPS = ("read", "sort", "shuffle", "filter", "encode", "write")
HEAD = ("pairs", "workers", "pairs/s", "seconds", "peak, MB")
COMPARED_HEAD = ("", "seconds", "pairs/s", "ratio")


@dataclass(frozen=True)
class Preparation:
    """What is prepared.

    Args:
        text: two tab-separated columns.
        language: of the second column.
        folder: for temporary files.
        vocabulary: a sentencepiece model, or None to train one.
    """

    text: Path
    language: str
    folder: Path
    vocabulary: Path | None = None

    def repeated(self, pairs: int) -> Path:
        """A text of so many pairs."""
        return write_repeats(self.text, self.folder / "text.tsv", pairs)

    def run(self, text: Path, workers: int, more: Sequence[str] = ()) -> Run:
        """Prepare a text with our command."""
        command = [sys.executable, "-m", "st_paragram.cli.main", "prepare", "--lang", self.language]
        command += ["--text", str(text), "--output", str(self.folder / "ours.h5"), "--overwrite"]
        command += ["--workers", str(workers), *more]
        return watch(command + (["--vocab", str(self.vocabulary)] if self.vocabulary else []))


def row(pairs: int, workers: int, run: Run) -> list[str]:
    """Cells under `HEAD`."""
    found = [f"{pairs / run.seconds:,.0f}", f"{run.seconds:.1f}", f"{run.peak_anonymous_mb:,.0f}"]
    return [f"{pairs:,}", str(workers), *found]


@dataclass(frozen=True)
class Compared:
    """Medians of the baseline and of ours on the same pairs.

    Args:
        pairs: read.
        stored: by all alike.
        baseline: seconds.
        steps: of the baseline: name -> seconds.
        ours: number of workers -> seconds.
    """

    pairs: int
    stored: int
    baseline: float
    steps: dict[str, float]
    ours: dict[int, float]

    def rows(self) -> list[list[str]]:
        """Cells under `COMPARED_HEAD`."""
        named = {"baseline, row by row": self.baseline}
        named |= {f"ours, workers: {workers}": seconds for workers, seconds in self.ours.items()}
        return [
            [name, f"{seconds:.1f}", f"{self.pairs / seconds:,.0f}", f"{self.baseline / seconds:.1f}"]
            for name, seconds in named.items()
        ]


def compare(preparation: Preparation, pairs: int, workers: Sequence[int], rounds: int) -> Compared:
    """Prepare the same pairs with ours and with the baseline, in turn.

    Args:
        preparation: with a vocabulary, so that both use one.
        pairs: of the text.
        workers: numbers of processes of ours.
        rounds: of each.

    Raises:
        SystemExit: there is no vocabulary, a command failed, or the two have stored other pairs.
    """
    folder, vocabulary = preparation.folder, preparation.vocabulary
    if vocabulary is None:
        raise SystemExit("the comparison needs --vocab, so that both use one vocabulary; or give --baseline-pairs 0")
    text = preparation.repeated(pairs)
    command = [sys.executable, "-m", "harness.speed.preparation_baseline", str(text), str(vocabulary)]
    baseline, ours = list[Run](), {count: list[Run]() for count in workers}
    for _ in range(rounds):
        baseline.append(watch([*command, str(folder / "baseline.h5")]))
        for count, runs in ours.items():
            runs.append(preparation.run(text, count))
    steps = [dict(re.findall(r"(\w+)=([\d.]+)", run.output)) for run in baseline]
    return Compared(
        pairs,
        same_pairs(folder / "ours.h5", folder / "baseline.h5"),
        _median(baseline),
        {step: statistics.median(float(each[step]) for each in steps) for step in STEPS},
        {count: _median(runs) for count, runs in ours.items()},
    )


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def same_pairs(store: Path, baseline: Path) -> int:
    """Compare the pairs of a store with those of `preparation_baseline`, whatever their order.

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
