"""Fifth stage: train a vocabulary on the first rows of the order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

from st_paragram.files import atomic, digest
from st_paragram.preparation.plan_stage import PlanStage
from st_paragram.preparation.row_files import texts_of
from st_paragram.preparation.settings import PrepareSettings
from st_paragram.stages.metadata import write_metadata
from st_paragram.stages.stage import Stage
from st_paragram.tokenizers.sentencepiece import train_vocabulary

VERSION = 1  # of the results: count it up when they change


@dataclass(frozen=True)
class VocabularyStage(Stage):
    """The one task trains the vocabulary on the first `sample_pairs` pairs, a uniform sample of all.

    Attributes:
        plan: The order.
        settings: Of the preparation.
        given: A file whose vocabulary takes the place of a trained one; its name tells its content.
    """

    name: ClassVar[str] = "vocabulary"
    plan: PlanStage
    settings: PrepareSettings
    given: Path | None = None

    def digests(self) -> list[str]:
        """The one digest."""
        if self.given:
            return [digest(VERSION, "given", self.given.name)]
        names = ("vocab_size", "coverage", "sample_pairs", "max_sentence_bytes", "vocab_threads", "seed")
        return [digest(VERSION, self.plan.digests(), [getattr(self.settings, name) for name in names])]

    def results(self) -> list[Path]:
        """The one model file."""
        return [self.folder() / "sentencepiece.model"]

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
        settings, plan = self.settings, self.plan.plan()
        pairs = (pair for task in range(len(plan.files)) for pair in texts_of(plan.rows(task)))
        sample = islice(pairs, settings.sample_pairs)
        return train_vocabulary(
            (sentence for pair in sample for sentence in pair),
            size=settings.pieces(sum(plan.quotas)),
            character_coverage=settings.coverage,
            num_threads=settings.vocab_threads,
            max_sentence_bytes=settings.max_sentence_bytes,
            seed=settings.seed,
        )
