"""Make a large text of a small one: its rows again and again, most of them changed a little."""

from __future__ import annotations

import random
from pathlib import Path

from st_paragram.core.data.text import TextSource, read_pairs
from st_paragram.core.files import atomic

_SAME = 0.1  # of the repeats are left as they are, to be found as repeated rows


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


def _changed(sentence: str, other: str, rng: random.Random) -> str:
    words, others = sentence.split(), other.split()
    if words and others:
        words[rng.randrange(len(words))] = f"{rng.choice(others)} {rng.randrange(10_000)}"
    return " ".join(words)
