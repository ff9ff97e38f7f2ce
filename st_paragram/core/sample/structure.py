"""Abstract sentences: which phrases go together, drawn in a seeded order without listing every combination.

An abstract sentence names a frame and the ids of its phrases; `grammar.Grammar` puts it into a language. The tags that
keep senseless combinations out are in `structure.yaml`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import accumulate
from math import prod
from typing import Any

import yaml

STYLE_BITS = 6  # bits of a style that pick the variant of one part
MAX_PARTS = 8


@dataclass(frozen=True)
class Sentence:
    """A sentence of no language: a frame and (slot name, phrase id) for each of its parts."""

    frame: str
    parts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cell:
    """All sentences of one frame that share a predicate (or a thing): any choice for each other part fits."""

    frame: str
    roles: tuple[str, ...]
    choices: tuple[tuple[Any, ...], ...]

    @property
    def size(self) -> int:
        """Number of combinations."""
        return prod(map(len, self.choices))

    def sentence(self, index: int) -> Sentence:
        """Decode `index` in [0, size) as mixed-radix digits."""
        parts: list[tuple[str, str]] = []
        for role, options in zip(self.roles, self.choices, strict=True):
            index, digit = divmod(index, len(options))
            if role == "second":
                subject, predicate = options[digit]
                parts += [("subject2", subject), ("predicate2", predicate)]
            else:
                parts.append((role, options[digit]))
        return Sentence(self.frame, tuple(parts))


@dataclass(frozen=True, eq=False)  # compared and hashed as an object
class Structure:
    """The contents of `structure.yaml`, and what follows from it.

    Attributes:
        categories: category -> id -> the id's columns, each a set of tags.
        frames: frame id -> its parts, tense, time and weight as written.
    """

    categories: Mapping[str, Mapping[str, tuple[frozenset[str], ...]]]
    frames: Mapping[str, Mapping[str, Any]]
    cells: Mapping[str, tuple[Cell, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """List the cells of each frame."""
        object.__setattr__(self, "cells", {frame: tuple(self._cells(frame)) for frame in self.frames})

    def ids(self) -> dict[str, tuple[str, ...]]:
        """Ids of every category, frames included, in the order of the file."""
        return {"frame": tuple(self.frames)} | {name: tuple(rows) for name, rows in self.categories.items()}

    def draw(self, seed: int = 0) -> Iterator[tuple[Sentence, int]]:
        """Every abstract sentence once, in an order that depends on `seed` alone, each with a random style.

        Frames are drawn by weight and predicates evenly, so that a predicate with few places is not drowned.
        """
        rng = random.Random(seed)
        live = {frame: [(cell, _shuffled(cell.size, rng)) for cell in cells] for frame, cells in self.cells.items()}
        while live:
            frames = list(live)
            weights = list(accumulate(self.frames[frame].get("weight", 1) for frame in frames))
            cells: list[tuple[Cell, Iterator[int]]] | None = None
            while cells is None or cells:
                cells = live[rng.choices(frames, cum_weights=weights)[0]]
                position = rng.randrange(len(cells))
                cell, order = cells[position]
                index = next(order, None)
                if index is None:
                    del cells[position]
                elif self._sensible(sentence := cell.sentence(index)):
                    yield sentence, rng.getrandbits(STYLE_BITS * MAX_PARTS)
            live = {frame: cells for frame, cells in live.items() if cells}

    def _sensible(self, sentence: Sentence) -> bool:
        """Whether two clauses differ in subject and predicate, and the subject is one met at the place."""
        parts = dict(sentence.parts)
        if any(parts[role] == parts.get(role + "2") for role in ("subject", "predicate") if role in parts):
            return False
        if "place" not in parts or "subject" not in parts:
            return True
        met_there = self.categories["place"][parts["place"]][1:]
        return not met_there or bool(met_there[0] & self.categories["subject"][parts["subject"]][0])

    def _cells(self, frame: str) -> Iterator[Cell]:
        spec = self.frames[frame]
        roles = tuple(spec["parts"])
        head = next((role for role in ("predicate", "thing") if role in roles), None)
        for governor in self.categories[head] if head else [None]:
            options = tuple(self._options(role, spec, head, governor) for role in roles)
            placed = not spec.get("placed") or self._options("place", spec, head, governor)
            if placed and all(options):
                yield Cell(frame, roles, options)

    def _options(self, role: str, spec: Mapping[str, Any], head: str | None, governor: str | None) -> tuple[Any, ...]:
        """The ids (or pairs of ids) that `role` may take besides the governing predicate or thing."""
        if role == head:
            allowed = role == "thing" or spec["tense"] in self.categories[role][str(governor)][2]
            return (governor,) if allowed else ()
        if role == "second":
            return self._clauses(spec["tense"])
        columns = self.categories[head][str(governor)] if head else ()
        traits = frozenset[str]().union(*columns[3:])
        if role == "time":
            times = self._fitting(role, frozenset([spec.get("time", spec.get("tense"))]))
            short = "brief" in traits and spec["tense"] in ("past", "future")
            return tuple(name for name in times if not short or "brief" in self.categories[role][name][0])
        if role == "companion":
            return tuple(self.categories[role]) if "together" in traits else ()
        column = {"subject": 0, "place": 1, "spot": 0, "property": 1}.get(role)
        if column is None or not head:
            return tuple(self.categories[role])
        return self._fitting(role, columns[column])

    @lru_cache(maxsize=4)  # noqa: B019  there is one structure
    def _clauses(self, tense: str) -> tuple[tuple[str, str], ...]:
        """Every (subject, predicate) of a tense."""
        predicates = self.categories["predicate"].items()
        return tuple(
            (who, what)
            for what, columns in predicates
            if tense in columns[2]
            for who in self._fitting("subject", columns[0])
        )

    def _fitting(self, category: str, tags: frozenset[str]) -> tuple[str, ...]:
        return tuple(name for name, columns in self.categories[category].items() if columns[0] & tags)


def _shuffled(size: int, rng: random.Random) -> Iterator[int]:
    """The numbers 0 .. size-1 in a scattered order and constant memory: an invertible mix modulo 2^k, thrice."""
    bits = max(2, size.bit_length())
    mask, half = (1 << bits) - 1, (bits + 1) // 2
    rounds = [(rng.getrandbits(bits) | 1, rng.getrandbits(bits)) for _ in range(3)]

    def mixed(number: int) -> int:
        for factor, shift in rounds:
            number = (number * factor + shift) & mask
            number ^= number >> half
        return number

    return (value for value in map(mixed, range(mask + 1)) if value < size)


def _columns(row: str) -> tuple[frozenset[str], ...]:
    every = "now habit past future"
    return tuple(frozenset(cell.replace("*", every).split()) for cell in row.split("|"))


@lru_cache(maxsize=1)
def load_structure() -> Structure:
    """Read `structure.yaml`."""
    text = files(__package__).joinpath("structure.yaml").read_text(encoding="utf-8")
    raw = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    frames = raw.pop("frame")
    return Structure(
        {
            name: {key: _columns(rows[key] if isinstance(rows, dict) else "") for key in rows}
            for name, rows in raw.items()
        },
        frames,
    )
