"""Texts with planted duplicates, and how many of these `st-paragram dedupe` finds."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.processes import watch
from st_paragram.tools.cleaning.word_hashes import words

from st_paragram.core.text.streams import read_lines
from st_paragram.errors import TextError
from st_paragram.tools.cleaning.text import normalized_key

HEAD = (
    "methods",
    "workers",
    "seconds",
    "peak, MB",
    "removed",
    "natural",
    "wrong",
    "kind",
    "planted",
    "recall, %",
    "near, %",
)
THRESHOLD = 0.8
_PLANTED = 0.4  # of the lines
_FEWEST = 5  # words of a line
_MARKS = ".,;:!?"


@dataclass(frozen=True)
class PlantedText:
    """A text with planted duplicates.

    Attributes:
        path: Text, a sentence on each line.
        kinds: For each line what was done to it; "" for a line as it was.
        families: For each line the number of the line that it was made from, or its own.
        similarities: For each line its Jaccard similarity with that line, by words.
    """

    path: Path
    kinds: list[str]
    families: list[int]
    similarities: list[float]


def _marked(own: list[str], other: list[str], rng: random.Random) -> list[str]:
    line = [word.strip(_MARKS).upper() if rng.random() < 0.5 else word.strip(_MARKS) for word in own]
    return [*line[:-1], line[-1] + rng.choice(_MARKS)]


def _replaced(own: list[str], other: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(own))
    return [*own[:place], rng.choice(other), *own[place + 1 :]]


def _deleted(own: list[str], other: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(own))
    return own[:place] + own[place + 1 :]


def _inserted(own: list[str], other: list[str], rng: random.Random) -> list[str]:
    place = rng.randrange(len(own) + 1)
    return [*own[:place], rng.choice(other), *own[place:]]


def _swapped(own: list[str], other: list[str], rng: random.Random) -> list[str]:
    one, two = rng.sample(range(len(own)), 2)
    line = list(own)
    line[one], line[two] = line[two], line[one]
    return line


KINDS: dict[str, Callable[[list[str], list[str], random.Random], list[str]]] = {
    "the same": lambda own, other, rng: own,
    "case and marks": _marked,
    "word replaced": _replaced,
    "word deleted": _deleted,
    "word inserted": _inserted,
    "words swapped": _swapped,
}


def plant(text: Path, path: Path, count: int, seed: int = 0) -> PlantedText:
    """Write distinct lines of a text, of five words or more, and after them lines made from them, in random order.

    Args:
        text: Sentences, plain or compressed; repeated ones are left out.
        path: File to write.
        count: Lines to write, of which 40 % are planted.
        seed: Seed of all choices.

    Raises:
        TextError: The text has too few distinct lines.
    """
    rng, wanted = random.Random(seed), count - round(_PLANTED * count)
    distinct = dict.fromkeys(" ".join(line.split()) for line in read_lines(str(text)) if line.count(" ") >= _FEWEST - 1)
    base = list(distinct)
    if len(base) < wanted:
        raise TextError(f"{text}: {len(base)} distinct lines of {_FEWEST} words, but {wanted} are needed")
    rng.shuffle(base)
    base, rows = base[:wanted], list[tuple[str, int, str]]()
    for number in range(count - wanted):
        kind = list(KINDS)[number % len(KINDS)]
        source = rng.randrange(wanted)
        rows.append((kind, source, " ".join(KINDS[kind](base[source].split(), rng.choice(base).split(), rng))))
    rng.shuffle(rows)
    rows = [("", number, line) for number, line in enumerate(base)] + rows
    path.write_text("".join(f"{line}\n" for _, _, line in rows), encoding="utf-8", newline="\n")
    kinds, families, _ = (list(each) for each in zip(*rows, strict=True))
    return PlantedText(path, kinds, families, [jaccard(line, base[source]) for _, source, line in rows])


def jaccard(one: str, other: str) -> float:
    """The share of words in common of two texts."""
    ones, others = set(words(one.lower())), set(words(other.lower()))
    return len(ones & others) / len(ones | others) if ones | others else 1.0


def measure(text: PlantedText, folder: Path, methods: Sequence[str], workers: int) -> Iterator[list[str]]:
    """Remove the duplicates of a text; gives the rows of the table, one for each kind."""
    removed = folder / "removed.tsv"
    files = ["--output", str(folder / "clean.txt"), "--removed", str(removed), "--overwrite"]
    command = [
        sys.executable,
        "-m",
        "st_paragram.cli.main",
        "dedupe",
        str(text.path),
        *files,
        "--workers",
        str(workers),
    ]
    run = watch([*command, "--method", *methods])
    gone, natural, wrong = _judge(text, removed)
    about = [" + ".join(methods), str(workers), f"{run.seconds:.0f}", f"{run.peak_anonymous_mb:.0f}"]
    about += [f"{len(gone):,}", f"{natural:,}", f"{wrong:,}"]
    for number, kind in enumerate(KINDS):
        lines = [line for line, own in enumerate(text.kinds) if own == kind]
        near = [line for line in lines if text.similarities[line] >= THRESHOLD]
        shares = (f"{100 * sum(line in gone for line in part) / max(len(part), 1):.1f}" for part in (lines, near))
        yield [*(about if number == 0 else [""] * len(about)), kind, f"{len(lines):,}", *shares]


def _judge(text: PlantedText, removed: Path) -> tuple[set[int], int, int]:
    """Lines that were removed; how many of them for a line of another family; how many against the definition."""
    lines, gone, natural, wrong = list(read_lines(str(text.path))), set[int](), 0, 0
    for row in read_lines(str(removed)):
        line, kept, why, _ = row.split("\t", 3)
        one, other = int(line) - 1, int(kept) - 1
        gone.add(one)
        natural += text.families[one] != text.families[other]
        if why.startswith("minhash"):
            wrong += jaccard(lines[one], lines[other]) < THRESHOLD
        elif not why.startswith("cosine"):
            wrong += normalized_key(lines[one]) != normalized_key(lines[other])
    return gone, natural, wrong
