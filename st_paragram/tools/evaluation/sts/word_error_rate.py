"""How many words of one sentence must change to make it the other: word error rate, made symmetric."""

from __future__ import annotations

import re
from collections.abc import Sequence

from st_paragram.errors import EvaluationError

# A clitic with its apostrophe ("don't" is "don", "'t"; so the Moses tokeniser has it), a word, or another character.
_TOKEN = re.compile(r"'\w+|\w+|[^\w\s]")


def tokens(text: str) -> list[str]:
    """Lower-cased words, clitics from the apostrophe on, and every other character but spaces by itself."""
    return _TOKEN.findall(text.lower().replace("’", "'"))


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions of tokens that make `first` into `second` (Levenshtein)."""
    previous = list(range(len(second) + 1))
    for row, token in enumerate(first, start=1):
        left = row
        current = [row]
        for above, diagonal, other in zip(previous[1:], previous, second, strict=False):
            left = diagonal if token == other else 1 + min(above, diagonal, left)
            current.append(left)
        previous = current
    return previous[-1]


def symmetric_word_error_rate(first: Sequence[str], second: Sequence[str]) -> float:
    """Half of the word error rate of either sentence against the other (BGT: Wieting et al., EMNLP 2020).

    0 for equal sentences; above 1 where one is much the longer.

    Args:
        first: tokens.
        second: tokens.

    Raises:
        EvaluationError: a sentence has no tokens; a rate of errors is then undefined.
    """
    if not first or not second:
        raise EvaluationError("a sentence without tokens has no word error rate; take the pair out")
    distance = edit_distance(first, second)
    return (distance / len(first) + distance / len(second)) / 2
