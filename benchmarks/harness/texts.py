"""Texts for measurements: the built-in sample, the user's text, and large texts made from small
texts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from st_paragram.core.files import atomic
from st_paragram.core.folders import temporary_folder
from st_paragram.core.sample import LANGUAGES, sample_pairs
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import TextError

_SAME = 0.1  # share of unchanged repeats, to be detected as repeated rows
_MORE = 1.5  # rows per distinct sentence, since repeated rows are dropped


def sentences(text: Path | None, count: int) -> list[str]:
    """Return the first nonblank lines of a text, or of the built-in sample in eight languages."""
    if text is not None:
        found = list(islice((line for line in read_lines(str(text)) if line.strip()), count))
    else:
        columns = [[other for _, other in sample_pairs(language)] for language in LANGUAGES]
        found = list(
            islice((sentence for row in zip(*columns, strict=False) for sentence in row), count)
        )
    if len(found) < count:
        raise TextError(
            f"{text or 'built-in sample'}: {len(found)} sentences, {count} needed; give more text"
        )
    return found


def write_repeats(text: str | Path, path: Path, pairs: int, seed: int = 0) -> Path:
    """Write `pairs` rows of a bitext in turn; in most repeats, one word on each side is changed.

    A changed word is a word of another row, so the vocabulary stays natural, followed by a number.
    """
    rng = random.Random(seed)
    rows = list(read_pairs(TextSource((str(text),), ("en", "xx"))))
    with atomic(path) as handle:
        for number in range(pairs):
            row = rows[number % len(rows)]
            if number >= len(rows) and rng.random() >= _SAME:
                other = rows[rng.randrange(len(rows))]
                row = (_changed(row[0], other[0], rng), _changed(row[1], other[1], rng))
            handle.write(f"{row[0]}\t{row[1]}\n".encode())
    return path


def write_distinct(bitext: Path, folder: Path, count: int) -> tuple[Path, Path]:
    """Write `count` distinct sentences of each side of a bitext, which is repeated and changed if
    it has fewer.
    """
    paths = folder / f"{count}.source", folder / f"{count}.target"
    with temporary_folder(folder / "rows") as work:
        rows = write_repeats(bitext, work / "rows.tsv", int(_MORE * count) + 100)
        for column, path in enumerate(paths):
            with atomic(path) as file:
                written = sum(
                    1
                    for sentence in _distinct(rows, column, count)
                    if file.write(f"{sentence}\n".encode())
                )
                if written < count:
                    raise TextError(
                        f"{bitext}: only {written} distinct sentences in column {column + 1}, not"
                        f" {count}"
                    )
    return paths


def _distinct(bitext: Path, column: int, count: int) -> Iterator[str]:
    """Yield the first `count` distinct sentences with at least two letters."""
    seen = set[int]()
    for row in read_pairs(TextSource((str(bitext),), ("en", "xx"))):
        sentence = " ".join(row[column].split())
        if len(seen) < count and hash(sentence) not in seen and sum(map(str.isalnum, sentence)) > 1:
            seen.add(hash(sentence))
            yield sentence


def _changed(sentence: str, other: str, rng: random.Random) -> str:
    words, others = sentence.split(), other.split()
    if words and others:
        words[rng.randrange(len(words))] = f"{rng.choice(others)} {rng.randrange(10_000)}"
    return " ".join(words)
