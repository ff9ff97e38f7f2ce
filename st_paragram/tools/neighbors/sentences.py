"""The distinct sentences of a text on disk, without sentences that have no content.

A folder holds `text`, lines with single spaces, and `text.npy`, memory-mapped: beginnings and ends
of the n distinct sentences, int64 (n, 2), in the order of first occurrence. There are `counts.json`
and, with ids, `ids` and `ids.npy`.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import read_record, write_json
from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import MiningError, refused

logger = logging.getLogger(__name__)

_LINES = 1 << 16  # in memory at a time


@dataclass
class SentenceCounts:
    """Counts of the lines of a text: `lines` is `sentences` plus all others.

    Attributes:
        lines: Lines read.
        blank: Lines with only white space.
        near_empty: Lines with fewer than two letters or digits.
        repeated: Repeated lines; the first is kept.
        boilerplate: Lines whose sentences occur too often, if there is a limit.
        sentences: Remaining distinct sentences.
        unknown: Distinct sentences in which the model knows no token.
        most_repeated: Frequency of the most frequent sentence.
    """

    lines: int = 0
    blank: int = 0
    near_empty: int = 0
    repeated: int = 0
    boilerplate: int = 0
    sentences: int = 0
    most_repeated: int = 0
    unknown: int = 0

    def without_unknown(self, known: int) -> SentenceCounts:
        """Return the counts with `known` sentences, when the others have no known token."""
        return replace(self, sentences=known, unknown=self.sentences - known)


class Sentences:
    """Distinct sentences, read through memory maps."""

    def __init__(self, folder: Path) -> None:
        """Open a folder made by `write_sentences`."""
        self._folder = folder
        with refused(MiningError, folder, "damaged", "remove the folder and start again"):
            self.counts = read_record(folder / "counts.json", SentenceCounts)

    def __len__(self) -> int:
        """Number of distinct sentences."""
        return self.counts.sentences

    def texts(self, rows: slice | NDArray[np.int64]) -> list[str]:
        """Return sentences by row."""
        return self._take("text", rows)

    def ids_or_texts(self, rows: slice | NDArray[np.int64]) -> list[str]:
        """Return the ids of sentences, from their first occurrence; without ids, the sentences."""
        has_ids = (self._folder / "ids").exists()
        return self._take("ids" if has_ids else "text", rows)

    def _take(self, name: str, rows: slice | NDArray[np.int64]) -> list[str]:
        cuts = np.load(self._folder / f"{name}.npy", mmap_mode="r")[rows].tolist()
        with (
            (self._folder / name).open("rb") as file,
            mmap(file.fileno(), 0, access=ACCESS_READ) as text,
        ):
            return [text[begin:end].decode() for begin, end in cuts]


def write_sentences(
    lines: Iterable[str],
    name: str,
    folder: Path,
    with_ids: bool = False,
    most_repeats: int | None = None,
) -> None:
    """Find the distinct sentences of a text. Memory: 24 bytes per line.

    Args:
        lines: One sentence each; with ids, `id TAB sentence` (as in BUCC's files).
        name: Name of the text, for messages.
        folder: Output folder.
        with_ids: Lines begin with an id.
        most_repeats: Leave out sentences that occur more often, such as menus and headers.
    """
    folder.mkdir()
    counts = SentenceCounts()
    columns = ["text", "ids"] if with_ids else ["text"]
    hashes = [np.zeros(0, np.uint64)]
    lengths = {column: [np.zeros(0, np.int64)] for column in columns}
    files = {column: (folder / column).open("wb") for column in columns}
    try:
        rows = _rows(lines, name, with_ids, counts)
        while block := list(islice(rows, _LINES)):
            digests = b"".join(hashlib.blake2b(row[0], digest_size=8).digest() for row in block)
            hashes.append(np.frombuffer(digests, np.uint64))
            for number, column in enumerate(columns):
                values = [row[number] for row in block]
                lengths[column].append(np.array([len(value) for value in values], np.int64))
                files[column].writelines(value + b"\n" for value in values)
    finally:
        for file in files.values():
            file.close()
    first = _first_occurrences(np.concatenate(hashes), counts, most_repeats)
    if not len(first):
        raise MiningError(
            f"{name}: no sentences in {counts.lines:,} lines; give a text with one sentence per"
            " line"
        )
    for column in columns:
        sizes = np.concatenate(lengths[column])
        ends = np.cumsum(sizes + 1) - 1
        np.save(folder / f"{column}.npy", np.stack([ends - sizes, ends], axis=1)[first])
    write_json(folder / "counts.json", asdict(counts))


def _rows(
    lines: Iterable[str], name: str, with_ids: bool, counts: SentenceCounts
) -> Iterator[tuple[bytes, bytes]]:
    """Yield sentences with single spaces and their ids; count all lines."""
    for line in lines:
        counts.lines += 1
        key, tab, sentence = line.partition("\t") if with_ids else ("", "\t", line)
        if not tab and line.strip():
            raise MiningError(
                f"{name}: line {counts.lines} has no tab; with ids, lines are `id TAB sentence`"
            )
        sentence = " ".join(sentence.split())
        if not sentence:
            counts.blank += 1
        elif has_two_letters(sentence):
            yield sentence.encode(), key.encode()
        else:
            counts.near_empty += 1


def _first_occurrences(
    hashes: NDArray[np.uint64], counts: SentenceCounts, most_repeats: int | None
) -> NDArray[np.int64]:
    """Return the positions of the distinct sentences, in order.

    They are compared by 64-bit hashes: in a text with a billion sentences, the chance of a
    collision is about 1 in 40.
    """
    _, first, times = np.unique(hashes, return_index=True, return_counts=True)
    counts.most_repeated = int(times.max(initial=0))
    usable = times <= most_repeats if most_repeats else np.ones(len(times), dtype=bool)
    counts.boilerplate = int(times[~usable].sum())
    counts.repeated = int((times[usable] - 1).sum())
    counts.sentences = int(usable.sum())
    return np.sort(first[usable])


def usable_neighbors(name: str, available: int, wanted: int) -> None:
    """Refuse a text in which a sentence has no neighbor; warn if there are fewer than wanted.

    `available` counts distinct sentences with a token that the model knows.
    """
    if available < 1:
        raise MiningError(
            f"{name}: too few distinct sentences with a token that the model knows; give more"
            " text, or a model that knows its language"
        )
    if available < wanted:
        logger.warning(
            f"{name}: too few sentences for {wanted} neighbors each; {available} used instead"
        )
