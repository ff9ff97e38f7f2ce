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
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from st_paragram.core.extras import installed_version
from st_paragram.core.files import atomic, digest, file_digest, names_of
from st_paragram.core.formatting import counted
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.core.model_directory.find import find
from st_paragram.core.text.tables import read_texts
from st_paragram.core.text.translation_files import pair_writer, tmx_languages
from st_paragram.errors import MiningError, SettingsError, refused
from st_paragram.tools.bitext_mining.candidates import (
    Candidates,
    ScoredPairs,
    candidate_pairs,
    one_to_one,
    unordered,
)
from st_paragram.tools.bitext_mining.groups import Group, find_groups
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors.exact import exact_both_ways, exact_within
from st_paragram.tools.neighbors.inexact import (
    Effort,
    Index,
    choose_index,
    find_effort,
    trained_index,
    write_index,
)
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

_Search = Callable[[int, int], Sequence[Neighbors]]

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
        if self.effort is None:
            return "exact"
        parts = f" in {self.parts} parts" if self.parts > 1 else ""
        return f"index {self.index}{parts}, {self.effort}"


@dataclass(frozen=True)
class MiningReport:
    """The numbers of a mining run.

    Attributes:
        texts: Names of the texts.
        counts: Counts of their lines.
        searched: How each direction was searched.
        pairs: Number of pairs, which are written unless there are groups.
        scores: Share of the pairs -> score that they reach: {"0": the best score, ..., "1": the
            worst}.
        seconds: Time of each part of the work: sentences, embed, search, pairs.
        groups: Number of written groups.
    """

    texts: tuple[str, ...]
    counts: tuple[SentenceCounts, ...]
    searched: tuple[Searched, ...]
    pairs: int
    scores: dict[str, float]
    seconds: dict[str, float]
    groups: int = 0

    def table(self) -> str:
        """Format the report as plain text."""
        lines = []
        for name, counts in zip(self.texts, self.counts, strict=True):
            left_out = (
                f"{counts.blank:,} blank, {counts.near_empty:,} near-empty, {counts.repeated:,}"
                " repeated"
            )
            if counts.boilerplate:
                left_out += f", {counts.boilerplate:,} too frequent"
            if counts.unknown:
                left_out += f", {counts.unknown:,} without a known token"
            lines.append(
                f"{name}: {counted(counts.lines, 'line')}, {counted(counts.sentences, 'sentence')}"
                f" ({left_out}; the most frequent occurs {counted(counts.most_repeated, 'time')})"
            )
        directions = ["source to target", "target to source"]
        if len(self.texts) == 1:
            directions = ["among themselves"]
        for direction, searched in zip(directions, self.searched, strict=True):
            lines.append(f"{direction}: {searched}")
        if self.scores:
            scores = [f"{float(share):.0%} {score:.3f}" for share, score in self.scores.items()]
            lines.append(
                f"scores: best {self.scores['0']:.3f}; reached by this share of the pairs:"
                f" {', '.join(scores[1:])}"
            )
        seconds = ", ".join(f"{step} {time:.1f}" for step, time in self.seconds.items())
        lines.append(f"seconds: {seconds}")
        return "\n".join(lines)


def mine(
    texts: str | Sequence[str],
    output: str | Path,
    model: str,
    settings: MiningSettings | None = None,
    overwrite: bool = False,
    work: str | Path | None = None,
    columns: str | Sequence[str | None] = (),
    languages: tuple[str, str] | None = None,
) -> MiningReport:
    """Find translations in two texts, or paraphrases in one, and write them to a file.

    Args:
        texts: Source and target, or one text for paraphrases. Plain or compressed, one sentence per
            line.
        output: Output file with rows `score TAB source TAB target`, best pairs first; for groups,
            with rows `group TAB sentence`, largest groups first, each from its central sentence.
        model: Directory, name or hub id of a model.
        settings: Mining options.
        overwrite: Replace an existing output.
        work: Folder in which `st_paragram.work` keeps sentences, vectors and neighbors. None: a
            hidden folder next to the output, which is removed at the end.
        columns: Column of each text if it is a table; None, or an empty list, for plain text.
        languages: Languages of both sides, for an output in TMX (`.tmx`).

    Examples:
        >>> from st_paragram import MiningSettings, mine
        >>> report = mine(["wiki.en", "wiki.es"], "mined.tsv", "p-sp-mini",
        ...     MiningSettings(threshold=0.0))
    """
    settings = settings or MiningSettings()
    languages = tmx_languages(output, languages)
    output = Path(output)
    texts = names_of(texts)
    columns = names_of(columns) or [None] * len(texts)
    wanted = 1 if settings.paraphrase else 2
    if len(texts) != wanted:
        raise SettingsError(
            f"{counted(len(texts), 'text')} given, {wanted} needed; paraphrases are mined in one"
            " text, translations in two"
        )
    if settings.groups and (
        not settings.paraphrase
        or settings.margin is not Margin.ABSOLUTE
        or settings.threshold is None
    ):
        raise SettingsError(
            "groups are of paraphrases by cosines; give one text (--paraphrase), the margin"
            " absolute, and a threshold such as 0.75"
        )
    if settings.min_size > 2 and not settings.groups:
        raise SettingsError(f"min_size is {settings.min_size}, which is of groups; add --groups")
    if any(columns) and settings.with_ids:
        raise SettingsError(
            "columns cannot be combined with ids; leave one out (ids are read only from plain text)"
        )
    if languages and settings.with_ids:
        raise SettingsError(f"{output}: TMX has texts instead of ids; name a file .tsv")
    if languages and settings.groups:
        raise SettingsError(f"{output}: TMX has pairs instead of groups; name a file .tsv")
    text_keys = [digest(file_digest(text), installed_version()) for text in texts]
    model_folder = find(model)
    model_key = fingerprint(model_folder)
    times = [time.perf_counter()]
    work = Path(work) if work else None
    with work_folder(output, overwrite, work, keep=work is not None) as folder:
        sides = []
        keys = []
        for text, text_key, column in zip(texts, text_keys, columns, strict=True):
            key = digest(text_key, column, settings.with_ids, settings.most_repeats)
            sides.append(_read(folder / f"sentences-{key}", text, column, settings))
            keys.append(digest(key, model_key, settings.vector_type, _UNKNOWN))
        times.append(time.perf_counter())
        vectors = []
        for text, key, side in zip(texts, keys, sides, strict=True):
            place = folder / f"vectors-{key}"
            rows = embed_sentences(side, place, model_folder, settings.vector_type, name=text)
            vectors.append(rows)
        for text, rows in zip(texts, vectors, strict=True):
            usable_neighbors(text, len(rows) - settings.paraphrase, settings.neighbors)
        times.append(time.perf_counter())
        forward, backward, searched = _search(folder, vectors, keys, settings)
        times.append(time.perf_counter())
        pairs = candidate_pairs(forward, backward, settings.margin, settings.candidates)
        if settings.paraphrase:
            pairs = unordered(pairs)
            if settings.candidates is Candidates.MAX:
                pairs = one_to_one(pairs)
        if settings.threshold is not None:
            pairs = pairs.at(pairs.scores >= settings.threshold)
        groups = list[Group]()
        if settings.groups and settings.threshold is not None:
            groups = find_groups(forward, vectors[0], settings.threshold, settings.min_size)
            with atomic(output) as file:
                for number, group in enumerate(groups, 1):
                    numbers = vectors[0].stored_numbers(group)
                    for text in sides[0].ids_or_texts(numbers):
                        file.write(f"{number}\t{text}\n".encode())
        else:
            stored = ScoredPairs(
                vectors[0].stored_numbers(pairs.source),
                vectors[-1].stored_numbers(pairs.target),
                pairs.scores,
            )
            _write(stored, sides, output, languages)
        times.append(time.perf_counter())
    counts = []
    for side, rows in zip(sides, vectors, strict=True):
        counts.append(side.counts.without_unknown(len(rows)))
    scores = {}
    if len(pairs):
        for share in _SHARES:
            scores[f"{share:g}"] = float(np.quantile(pairs.scores, 1 - share))
    return MiningReport(
        texts=tuple(texts),
        counts=tuple(counts),
        searched=searched,
        pairs=len(pairs),
        scores=scores,
        seconds=dict(zip(_STEPS, np.diff(times).tolist(), strict=True)),
        groups=len(groups),
    )


def _read(path: Path, text: str, column: str | None, settings: MiningSettings) -> Sentences:
    """Return the distinct sentences of a text, in a folder."""

    def write(path: Path) -> None:
        lines = read_texts(text, column)
        write_sentences(
            lines, text, path, with_ids=settings.with_ids, most_repeats=settings.most_repeats
        )

    return Sentences(make(path, write))


def _search(
    folder: Path, vectors: Sequence[Rows], keys: Sequence[str], settings: MiningSettings
) -> tuple[Neighbors, Neighbors, tuple[Searched, ...]]:
    """Return neighbors of source rows and of target rows, and how they were found.

    `vectors` are those of two texts, or of one for paraphrases, and `keys` are digests of
    everything they depend on. For paraphrases, both neighbors are the same.
    """
    source = vectors[0]
    target = vectors[-1]
    k = settings.neighbors
    fewer, more = sorted([len(source), len(target)])
    # lists for the smaller text: an index cannot have more lists than rows
    factory = choose_index(settings.index, more, fewer, dim=source.dim)
    if factory is not None:
        return _through_indexes(folder, factory, vectors, keys, settings)
    place = folder / f"neighbors-{digest(keys, k)}"
    if settings.paraphrase:
        among = _search_within(place, source, k)
        return among, among, (Searched(),)

    def search(begin: int, end: int) -> tuple[Neighbors, Neighbors]:
        return exact_both_ways(source.rows(begin, end), target, k)

    forward_parts = []
    backward_parts = []
    for begin, (forward, backward) in _blocks(place, len(source), search):
        forward_parts.append(forward)
        backward = Neighbors(backward.similarities, backward.indices + begin)
        backward_parts.append((0, backward))
    return (
        joined(forward_parts),
        united(backward_parts, len(target), min(k, len(source))),
        (Searched(), Searched()),
    )


def _search_within(place: Path, rows: Rows, k: int) -> Neighbors:
    """Return the nearest other rows of each row."""
    k = min(k, len(rows) - 1) + 1

    def search(begin: int, end: int) -> tuple[Neighbors, Neighbors]:
        return exact_within(rows, begin, end, k)

    def parts() -> Iterator[tuple[int, Neighbors]]:
        for begin, (own, later) in _blocks(place, len(rows), search):
            yield begin, own
            yield begin + len(own.indices), later

    return united(parts(), len(rows), k).without_self(np.arange(len(rows)))


def _through_indexes(
    folder: Path,
    factory: str,
    vectors: Sequence[Rows],
    keys: Sequence[str],
    settings: MiningSettings,
) -> tuple[Neighbors, Neighbors, tuple[Searched, ...]]:
    """Do the same as `_search` through an index of each text. All indexes have the same lists."""
    key = digest(keys, factory, settings.memory, settings.seed)
    place = folder / f"index-{key}"

    def train(path: Path) -> None:
        write_index(trained_index(factory, vectors, settings.seed), path)

    trained = make(place / "trained.faiss", train)
    indexes = []
    for number, rows in enumerate(vectors):
        indexes.append(Index(factory, rows, place / f"text-{number}", settings, trained))
    forward, how_forward = _through_index(folder, digest(key, "forward"), indexes, settings)
    if settings.paraphrase:
        return forward, forward, (how_forward,)
    backward, how_backward = _through_index(
        folder, digest(key, "backward"), indexes[::-1], settings
    )
    return forward, backward, (how_forward, how_backward)


def _through_index(
    folder: Path, key: str, indexes: Sequence[Index], settings: MiningSettings
) -> tuple[Neighbors, Searched]:
    """Return neighbors of the first index's rows in the last, or of one index's other rows."""
    queries = indexes[0]
    index = indexes[-1]
    rows = queries.corpus
    within = settings.paraphrase
    effort = find_effort(rows, index, settings.neighbors, settings=settings, own=within)
    k = min(settings.neighbors, len(index.corpus) - within)

    def search(begin: int, end: int) -> list[Neighbors]:
        lists = None if queries.lists is None else queries.lists[begin:end]
        neighbors = index.search(rows.rows(begin, end), k + within, lists)
        if within:
            neighbors = neighbors.without_self(np.arange(begin, end))
        return [neighbors]

    place = folder / f"neighbors-{digest(key, settings.neighbors, effort.effort)}"
    parts = [part for _, (part,) in _blocks(place, len(rows), search)]
    return joined(parts), Searched(index.factory, len(index.parts), effort)


def _blocks(place: Path, count: int, search: _Search) -> Iterator[tuple[int, list[Neighbors]]]:
    """Yield the first row and the results of each block of `count` rows.

    Blocks are computed unless they are in the folder.
    """

    def write(begin: int, end: int, path: Path) -> None:
        arrays: list[NDArray[Any]] = []
        for neighbors in search(begin, end):
            arrays.append(neighbors.similarities)
            arrays.append(neighbors.indices)
        np.savez(path, *arrays)

    for begin, end in tqdm(
        list(blocks(count, _QUERIES)), desc="search", unit=" blocks", disable=None, leave=False
    ):
        path = make(place / f"{begin:09d}.npz", partial(write, begin, end))
        with (
            refused(MiningError, path, "damaged", "remove it and start again", BadZipFile),
            np.load(path) as file,
        ):
            arrays = [file[name] for name in file.files]
        pairs = zip(arrays[::2], arrays[1::2], strict=True)
        yield begin, [Neighbors(cosines, rows) for cosines, rows in pairs]


def _write(
    pairs: ScoredPairs,
    sides: Sequence[Sentences],
    output: Path,
    languages: tuple[str, str] | None,
) -> None:
    """Write `score TAB source TAB target`, or TMX in two languages."""
    with atomic(output) as file, pair_writer(file, languages) as writer:
        for begin, end in blocks(len(pairs), _WRITTEN):
            block = pairs.at(slice(begin, end))
            source = sides[0].ids_or_texts(block.source)
            target = sides[-1].ids_or_texts(block.target)
            for score, first, second in zip(block.scores.tolist(), source, target, strict=True):
                writer.write(first, second, score=score)
