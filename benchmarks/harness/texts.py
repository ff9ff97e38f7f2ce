"""Large texts made of a small one: its rows again and again, most of them changed a little."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from st_paragram.core.files import atomic
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import TextError

_SAME = 0.1  # of the repeats are left as they are, to be found as repeated rows
_MORE = 1.5  # rows made for each distinct sentence wanted: repeated ones fall out


def write_repeats(text: Path, path: Path, pairs: int, seed: int = 0) -> Path:
    """Write `pairs` rows: those of a text in turn; from the second time on mostly with one word of each side changed.

    A changed word is one of another row's, so the vocabulary stays natural, followed by a number.

    Returns:
        `path`.
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


def write_distinct(bitext: Path, folder: Path, count: int, seed: int = 0) -> tuple[Path, Path]:
    """Write two texts of `count` distinct sentences, a line each, of a bitext that is repeated and perturbed.

    Most of the sentences' translations are on the other side, some lines away. Memory: the hashes of the sentences.

    Args:
        bitext: Two tab-separated columns.
        folder: For `<count>.source` and `<count>.target`; those that are there are taken as they are.
        count: Of sentences on each side.
        seed: Of the changes.

    Raises:
        TextError: The bitext has too few different sentences.
    """
    paths = folder / f"{count}.source", folder / f"{count}.target"
    if not all(path.is_file() for path in paths):
        rows = write_repeats(bitext, folder / f"{count}.tsv", int(_MORE * count) + 100, seed)
        for column, path in enumerate(paths):
            with atomic(path) as file:
                written = sum(1 for sentence in _distinct(rows, column, count) if file.write(f"{sentence}\n".encode()))
                if written < count:
                    raise TextError(f"{bitext}: only {written} distinct sentences in column {column + 1}, not {count}")
        rows.unlink()
    return paths


def _distinct(bitext: Path, column: int, count: int) -> Iterator[str]:
    """The first `count` distinct sentences of two letters or more."""
    seen = set[int]()
    for row in read_pairs(TextSource((str(bitext),), ("en", "xx"))):
        sentence = " ".join(row[column].split())
        if hash(sentence) not in seen and sum(map(str.isalnum, sentence)) > 1:
            seen.add(hash(sentence))
            yield sentence
            if len(seen) == count:
                return


def _changed(sentence: str, other: str, rng: random.Random) -> str:
    words, others = sentence.split(), other.split()
    if words and others:
        words[rng.randrange(len(words))] = f"{rng.choice(others)} {rng.randrange(10_000)}"
    return " ".join(words)
