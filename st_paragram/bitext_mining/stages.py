"""The stages of mining: sentences, embeddings, indexes, effort, search. Each task leaves one result."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from st_paragram.bitext_mining.settings import FLAT, MiningSettings
from st_paragram.errors import MiningError
from st_paragram.files import atomic, digest
from st_paragram.models.cached_model import cached_model
from st_paragram.search import indexes
from st_paragram.search.neighbours import Neighbours
from st_paragram.search.sentences import Sentences, write_sentences
from st_paragram.search.stored_search import approximate, exact, without_self
from st_paragram.search.vectors import StoredVectors, blocks, even_size, pack
from st_paragram.stages.stage import Stage
from st_paragram.stages.work import read_metadata, write_metadata

VERSION = 1  # of results: count it up when they change
_SAMPLE = 1000  # queries that recall is measured on
_RESERVE = 200 << 20  # bytes of the memory that are for queries and results


@dataclass(frozen=True)
class SentenceStage(Stage):
    """A task finds the distinct sentences of one text."""

    name: ClassVar[str] = "sentences"
    folder: Path
    texts: tuple[str, ...]
    digests: tuple[str, ...]
    with_ids: bool
    most_repeats: int | None

    def results(self) -> list[Path]:
        """The texts of the sentences."""
        how = [VERSION, self.with_ids, self.most_repeats]
        return [self.folder / self.name / digest(each, how) / "text" for each in self.digests]

    @property
    def folders(self) -> set[Path]:
        """One for each text."""
        return {path.parent for path in self.results()}

    def local(self, task: int) -> bool:
        """Pipes can be read by the process that was started with them alone."""
        return not Path(self.texts[task]).is_file()

    def sentences(self, side: int) -> Sentences:
        """The sentences of a text."""
        return Sentences(self.results()[side].parent)

    def run(self, task: int) -> None:
        """Find them; raises as `write_sentences`."""
        write_sentences(self.texts[task], self.results()[task].parent, self.with_ids, self.most_repeats)


@dataclass(frozen=True)
class EmbedStage(Stage):
    """A task embeds one shard of one text's sentences."""

    name: ClassVar[str] = "embed"
    before: SentenceStage
    model: Path
    fingerprint: str
    settings: MiningSettings
    threads: int

    def results(self) -> list[Path]:
        """A `.npy` file for each shard, text by text."""
        return [path for side in range(len(self.before.texts)) for path in self.shards(side)]

    @property
    def folders(self) -> set[Path]:
        """One for each text."""
        return {self._folder(side) for side in range(len(self.before.texts))}

    def shards(self, side: int) -> list[Path]:
        """The shards of a text, in order."""
        count = len(list(blocks(len(self.before.sentences(side)), self.settings.rows)))
        return [self._folder(side) / f"{number:05d}.npy" for number in range(count)]

    def vectors(self, side: int) -> StoredVectors:
        """The embeddings of a text."""
        return StoredVectors(tuple(self.shards(side)))

    def run(self, task: int) -> None:
        """Embed a shard.

        Raises:
            MiningError: The model gives embeddings without a direction.
        """
        path = self.results()[task]
        side = next(side for side in range(len(self.before.texts)) if path.parent == self._folder(side))
        sentences, first = self.before.sentences(side), int(path.stem) * self.settings.rows
        rows = range(first, min(first + self.settings.rows, len(sentences)))
        model = cached_model(self.model, self.fingerprint, self.threads)
        vectors = model.encode(sentences.texts(rows), show_progress_bar=False)
        with atomic(path) as handle:
            np.save(handle, pack(vectors, self.settings.precision, self.before.texts[side]))
        write_metadata(path, {"rows": len(rows)})

    def _folder(self, side: int) -> Path:
        text = self.before.results()[side].parent.name
        how = [self.fingerprint, self.settings.precision.value, self.settings.rows]
        return self.before.folder / self.name / digest(VERSION, text, how)


@dataclass(frozen=True)
class SearchPlan:
    """What is searched for what: the n-th direction takes queries of one side and rows of another.

    Attributes:
        embed: Whose vectors.
        settings: Of the mining.
        workers: That share the memory.
    """

    embed: EmbedStage
    settings: MiningSettings
    workers: int

    @property
    def directions(self) -> list[tuple[int, int]]:
        """Side of the queries, side of the rows that are searched."""
        return [(0, 0)] if self.settings.paraphrase else [(0, 1), (1, 0)]

    def sizes(self, direction: int) -> tuple[int, int]:
        """Number of queries, number of rows that are searched."""
        queries, corpus = self.directions[direction]
        return len(self.embed.before.sentences(queries)), len(self.embed.before.sentences(corpus))

    def k(self, direction: int) -> int:
        """Neighbours to find, the query itself included where it is a row.

        Raises:
            MiningError: There are not as many sentences.
        """
        k, corpus = self.settings.k + self.settings.paraphrase, self.sizes(direction)[1]
        if k > corpus:
            text = self.embed.before.texts[self.directions[direction][1]]
            raise MiningError(
                f"{text}: {corpus} distinct sentences, but {self.settings.k} neighbours are wanted; "
                "give more text or a smaller k"
            )
        return k

    def factory(self, direction: int) -> str:
        """The index."""
        return indexes.choose_index(self.settings.index, *self.sizes(direction), self.embed.vectors(0).dim)

    def parts(self, direction: int) -> list[tuple[int, int]]:
        """Rows of each index; all indexes of a direction together are one corpus."""
        rows = indexes.rows_in(self.settings.memory, self.embed.vectors(0).dim)
        count = self.sizes(direction)[1]
        return list(blocks(count, even_size(count, rows)))

    def exact_rows(self) -> int:
        """Rows that an exact search holds in memory at a time."""
        share = max(self.settings.memory - _RESERVE, _RESERVE) // self.workers
        return max(1024, share // 2 // (4 * self.embed.vectors(0).dim))

    def digest(self, direction: int) -> str:
        """Tells searches apart; memory matters to inexact ones alone."""
        sides = [
            sorted(path.parent.name for path in self.embed.shards(side)[:1]) for side in self.directions[direction]
        ]
        factory = self.factory(direction)
        inexact = [] if factory == FLAT else [self.parts(direction), self.settings.recall, self.settings.seed]
        return digest(VERSION, sides, factory, self.k(direction), inexact)

    @property
    def root(self) -> Path:
        """The work folder."""
        return self.embed.before.folder


@dataclass(frozen=True)
class IndexStage(Stage):
    """A task builds the index of one part; there is none for exact searches."""

    name: ClassVar[str] = "index"
    plan: SearchPlan

    def results(self) -> list[Path]:
        """An index for each part, direction by direction."""
        return [path for direction in range(len(self.plan.directions)) for path in self.of(direction)]

    def of(self, direction: int) -> list[Path]:
        """The indexes of a direction."""
        if self.plan.factory(direction) == FLAT:
            return []
        folder = self._folder(direction)
        return [folder / f"{number:04d}.faiss" for number in range(len(self.plan.parts(direction)))]

    @property
    def folders(self) -> set[Path]:
        """One for each direction."""
        return {self._folder(direction) for direction in range(len(self.plan.directions))}

    def run(self, task: int) -> None:
        """Build an index; raises as `indexes.build`."""
        started, path = time.perf_counter(), self.results()[task]
        direction = next(each for each in range(len(self.plan.directions)) if path in self.of(each))
        begin, end = self.plan.parts(direction)[int(path.stem)]
        vectors = self.plan.embed.vectors(self.plan.directions[direction][1])
        index = indexes.build(self.plan.factory(direction), vectors, begin, end, self.plan.settings.seed)
        with atomic(path) as handle:
            indexes.write(index, Path(handle.name))
        write_metadata(path, {"seconds": time.perf_counter() - started})

    def _folder(self, direction: int) -> Path:
        return self.plan.root / self.name / self.plan.digest(direction)


@dataclass(frozen=True)
class EffortStage(Stage):
    """A task finds out how hard an inexact index must look, on a sample of the queries.

    Facts: `effort`, `recall`, the share of queries whose nearest row is found, `recall_at_k`, the share of their k
    nearest rows that are, and `tried`, both recalls by effort.
    """

    name: ClassVar[str] = "effort"
    before: IndexStage

    def results(self) -> list[Path]:
        """One for each direction with an inexact index."""
        plan = self.before.plan
        return [self._result(each) for each in range(len(plan.directions)) if plan.factory(each) != FLAT]

    @property
    def folders(self) -> set[Path]:
        """One for each direction."""
        return {self._result(direction).parent for direction in range(len(self.before.plan.directions))}

    def of(self, direction: int) -> dict[str, Any]:
        """The facts of a direction."""
        return read_metadata(self._result(direction))

    def run(self, task: int) -> None:
        """Search a sample exactly, then with growing effort."""
        result, plan = self.results()[task], self.before.plan
        direction = next(each for each in range(len(plan.directions)) if self._result(each) == result)
        queries, corpus = (plan.embed.vectors(side) for side in plan.directions[direction])
        k = plan.k(direction)
        rng = np.random.default_rng(plan.settings.seed)
        sample = queries.take(np.sort(rng.permutation(len(queries))[:_SAMPLE]))
        true = exact(sample, corpus, k, plan.exact_rows())
        tried: dict[str, tuple[float, float]] = {}
        for effort in indexes.EFFORTS:
            found = approximate(sample, corpus, search_parts(self.before, direction), k, effort)
            tried[str(effort)] = recall(found.nearest(1), true.nearest(1)), recall(found, true)
            if tried[str(effort)][0] >= plan.settings.recall or effort >= indexes.most_effort(plan.factory(direction)):
                break
        nearest, all_k = tried[str(effort)]
        write_metadata(result, {"effort": effort, "recall": nearest, "recall_at_k": all_k, "tried": tried})

    def _result(self, direction: int) -> Path:
        return self.before.plan.root / self.name / self.before.plan.digest(direction) / "effort"


@dataclass(frozen=True)
class SearchStage(Stage):
    """A task searches for the neighbours of one shard of queries: `.npz` of `similarities` and `indices`, (n, k)."""

    name: ClassVar[str] = "search"
    before: EffortStage

    def results(self) -> list[Path]:
        """A file for each shard of queries, direction by direction."""
        return [path for direction in range(len(self._plan.directions)) for path in self.of(direction)]

    def of(self, direction: int) -> list[Path]:
        """The results of a direction, in order."""
        folder = self._folder(direction)
        return [folder / f"{path.stem}.npz" for path in self._plan.embed.shards(self._plan.directions[direction][0])]

    @property
    def folders(self) -> set[Path]:
        """One for each direction."""
        return {self._folder(direction) for direction in range(len(self._plan.directions))}

    def neighbours(self, direction: int) -> Neighbours:
        """All of a direction, in order."""
        parts = []
        for path in self.of(direction):
            with np.load(path, allow_pickle=False) as arrays:
                parts.append((arrays["similarities"], arrays["indices"]))
        similarities, indices = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Neighbours(similarities, indices)

    def run(self, task: int) -> None:
        """Search."""
        plan, path = self._plan, self.results()[task]
        direction = next(each for each in range(len(plan.directions)) if path in self.of(each))
        sides = plan.directions[direction]
        queries, corpus = (plan.embed.vectors(side) for side in sides)
        begin = int(path.stem) * plan.settings.rows
        rows = queries.rows(begin, min(begin + plan.settings.rows, len(queries)))
        k, share = plan.k(direction), max(1, (os.cpu_count() or 1) // plan.workers)
        indexes.use_threads(share)
        if plan.factory(direction) == FLAT:
            found = exact(rows, corpus, k, plan.exact_rows())
        else:
            parts = search_parts(self.before.before, direction)
            found = approximate(rows, corpus, parts, k, self.before.of(direction)["effort"])
        if sides[0] == sides[1]:
            found = without_self(found, begin, k - 1)
        with atomic(path) as handle:
            np.savez(handle, similarities=found.similarities, indices=found.indices)
        write_metadata(path, {"rows": len(rows)})

    @property
    def _plan(self) -> SearchPlan:
        return self.before.before.plan

    def _folder(self, direction: int) -> Path:
        shards = digest(self._plan.digest(direction), self._plan.settings.rows)
        return self._plan.root / self.name / shards


def search_parts(stage: IndexStage, direction: int) -> Sequence[tuple[int, Any]]:
    """Where each part begins, and its index, mapped."""
    starts = [begin for begin, _ in stage.plan.parts(direction)]
    return [(begin, _index(path)) for begin, path in zip(starts, stage.of(direction), strict=True)]


def recall(found: Neighbours, true: Neighbours) -> float:
    """Share of the true neighbours that were found; equally near ones count for each other."""
    least = true.similarities[:, -1:]
    return float((found.similarities >= least).mean())


@lru_cache(maxsize=64)
def _index(path: Path) -> Any:  # noqa: ANN401
    return indexes.read(path)
