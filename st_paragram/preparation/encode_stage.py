"""Fourth and fifth stage: train a vocabulary on the first rows of the order, encode all rows with it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from st_paragram.files import atomic, digest
from st_paragram.preparation.plan_stage import PlanStage
from st_paragram.preparation.row_files import SOURCE, texts_of
from st_paragram.preparation.settings import PrepareSettings
from st_paragram.stages.stage import Stage
from st_paragram.stages.work import write_metadata
from st_paragram.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer, train_vocabulary

VERSION = 2  # of the results: count it up when they change


@dataclass(frozen=True)
class VocabularyStage(Stage):
    """The one task trains the vocabulary on the first `sample_pairs` pairs, a uniform sample of all.

    A vocabulary that was given takes the place of a trained one.
    """

    name: ClassVar[str] = "vocabulary"
    order: PlanStage
    settings: PrepareSettings
    given: Path | None = None

    @property
    def digest(self) -> str:
        """Tells this vocabulary from others."""
        if self.given:
            return digest(VERSION, "given", self.given.name)  # which tells its content
        names = ("vocab_size", "coverage", "sample_pairs", "max_sentence_bytes", "vocab_threads", "seed")
        return digest(VERSION, self.order.digest, [getattr(self.settings, name) for name in names])

    def results(self) -> list[Path]:
        """The one model file."""
        return [folder / "sentencepiece.model" for folder in self.folders]

    @property
    def folders(self) -> set[Path]:
        """The one folder."""
        return {self.order.distinct.folder / self.name / self.digest}

    def run(self, task: int) -> None:
        """Train.

        Raises:
            TextError: Too little text for a vocabulary.
            SettingsError: The vocabulary is too small for the characters of the text.
        """
        started = time.perf_counter()
        (result,) = self.results()
        model = self.given.read_bytes() if self.given else self._train()
        with atomic(result) as handle:
            handle.write(model)
        write_metadata(result, {"seconds": time.perf_counter() - started})

    def _train(self) -> bytes:
        settings, plan = self.settings, self.order.plan()
        pairs = (pair for task in range(len(plan.files)) for pair in texts_of(plan.rows(task)))
        sample = islice(pairs, settings.sample_pairs)
        return train_vocabulary(
            (sentence for pair in sample for sentence in pair),
            size=settings.vocab_size,
            character_coverage=settings.coverage,
            num_threads=settings.vocab_threads,
            max_sentence_bytes=settings.max_sentence_bytes,
            seed=settings.seed,
        )


@dataclass(frozen=True)
class EncodeStage(Stage):
    """A task encodes the rows of one file of the order.

    The result is an `.npz` file of `a_ids`, `a_offsets`, `b_ids`, `b_offsets`; ids are of the smallest unsigned type
    that holds the vocabulary; and of `sources`, uint16, the numbers of the texts that rows come from. The facts have
    `rows`, `pieces` of both sides, and `cut`, the sentences that were cut at the largest number of pieces.
    """

    name: ClassVar[str] = "encode"
    order: PlanStage
    vocabulary: VocabularyStage
    lower_case: bool
    segmentation: Segmentation
    max_pieces: int

    @property
    def digest(self) -> str:
        """Tells these results from others."""
        return digest(VERSION, self.order.digest, self.vocabulary.digest, self.max_pieces, self.lower_case)

    def results(self) -> list[Path]:
        """A file of ids per file of rows."""
        (folder,) = self.folders
        return [folder / f"{path.stem}.npz" for path in self.order.distinct.results()]

    @property
    def folders(self) -> set[Path]:
        """The one folder."""
        return {self.order.distinct.folder / self.name / self.digest}

    def load_vocabulary(self) -> SentencePieceTokenizer:
        """The vocabulary, with what is done to a text before it."""
        return _vocabulary(self.vocabulary.results()[0], self.lower_case, self.segmentation)

    def run(self, task: int) -> None:
        """Encode."""
        started = time.perf_counter()
        result = self.results()[task]
        keyed = self.order.plan().rows(task)
        arrays: dict[str, Any] = {"sources": np.array([int(row[SOURCE]) for row in keyed], np.uint16)}
        rows = texts_of(keyed)
        del keyed  # as large as the texts
        vocabulary = self.load_vocabulary()
        smallest = np.min_scalar_type(len(vocabulary) - 1)
        pieces, cut = [], 0
        for number, side in enumerate("ab"):
            encoded = vocabulary.encode_segmented([row[number] for row in rows], self.max_pieces)
            arrays |= {f"{side}_ids": encoded.ids.astype(smallest), f"{side}_offsets": encoded.offsets}
            pieces.append(len(encoded.ids))
            cut += encoded.cut
        with atomic(result) as handle:
            np.savez(handle, **arrays)
        seconds = time.perf_counter() - started
        write_metadata(result, {"rows": len(rows), "pieces": pieces, "cut": cut, "seconds": seconds})


@lru_cache(maxsize=1)
def _vocabulary(path: Path, lower_case: bool, segmentation: Segmentation) -> SentencePieceTokenizer:
    """Loaded once in a process, since its table of words grows better with use; the path has its digest."""
    return SentencePieceTokenizer(path.read_bytes(), lower_case, segmentation)
