"""Sixth stage: encode all rows, in their order, with the vocabulary."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from st_paragram.core.files import atomic, digest
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.tools.preparation.plan_stage import PlanStage
from st_paragram.tools.preparation.report import LanguageLengths, PrepareReport
from st_paragram.tools.preparation.row_files import SOURCE, texts_of
from st_paragram.tools.preparation.vocabulary_stage import VocabularyStage
from st_paragram.tools.stages.metadata import read_metadata, write_metadata
from st_paragram.tools.stages.stage import Stage

VERSION = 3  # of the results: count it up when they change


@dataclass(frozen=True)
class EncodeStage(Stage):
    """A task encodes the rows of one file of the order.

    The result is an `.npz` file of `a_ids`, `a_offsets`, `b_ids`, `b_offsets`; ids are of the smallest unsigned type
    that holds the vocabulary; and of `sources`, uint16, the numbers of the texts that rows come from. The metadata have
    `rows`, `cut`, the sentences that were cut at the largest number of pieces, and `counts`: for each text the number
    of its rows, and for each side all pieces and all characters, int64 (texts, 5).

    Attributes:
        plan: The order.
        vocabulary: With which to encode.
        max_tokens: Sentences are cut at this many ids.
    """

    name: ClassVar[str] = "encode"
    plan: PlanStage
    vocabulary: VocabularyStage
    max_tokens: int

    def digests(self) -> list[str]:
        """The one digest."""
        settings = self.vocabulary.settings
        how = [settings.lower_case, settings.segmentation.value, self.max_tokens]
        return [digest(VERSION, self.plan.digests(), self.vocabulary.digests(), how)]

    def results(self) -> list[Path]:
        """A file of ids per file of rows."""
        folder = self.folder()
        return [folder / f"{path.stem}.npz" for path in self.plan.files()]

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """The tokenizers of both sides, with what is done to a text before them."""
        return self.vocabulary.tokenizers()

    def report(self) -> PrepareReport:
        """The numbers of all stages."""
        report = self.plan.report()
        metadata = [read_metadata(path) for path in self.results()]
        report.vocabulary_size = len(self.tokenizers()[0])
        report.lengths = _lengths(
            [source.languages for source in report.sources], [each["counts"] for each in metadata]
        )
        report.pieces = tuple(sum(row[side] for each in metadata for row in each["counts"]) for side in (1, 3))
        report.max_pieces, report.cut_sentences = self.max_tokens, sum(each["cut"] for each in metadata)
        return report

    def run(self, task: int) -> None:
        """Encode."""
        started = time.perf_counter()
        result = self.results()[task]
        keyed = self.plan.plan().rows(task)
        arrays: dict[str, Any] = {"sources": np.array([int(row[SOURCE]) for row in keyed], np.uint16)}
        rows = texts_of(keyed)
        del keyed  # as large as the texts
        tokenizers = self.tokenizers()
        smallest = np.min_scalar_type(len(tokenizers[0]) - 1)
        sources = arrays["sources"]
        counts, cut = [np.bincount(sources)], 0
        for number, side in enumerate("ab"):
            encoded = tokenizers[number].encode_normalized([row[number] for row in rows], self.max_tokens)
            arrays |= {f"{side}_ids": encoded.ids.astype(smallest), f"{side}_offsets": encoded.offsets}
            lengths = np.diff(encoded.offsets), np.fromiter((len(row[number]) for row in rows), np.int64, len(rows))
            counts += [np.bincount(sources, each).astype(np.int64) for each in lengths]
            cut += encoded.cut
        with atomic(result) as handle:
            np.savez(handle, **arrays)
        seconds = time.perf_counter() - started
        write_metadata(
            result, {"rows": len(rows), "counts": np.stack(counts, 1).tolist(), "cut": cut, "seconds": seconds}
        )


def _lengths(pairs: list[str], counts: list[list[list[int]]]) -> dict[str, LanguageLengths]:
    """Sum the counts of all tasks by language; a task has a row for each text up to the last one that it has seen."""
    found: dict[str, LanguageLengths] = {}
    for rows in counts:
        for pair, (sentences, *sides) in zip(pairs, rows, strict=False):
            for language, pieces, characters in zip(pair.split("-"), sides[::2], sides[1::2], strict=True):
                found.setdefault(language, LanguageLengths()).add(sentences, pieces, characters)
    return {language: each for language, each in sorted(found.items()) if each.sentences}
