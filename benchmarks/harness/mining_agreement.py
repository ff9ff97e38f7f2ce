"""Whether two files of mined pairs say the same."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from st_paragram.errors import TextError

Pairs = dict[tuple[str, str], float]


@dataclass(frozen=True)
class Agreement:
    """Two lists of pairs, those of a score of `least` or more.

    Attributes:
        least: Score.
        ours: Number of our pairs.
        theirs: Number of theirs.
        ours_found: Share of our pairs that they have too, whatever their score.
        theirs_found: Share of their pairs that we have too.
        difference: Largest difference of the scores of a pair in both.
    """

    least: float
    ours: int
    theirs: int
    ours_found: float
    theirs_found: float
    difference: float


def read_scored(path: Path, ordered: bool = True) -> Pairs:
    """Pairs of a file `score TAB one TAB other` with their scores.

    Args:
        path: The file.
        ordered: The sides differ; else a pair is the same both ways round.

    Raises:
        TextError: A line is of another form.
    """
    pairs: Pairs = {}
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            cells = line.rstrip("\n").split("\t")
            if len(cells) != 3:
                raise TextError(f"{path}: line {number} has {len(cells)} columns, not `score TAB one TAB other`")
            one, other = cells[1:] if ordered else sorted(cells[1:])
            pairs[one, other] = float(cells[0])
    return pairs


def agreement(ours: Pairs, theirs: Pairs, least: float = -math.inf) -> Agreement:
    """Compare two lists of pairs."""
    mine, other = ({pair for pair, score in each.items() if score >= least} for each in (ours, theirs))
    both = (mine | other) & ours.keys() & theirs.keys()
    return Agreement(
        least,
        len(mine),
        len(other),
        _share(len(mine & theirs.keys()), len(mine)),
        _share(len(other & ours.keys()), len(other)),
        max((abs(ours[pair] - theirs[pair]) for pair in both), default=0.0),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
