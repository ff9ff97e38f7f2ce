"""The filter `copied`: sides that are the same, or nearly the same; such text was never translated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.normalized_key import normalized_key
from st_paragram.tools.cleaning.options import options

IDENTICAL, COPIED = "identical sides", "mostly copied"

_LETTERS = 3  # that a word needs to count
_FEWEST_WORDS = 4  # that a side needs: a few names may well be all there is
_START = 16  # characters


@options
class Copied(RowFilter):
    """Drop pairs whose sides are identical or consist mostly of the same words. Not for paraphrases.

    Sides are identical if they have the same letters and digits (NFKC, case folded). They are mostly copied if more
    than `max_share` of the distinct words of the side that has more of them (at least four) are on the other side, too.
    Only words of at least three characters, with a letter among them, count. So names and code, which stay the same in
    translations, do no harm next to a few words of prose.
    """

    name: ClassVar[str] = "copied"
    reasons: ClassVar[tuple[str, ...]] = (IDENTICAL, COPIED)

    max_share: float = setting(
        0.8, "maximum share of words that both sides have; 1 drops only identical sides", ge=0, le=1
    )

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        return [self._reject_row(row[0], row[1]) for row in rows]

    def _reject_row(self, first: str, second: str) -> str | None:
        if not _start_differently(first, second) and normalized_key(first) == normalized_key(second) != "":
            return IDENTICAL
        if self._many_missing(first, second):
            return None
        one, other = _counted(first), _counted(second)
        most = max(len(one), len(other))
        return COPIED if most >= _FEWEST_WORDS and len(one & other) > self.max_share * most else None

    def _many_missing(self, first: str, second: str) -> bool:
        """Whether too many first words of the first side are missing on the second for a copy; fast."""
        enough = (1 - self.max_share) * (first.count(" ") + 1)
        missing = set()
        for word in first.split(" ", 3 * int(enough) + 4)[:-1]:
            if len(word) >= _LETTERS and word not in second and (word.isalpha() or _counts(word)):
                missing.add(word)
                if len(missing) > enough:
                    return True
        return False


def _counted(text: str) -> set[str]:
    return {word for word in text.split(" ") if _counts(word)}


def _counts(word: str) -> bool:
    return len(word) >= _LETTERS and (word.isalpha() or any(map(str.isalpha, word)))


def _start_differently(first: str, second: str) -> bool:
    """Whether two texts differ in their first letters already."""
    one, other = first[:2], second[:2]
    if one.isascii() and one.isalpha():
        if other.isascii() and other.isalpha():
            if one[0].lower() != other[0].lower():
                return True
        elif _other_script(other[:1]):
            return True
    # The last letter is left out: an accent that follows it in the whole text would change it.
    one, other = normalized_key(first[:_START])[:-1], normalized_key(second[:_START])[:-1]
    length = min(len(one), len(other))
    return one[:length] != other[:length]


def _other_script(character: str) -> bool:
    """Whether no normalization makes ASCII of a letter: Greek to Georgian, kana, Han, Hangul."""
    return character.isalpha() and (
        "\u0386" <= character <= "\u10ff" or "\u3041" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3"
    )
