"""Known pairs hidden among sentences that have no translation on the other side, in the form of BUCC's files."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from harness.mining.near_texts import NearTexts

from st_paragram.core.data.lines import read_lines
from st_paragram.core.data.text import TextSource, read_pairs
from st_paragram.core.files import atomic
from st_paragram.errors import TextError

_BLOCK = 1 << 14


@dataclass(frozen=True)
class Recipe:
    """What to plant, and among what.

    Attributes:
        bitext: Two columns, source TAB target: distractors are source sentences of some rows, targets of the others.
        held: Files of known pairs, source TAB target.
        swapped: The columns of `held` are the other way round.
        planted: Known pairs wanted.
        distractors: Wanted on each side.
        more: For each side further texts to take distractors from when the bitext has too few; of lines with tabs
            the first column counts. Their translations are not known: more sources are kept apart from the sources of
            the bitext's targets, more targets from the planted ones alone.
        target_share: Of the rows of the bitext that give targets.
        block: Rows that stand together and are for one side. Sentences of one document say similar things, often the
            same thing cut differently; those were right to find, but would count as wrong.
        seed: Of the choice of rows and of the order of sentences.
    """

    bitext: str
    held: tuple[str, ...]
    swapped: bool = False
    planted: int = 1000
    distractors: int = 200_000
    more: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    target_share: float = 0.5
    block: int = 500
    seed: int = 0


@dataclass(frozen=True)
class Planted:
    """What was planted.

    Attributes:
        pairs: Known ones.
        known_to_model: Held pairs that were left out because both sides stand in one row of the bitext.
        repeated: Held pairs left out because a side of theirs is in another.
        distractors: On each side.
        from_more: How many of these are from further texts.
        near: Sentences that were not taken because they, or their translations, nearly are others.
    """

    pairs: int
    known_to_model: int
    repeated: int
    distractors: tuple[int, int]
    from_more: tuple[int, ...]
    near: tuple[int, ...]


@dataclass
class _Distractors:
    """Sentences of the source side and of the target side; numbers as in `Planted`."""

    sides: list[list[str]] = field(default_factory=lambda: [[], []])
    from_more: list[int] = field(default_factory=lambda: [0, 0])
    near: list[int] = field(default_factory=lambda: [0, 0])


def write_planted(recipe: Recipe, prefix: Path, pair: str = "en-xx") -> Planted:
    """Write PREFIX.en, PREFIX.xx (`id TAB sentence`, shuffled) and PREFIX.gold (`id TAB id`).

    No distractor is a planted sentence or nearly one (see `NearTexts`), and what the bitext has for its translation is
    not, and is not nearly, a sentence of the other side: a bitext says many things twice in other words, and to find
    those would be right but count as wrong.

    Raises:
        TextError: A text cannot be read, or no pair is left to plant.
    """
    known, in_bitext, repeated = _known_pairs(recipe)
    if not known:
        raise TextError(f"{', '.join(recipe.held)}: no pair that is not in {recipe.bitext}; give other held pairs")
    made = _distractors(recipe, known)
    sides = made.sides
    codes = pair.split("-")
    rng = random.Random(recipe.seed)
    ids: list[list[str]] = []
    for side, code in enumerate(codes):
        sentences = [row[side] for row in known] + sides[side]
        numbers = list(range(len(sentences)))
        rng.shuffle(numbers)
        ids.append([f"{code}-{number:08d}" for number in numbers])  # an id does not tell what is planted
        lines = (f"{key}\t{sentence}" for key, sentence in sorted(zip(ids[side], sentences, strict=True)))
        _write(prefix.with_name(f"{prefix.name}.{code}"), lines)
    gold = (f"{ids[0][row]}\t{ids[1][row]}" for row in range(len(known)))
    _write(prefix.with_name(f"{prefix.name}.gold"), gold)
    return Planted(
        len(known), in_bitext, repeated, (len(sides[0]), len(sides[1])), tuple(made.from_more), tuple(made.near)
    )


def _known_pairs(recipe: Recipe) -> tuple[list[tuple[str, str]], int, int]:
    """Held pairs, how many stand in the bitext, and how many repeat a side of another."""
    sources = (TextSource((path,), ("en", "xx"), swapped=recipe.swapped) for path in recipe.held)
    held = {(_key(one), _key(other)): (one, other) for one, other in chain.from_iterable(map(read_pairs, sources))}
    trained = {keys for keys in _keys(recipe.bitext) if keys in held}
    known, seen, repeated = list[tuple[str, str]](), (set[str](), set[str]()), 0
    for (one, other), row in held.items():
        if (one, other) in trained or not (one and other):
            continue
        if one in seen[0] or other in seen[1]:
            repeated += 1
            continue
        seen[0].add(one)
        seen[1].add(other)
        known.append((" ".join(row[0].split()), " ".join(row[1].split())))
    return known[: recipe.planted], len(trained), repeated


def _distractors(recipe: Recipe, known: Sequence[tuple[str, str]]) -> _Distractors:
    """Sentences of both sides that have no translation on the other, as far as the bitext tells."""
    made = _Distractors()
    taken = [{_key(row[side]) for row in known} for side in (0, 1)]
    rng = random.Random(recipe.seed)
    for side in (1, 0):  # sources are chosen knowing the targets
        other = 1 - side
        # What translates a sentence of the other side, or nearly says the same, must not be on this side.
        barred = {keys[side] for keys in _keys(recipe.bitext) if keys[other] in taken[other]} | taken[side]
        near, near_other = NearTexts(sorted(barred)), NearTexts(sorted(taken[other]))
        rows = list(_new(_rows(recipe, side), barred))
        bad = near.near([one for one, _ in rows]) | near_other.near([translation for _, translation in rows])
        own = [row[0] for row, is_bad in zip(rows, bad, strict=True) if not is_bad]
        made.sides[side] = rng.sample(own, min(len(own), recipe.distractors))  # of all of the bitext
        made.near[side] += int(bad.sum())
        more = _new(chain.from_iterable(map(_first_column, recipe.more[side])), barred)
        while len(made.sides[side]) < recipe.distractors and (block := list(islice(more, _BLOCK))):
            bad = near.near([sentence for sentence, _ in block])
            good = [row[0] for row, is_bad in zip(block, bad, strict=True) if not is_bad]
            good = good[: recipe.distractors - len(made.sides[side])]
            made.sides[side] += good
            made.from_more[side] += len(good)
            made.near[side] += int(bad.sum())
        taken[side] |= set(map(_key, made.sides[side]))
    return made


def _rows(recipe: Recipe, side: int) -> Iterator[tuple[str, str]]:
    """Sentences of one side with their translations, of the rows that are for this side."""
    rng, target = random.Random(recipe.seed), False
    for number, row in enumerate(read_pairs(TextSource((recipe.bitext,), ("en", "xx")))):
        if number % recipe.block == 0:
            target = rng.random() < recipe.target_share
        if target == bool(side):
            yield row[side], row[1 - side]


def _first_column(path: str) -> Iterator[tuple[str, str]]:
    return ((line.partition("\t")[0], "") for line in read_lines(path))


def _new(rows: Iterable[tuple[str, str]], barred: set[str]) -> Iterator[tuple[str, str]]:
    """Sentences that say something and were not there before, with their translations; grows `barred`."""
    for sentence, translation in rows:
        key = _key(sentence)
        if key not in barred and sum(map(str.isalnum, key)) > 1:
            barred.add(key)
            yield " ".join(sentence.split()), translation


def _keys(bitext: str) -> Iterator[tuple[str, str]]:
    return ((_key(one), _key(other)) for one, other in read_pairs(TextSource((bitext,), ("en", "xx"))))


def _key(sentence: str) -> str:
    return " ".join(sentence.lower().split())


def _write(path: Path, lines: Iterable[str]) -> None:
    with atomic(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)
