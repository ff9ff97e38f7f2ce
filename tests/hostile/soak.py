"""Work without end in one process, whose memory must not grow: encode, search, mine and train, round after round.

    PYTHONPATH=tests python -m hostile.soak --minutes 10

Memory is what the process has to itself: anonymous pages. After a warm-up, in which caches fill, it is looked at every
few seconds. It grows if the median of the last third is more than `--bound` MB above that of the first third.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
from numpy.typing import NDArray
from support.data import make_pairs, write_store

from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.word_cache import WordEncoder
from st_paragram.learning.losses.hardest_negatives import Precision, hardest_negatives
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.learning.training.mega_batch.compiled_step import CompiledStep
from st_paragram.learning.training.mega_batch.mega_batch import MegaBatchTexts, MinedMegaBatch
from st_paragram.learning.training.mega_batch.schedule import MegaBatch
from st_paragram.learning.training.row_lazy_adam import RowLazyAdam
from st_paragram.tools.search.nearest import nearest_neighbours

_WARM_UP = 0.2  # of the time


class Work:
    """One model that is searched with and trained at once."""

    def __init__(self, folder: Path) -> None:
        pairs = make_pairs(1500)
        self.texts = [text for pair in pairs for text in pair]
        vocabulary = SentencePieceTokenizer(train_vocabulary(self.texts, 300))
        # A small table of words, which is full and starts over every few rounds: a large one would fill all the time.
        vocabulary._encoder = WordEncoder(vocabulary.model_proto, True, limit_bytes=1 << 20)
        self.store = write_store(folder / "en-xx.h5", pairs, vocabulary)
        self.model = pipeline(SentencePieceEmbedding(vocabulary, 64, sparse_gradient=True), device="cpu")
        embedding = self.model[0]
        self.table = embedding.embedding.weight
        self.optimizer = RowLazyAdam([self.table])
        self.optimizer.watch(embedding)
        self.step = CompiledStep(self.optimizer, self.table, 0.4, dropout=0.1) if kernels() is not None else None
        self.rounds = 0

    def round(self) -> None:
        """Encode texts, known words and new ones; search among them; mine a mega-batch and train on it."""
        fresh = [f"{text} w{self.rounds * 7919 + number:x}" for number, text in enumerate(self.texts[:200])]
        vectors = self.model.encode(self.texts + fresh, normalize_embeddings=True)
        nearest_neighbours(vectors[:50], vectors, 5)
        texts = MegaBatchTexts.read(self.store, MegaBatch(self.rounds, 0, 8, 8), 64, 0)
        if self.step is not None:
            first, second = self.step.embed(texts).split(texts.pairs)
            found = hardest_negatives(first, second, precision=Precision.AUTO)
            mined = MinedMegaBatch.mined(texts, *(rows.numpy() for rows in found), both_sides=False)
            for begin in range(0, texts.pairs, 64):
                self.step.train(texts, mined.columns[:, begin : begin + 64])
        self.rounds += 1


def samples(work: Callable[[], None], seconds: float, every: float) -> Iterator[tuple[float, float]]:
    """Work for some time; after the warm-up, what memory there is: (seconds, MB) every so many seconds."""
    begin = time.monotonic()
    due = begin + _WARM_UP * seconds
    while (now := time.monotonic()) < begin + seconds:
        work()
        if now >= due:
            yield now - begin, anonymous()
            due = now + every


def anonymous() -> float:
    """Memory of this process alone that no file backs, in MB."""
    try:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    except OSError:
        return psutil.Process().memory_full_info().uss / (1 << 20)
    return next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:")) / 1024


def growth(memory: NDArray[np.float64]) -> tuple[float, float, float]:
    """Of (n, 2) seconds and MB: the slope in MB a minute, and the medians of the first and the last third."""
    seconds, size = memory.T
    third = max(1, len(size) // 3)
    slope = float(np.polyfit(seconds / 60, size, 1)[0])
    return round(slope, 2) + 0.0, statistics.median(size[:third]), statistics.median(size[-third:])


def main(arguments: list[str] | None = None) -> int:
    """Work and print what became of the memory; 1 if it has grown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--every", type=float, default=3, metavar="S", help="seconds between two looks at the memory")
    parser.add_argument("--bound", type=float, default=8, metavar="MB", help="by which it may grow")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        work = Work(Path(folder))
        seen = np.array(list(samples(work.round, 60 * given.minutes, given.every)))
    if len(seen) < 3:
        print(f"{len(seen)} looks at the memory are too few; work longer, or look more often")
        return 1
    slope, first, last = growth(seen)
    steps = int(work.optimizer.state_of(work.table)["step"])
    print(
        f"{work.rounds:,} rounds, {steps:,} steps, {len(seen)} looks at the memory: {first:.1f} MB in the first third, "
        f"{last:.1f} MB in the last, {slope:+.2f} MB a minute"
    )
    return int(last - first > given.bound)


if __name__ == "__main__":
    raise SystemExit(main())
