"""Score given pairs by margin: their cosines against those of their sentences' surroundings.

What mining does with two texts (see `margin`) is done here with pairs that exist already, a found or a bought bitext,
to separate good pairs from bad pairs. The surroundings of a first sentence are its k nearest in a text of the second
language, the target background, and the other way round. A text may be the pairs' own side: then a pair's partner is
a neighbor like any other, as it is in mining.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np

from st_paragram.core.files import STDIN, atomic, locked
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import MiningError, SettingsError
from st_paragram.tools.bitext_mining.margin import DEFAULT_K, DEFAULT_MARGIN, Margin, Scores, margin_scores
from st_paragram.tools.bitext_mining.settings import MarginSettings
from st_paragram.tools.search.content import Content
from st_paragram.tools.search.effort import describe_recall
from st_paragram.tools.search.neighbours import Vectors
from st_paragram.tools.search.search_index import SearchIndex
from st_paragram.tools.search.settings import FLAT, LEAST_MEMORY

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Background:
    """A scorer of pairs for `score_files.score_pairs` and `score_files.score_file`.

    Attributes:
        source: Sentences of the first language.
        target: Sentences of the second language.
        margin: RATIO or DISTANCE.
        k: Neighbors.
    """

    source: SearchIndex
    target: SearchIndex
    margin: Margin = DEFAULT_MARGIN
    k: int = DEFAULT_K

    def __post_init__(self) -> None:
        """Check that they belong together.

        Raises:
            MiningError: A text has fewer than k sentences, or they are of two models, or an index is of answers.
            SettingsError: The margin has no use for a background.
        """
        _check_margin(self.margin)
        if self.k < 1:
            raise SettingsError(f"k is {self.k}; it must be at least 1")
        for index in (self.source, self.target):
            if index.content is not Content.SENTENCES:
                raise MiningError(f"{index.folder}: an index of {index.content.value}; make one without --answers")
            if len(index) < self.k:
                seen = f"{len(index)} distinct sentences, but {self.k} neighbors are needed"
                raise MiningError(f"{index.metadata.source}: {seen}; give more text or a smaller k")
        if self.source.metadata.fingerprint != self.target.metadata.fingerprint:
            names = f"{self.source.metadata.source} and {self.target.metadata.source}"
            raise MiningError(f"{names} are embedded with different models; index both with the same model")

    def __call__(self, first: Vectors, second: Vectors) -> Scores:
        """Scores of pairs of embeddings of length 1, float32 (n, D) twice to float64 (n,)."""
        cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
        return margin_scores(cosines, self._means(self.target, first), self._means(self.source, second), self.margin)

    def _means(self, index: SearchIndex, vectors: Vectors) -> Scores:
        """Mean cosine of each row with its k nearest; equal rows are looked up once."""
        seen: dict[bytes, int] = {}
        which = np.fromiter((seen.setdefault(row.tobytes(), len(seen)) for row in vectors), np.int64, len(vectors))
        _, first = np.unique(which, return_index=True)
        return index.neighbours(vectors[first], self.k).means[which]

    def tune(self, settings: MarginSettings) -> None:
        """Let inexact indexes look as hard as it takes to find enough neighbors of the other side's sentences."""
        for index, other in ((self.source, self.target), (self.target, self.source)):
            if index.metadata.factory != FLAT:
                found = index.tune(other.vectors, self.k, settings)
                said = describe_recall(found.recall, found.recall_at_k, found.k)
                logger.info("%s: %s finds %s", index.metadata.source, index.metadata.factory, said)


@contextmanager
def opened(source: str, target: str, model: Path, settings: MarginSettings, work: Path) -> Iterator[Background]:
    """A background from two texts, or from two index folders (`SearchIndex.build`) of the same model.

    Args:
        source: Of the first language.
        target: Of the second one; the same path as `source` for paraphrases.
        model: Directory of the model.
        settings: How to search, and how to set a cosine against what is found.
        work: A folder for the texts' vectors, removed at the end.

    Raises:
        ParagramError: The texts, folders or settings are refused; another run is at work in the folder.
    """
    if source == target == STDIN:
        raise SettingsError("both backgrounds are standard input; give at least one by its path")
    _check_margin(settings.margin)
    with _work_folder(work):
        half = replace(settings, memory=max(settings.memory // 2, LEAST_MEMORY))
        first = _index(source, work / "source.index", model, half)
        second = first if source == target else _index(target, work / "target.index", model, half)
        background = Background(first, second, settings.margin, settings.k)
        background.tune(settings)
        yield background


@contextmanager
def of_pairs(
    pairs: TextSource, model: Path, settings: MarginSettings, work: Path, others: Iterable[tuple[str, str]] = ()
) -> Iterator[Background]:
    """A background from the two sides of the pairs themselves, which are read once more than otherwise.

    Args:
        pairs: Files, which can be read again.
        others: More pairs that will be scored: their partners must be among the neighbors, too.
        model: As for `opened`.
        settings: As for `opened`.
        work: As for `opened`; holds a copy of the two sides, too.

    Raises:
        ParagramError: As for `opened`.
    """
    if not all(Path(path).is_file() for path in pairs.paths):
        raise SettingsError(f"{pairs.name}: must be read twice to serve as its own background; give a file")
    _check_margin(settings.margin)
    sides = work.with_name(f"{work.name}.sides")
    with _work_folder(sides):
        paths = sides / "first", sides / "second"
        with atomic(paths[0]) as first, atomic(paths[1]) as second:
            for one, other in chain(read_pairs(pairs), others):
                first.write(f"{one}\n".encode())
                second.write(f"{other}\n".encode())
        try:
            with opened(str(paths[0]), str(paths[1]), model, settings, work) as background:
                yield background
        except MiningError as error:
            named = str(error).replace(str(paths[0]), f"{pairs.name}, first side")
            raise MiningError(named.replace(str(paths[1]), f"{pairs.name}, second side")) from error


def _check_margin(margin: Margin) -> None:
    if margin is Margin.ABSOLUTE:
        raise SettingsError("absolute scores have no background; leave it out, or choose ratio or distance")


def _index(text: str, folder: Path, model: Path, settings: MarginSettings) -> SearchIndex:
    if Path(text).is_dir():
        return SearchIndex(text, model, settings.memory)
    return SearchIndex.build(text, folder, model, settings)


@contextmanager
def _work_folder(folder: Path) -> Iterator[None]:
    """A folder of this run alone, empty but for its lock, and gone afterwards."""
    with locked(folder):
        try:
            for path in folder.iterdir():  # of a run that was killed
                if path.is_dir():
                    shutil.rmtree(path)
            yield
        finally:
            shutil.rmtree(folder, ignore_errors=True)
