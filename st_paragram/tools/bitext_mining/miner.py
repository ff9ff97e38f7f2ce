"""Mining from end to end: sentences, embeddings, neighbors in both directions, margins, pairs.

Each step makes files in a work folder unless they exist; their folders are named by a digest of
everything that they depend on. So an interrupted run is resumed, and in a folder that is kept, a
run with another margin or threshold does not search again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from tqdm import tqdm

from st_paragram.core.extras import installed_version
from st_paragram.core.files import atomic, digest, file_digest, names_of
from st_paragram.core.formatting import counted
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.core.model_directory.find import find
from st_paragram.core.text.tables import read_texts
from st_paragram.errors import MiningError, SettingsError, refused
from st_paragram.tools.bitext_mining.candidates import (
    Candidates,
    ScoredPairs,
    candidate_pairs,
    one_to_one,
    unordered,
)
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors.exact import exact_both_ways, exact_within
from st_paragram.tools.neighbors.inexact import Effort, Index, choose_index, find_effort
from st_paragram.tools.neighbors.results import Neighbors, joined, united
from st_paragram.tools.neighbors.sentences import (
    SentenceCounts,
    Sentences,
    usable_neighbors,
    write_sentences,
)
from st_paragram.tools.neighbors.vectors import Rows, blocks, embed_sentences
from st_paragram.tools.work import make, work_folder

logger = logging.getLogger(__name__)

_Write = Callable[[int, int], Sequence[Neighbors]]

_UNKNOWN = "zeros without a known token or letter"  # the rule of stored vectors
_STEPS = ("sentences", "embed", "search", "pairs")
_QUERIES = 1 << 15  # queries searched at a time, which an interruption can lose
_WRITTEN = 1 << 16  # pairs written at a time
_SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


@dataclass(frozen=True)
class Searched:
    """How one side was searched: exactly, or by `parts` indexes, one after another."""

    index: str | None = None  # a factory string
    parts: int = 1
    effort: Effort | None = None  # search effort of an index

    def __str__(self) -> str:
        """Describe the search in words."""
        parts = f" in {self.parts} parts" if self.parts > 1 else ""
        return f"index {self.index}{parts}, {self.effort}" if self.effort else "exact"


@dataclass(frozen=True)
class MiningReport:
    """The numbers of a mining run.

    Attributes:
        texts: Names of the texts.
        counts: Counts of their lines.
        searched: How each direction was searched.
        pairs: Number of written pairs.
        scores: Share of the pairs -> score that they reach: {"0": the best score, ..., "1": the
            worst}.
        seconds: Time of each part of the work: sentences, embed, search, pairs.
    """

    texts: tuple[str, ...]
    counts: tuple[SentenceCounts, ...]
    searched: tuple[Searched, ...]
    pairs: int
    scores: dict[str, float]
    seconds: dict[str, float]

    def table(self) -> str:
        """Format the report as plain text."""
        lines = []
        for name, counts in zip(self.texts, self.counts, strict=True):
            read = f"{counted(counts.lines, 'line')}, {counted(counts.sentences, 'sentence')}"
            left_out = (
                f"{counts.blank:,} blank, {counts.near_empty:,} near-empty, {counts.repeated:,}"
                " repeated"
            )
            often = f", {counts.boilerplate:,} too frequent" if counts.boilerplate else ""
            often += f", {counts.unknown:,} without a known token" if counts.unknown else ""
            most = f"the most frequent occurs {counted(counts.most_repeated, 'time')}"
            lines.append(f"{name}: {read} ({left_out}{often}; {most})")
        ways = (
            ("among themselves",)
            if len(self.texts) == 1
            else ("source to target", "target to source")
        )
        lines += [f"{way}: {searched}" for way, searched in zip(ways, self.searched, strict=True)]
        if self.scores:
            best, *others = self.scores.items()
            shown = ", ".join(f"{float(share):.0%} {score:.3f}" for share, score in others)
            lines.append(f"scores: best {best[1]:.3f}; reached by this share of the pairs: {shown}")
        took = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        return "\n".join([*lines, f"seconds: {took}"])


def mine(
    texts: str | Sequence[str],
    output: str | Path,
    model: str,
    settings: MiningSettings | None = None,
    overwrite: bool = False,
    work: str | Path | None = None,
    columns: str | Sequence[str | None] = (),
) -> MiningReport:
    """Find translations in two texts, or paraphrases in one, and write them to a file.

    Args:
        texts: Source and target, or one text for paraphrases. Plain or compressed, one sentence per
            line.
        output: Output file with rows `score TAB source TAB target`, best pairs first.
        model: Directory, name or hub id of a model.
        settings: Mining options.
        overwrite: Replace an existing output.
        work: Folder in which `st_paragram.work` keeps sentences, vectors and neighbors. None: a
            hidden folder next to the output, which is removed at the end.
        columns: Column of each text if it is a table; None, or an empty list, for plain text.

    Example:
        >>> from st_paragram import MiningSettings, mine
        >>> report = mine(["wiki.en", "wiki.es"], "mined.tsv", "p-sp-mini",
        ...     MiningSettings(threshold=0.0))
    """
    settings, output = settings or MiningSettings(), Path(output)
    texts = names_of(texts)
    columns = names_of(columns)
    wanted = 1 if settings.paraphrase else 2
    if len(texts) != wanted:
        seen = f"{counted(len(texts), 'text')} given, {wanted} needed"
        raise SettingsError(f"{seen}; paraphrases are mined in one text, translations in two")
    if any(columns) and settings.with_ids:
        raise SettingsError(
            "columns cannot be combined with ids; leave one out (ids are read only from plain text)"
        )
    keys = [digest(file_digest(text), installed_version()) for text in texts]
    found, named, times = find(model), columns or [None] * wanted, [time.perf_counter()]
    with work_folder(
        output, overwrite, Path(work) if work else None, keep=work is not None
    ) as folder:
        keys = [
            digest(*each, settings.with_ids, settings.most_repeats)
            for each in zip(keys, named, strict=True)
        ]
        sides = [_read(folder, *each, settings) for each in zip(texts, keys, named, strict=True)]
        times.append(time.perf_counter())
        of_vectors = fingerprint(found), settings.vector_type, _UNKNOWN
        keys = [digest(key, *of_vectors) for key in keys]
        vectors = [
            embed_sentences(side, folder / f"vectors-{key}", found, settings.vector_type, text)
            for text, key, side in zip(texts, keys, sides, strict=True)
        ]
        for text, rows in zip(texts, vectors, strict=True):
            usable_neighbors(text, len(rows) - settings.paraphrase, settings.neighbors)
        times.append(time.perf_counter())
        forward, backward, searched = _search(folder, vectors, keys, settings)
        times.append(time.perf_counter())
        pairs = candidate_pairs(forward, backward, settings.margin, settings.candidates)
        if settings.paraphrase:
            pairs = unordered(pairs)
            pairs = one_to_one(pairs) if settings.candidates is Candidates.MAX else pairs
        if settings.threshold is not None:
            pairs = pairs.at(pairs.scores >= settings.threshold)
        source = vectors[0].stored_numbers(pairs.source)
        target = vectors[-1].stored_numbers(pairs.target)
        _write(
            ScoredPairs(source, target, pairs.scores),
            (sides[0], sides[-1]),
            settings.with_ids,
            output,
        )
        times.append(time.perf_counter())
    scores = {
        f"{share:g}": float(np.quantile(pairs.scores, 1 - share)) for share in _SHARES if len(pairs)
    }
    seconds = dict(zip(_STEPS, np.diff(times).tolist(), strict=True))
    counts = tuple(
        side.counts.without_unknown(len(rows)) for side, rows in zip(sides, vectors, strict=True)
    )
    return MiningReport(tuple(texts), counts, searched, len(pairs), scores, seconds)


def _read(
    folder: Path, text: str, key: str, column: str | None, settings: MiningSettings
) -> Sentences:
    """Return the distinct sentences of a text."""

    def write(path: Path) -> None:
        write_sentences(
            read_texts(text, column), text, path, settings.with_ids, settings.most_repeats
        )

    return Sentences(make(folder / f"sentences-{key}", write))


def _search(
    folder: Path, vectors: Sequence[Rows], keys: Sequence[str], settings: MiningSettings
) -> tuple[Neighbors, Neighbors, tuple[Searched, ...]]:
    """Return neighbors of the source rows and of the target rows, and how they were found; twice
    for paraphrases.

    `vectors` are those of two texts, or of one for paraphrases, and `keys` are digests of
    everything they depend on.
    """
    source, target, k = vectors[0], vectors[-1], settings.neighbors
    k_forward = min(k, len(target) - settings.paraphrase)
    k_backward = min(k, len(source) - settings.paraphrase)
    if factory := choose_index(settings.index, len(source), len(target), source.dim):
        sides = list(zip(vectors, keys, strict=True))
        ways = [
            _through_index(folder, factory, *each, settings)
            for each in zip(sides, sides[::-1], strict=True)
        ]
        return ways[0][0], ways[-1][0], tuple(way for _, way in ways)
    place = folder / f"neighbors-{digest(keys, k)}"
    if settings.paraphrase:
        parts = _blocks(
            place, len(source), lambda begin, end: exact_within(source, begin, end, k_forward + 1)
        )
        both = (
            (begin + number * len(own[0].indices), own[number])
            for begin, own in parts
            for number in (0, 1)
        )
        among = united(both, len(source), k_forward + 1).without_self(np.arange(len(source)))
        return among, among, (Searched(),)
    found = list(
        _blocks(
            place,
            len(source),
            lambda begin, end: exact_both_ways(source.rows(begin, end), target, k),
        )
    )
    back = ((0, Neighbors(own.similarities, own.indices + begin)) for begin, (_, own) in found)
    return (
        joined(own for _, (own, _) in found),
        united(back, len(target), k_backward),
        (Searched(), Searched()),
    )


def _through_index(
    folder: Path,
    factory: str,
    queries: tuple[Rows, str],
    corpus: tuple[Rows, str],
    settings: MiningSettings,
) -> tuple[Neighbors, Searched]:
    """Return neighbors of one text's rows in another text, or among its other rows; vectors come
    with digests.
    """
    (asked, key), (rows, other), within = queries, corpus, settings.paraphrase
    how = digest(other, factory, settings.memory, settings.seed)
    index = Index(factory, rows, folder / f"index-{how}", settings)
    effort = find_effort(asked, index, settings.neighbors, settings, within)
    k = min(settings.neighbors, len(rows) - within)

    def search(begin: int, end: int) -> list[Neighbors]:
        found = index.search(asked.rows(begin, end), k + within)
        return [found.without_self(np.arange(begin, end)) if within else found]

    place = folder / f"neighbors-{digest(key, how, settings.neighbors, effort.effort)}"
    found = joined(own for _, (own,) in _blocks(place, len(asked), search))
    return found, Searched(factory, len(index.parts), effort)


def _blocks(place: Path, count: int, search: _Write) -> Iterator[tuple[int, list[Neighbors]]]:
    """Yield the results for blocks of `count` rows, with their first rows; computed unless they are
    in the folder.
    """

    def write(begin: int, end: int, path: Path) -> None:
        found = search(begin, end)
        np.savez(path, *(array for each in found for array in (each.similarities, each.indices)))

    for begin, end in tqdm(
        list(blocks(count, _QUERIES)), desc="search", unit=" blocks", disable=None, leave=False
    ):
        path = make(place / f"{begin:09d}.npz", partial(write, begin, end))
        with (
            refused(MiningError, path, "damaged", "remove it and start again", BadZipFile),
            np.load(path) as file,
        ):
            arrays = [file[name] for name in file.files]
        yield begin, [Neighbors(*each) for each in zip(arrays[::2], arrays[1::2], strict=True)]


def _write(pairs: ScoredPairs, sides: Sequence[Sentences], with_ids: bool, output: Path) -> None:
    """Write `score TAB source TAB target`."""
    first, second = [side.ids if with_ids else side.texts for side in sides]
    with atomic(output) as file:
        for begin, end in blocks(len(pairs), _WRITTEN):
            some = pairs.at(slice(begin, end))
            rows = zip(some.scores.tolist(), first(some.source), second(some.target), strict=True)
            file.write(
                "".join(f"{score:.6f}\t{one}\t{other}\n" for score, one, other in rows).encode()
            )
