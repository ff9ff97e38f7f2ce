"""The filter `numbers`: pairs whose sides have different numbers."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import regex

from st_paragram.tools.cleaning.base import Row, RowFilter, options

# Digits with marks between them, or with spaces before each three digits
_NUMBER = regex.compile(
    r"(?<![\w.])\.\d+|(?<!\d)\d{1,3}(?:[ \xa0\u2009\u202f]\d{3})+(?!\d)"
    r"|\d+(?:[.,'\u2019\u060c\u066b\u066c]\d+)*"
)
# Full hours, and months, which other languages write in words
_IGNORED = regex.compile(r"(?<=\d):00\b|(?<!\d)\d{1,2} ?月")
_SPACES = regex.compile(r"[ \xa0\u2009\u202f'\u2019\u066c]")
_MOST_NUMBERS = 100  # texts with more are tables
_COMMAS = str.maketrans("\u060c\u066b", ",,")  # of Arabic
# Words that stand for zeros in the languages of the included models: 1.5 million is 150万
_SCALE = regex.compile(
    r"\b(?:thousand|hundred|mill?i|bill?i|tri?ll|mil\b|mil[jy]|mrd|mio|tausend|hundert|mille|bin\b"
    r"|тыс|млн|млрд|милл|трилл)|\d ?[KMBkm]\b|[百千万萬亿億兆]"
    r"|ألف|آلاف|مليون|ملايين|مليار|مائة|مئة",
    regex.IGNORECASE,
)

_CLOCK = regex.compile(r"\d ?[ap]\.? ?m\b|\buhr\b", regex.IGNORECASE)
_HOUR = regex.compile(
    r"\d:\d\d|\d ?[ap]\.? ?m\b|\buhr\b|\bo'clock|下午|晚上|مساء", regex.IGNORECASE
)
_TIME = regex.compile(r"(?<=(?<![\d.,])\d{1,2})\.(?=[0-5]\d(?![\d.,]\d))")


@options
class Numbers(RowFilter):
    """Drop pairs in which each side has a number that the other lacks.

    A number in digits on only one side may be written in words on the other. Digits of all scripts
    are equal, and so are 1,234.5 and 1.234,5, 1990 and 90, 3 and 15 (of the afternoon). A mark
    before three digits may be a decimal mark or a thousands separator. Next to words such as
    million, zeros do not count. Texts with more than 100 numbers are not compared.
    """

    name = "numbers"
    reasons = ("other numbers",)

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        first, second = row[:2]
        if _CLOCK.search(first) or _CLOCK.search(second):
            first = _TIME.sub(":", first)
            second = _TIME.sub(":", second)
        numbers = _numbers(first), _numbers(second)
        counts = len(numbers[0]), len(numbers[1])
        if min(counts) == 0 or max(counts) > _MOST_NUMBERS or numbers[0] == numbers[1]:
            return None
        context = _Context(
            has_scale=bool(_SCALE.search(first) or _SCALE.search(second)),
            has_time=bool(_HOUR.search(first) or _HOUR.search(second)),
        )
        return None if context.match(*numbers) else "other numbers"


def _numbers(text: str) -> list[str]:
    """Return the numbers of a text in ASCII digits, with the marks between them."""
    if not regex.search(r"\d", text):
        return []
    numbers = []
    for match in _NUMBER.findall(_IGNORED.sub("", text)):
        characters = [str(unicodedata.decimal(character, character)) for character in match]
        number = _SPACES.sub("", "".join(characters)).translate(_COMMAS)
        if _readings(number):
            numbers.append(number)
        else:  # a date, a version
            numbers += regex.split("[.,]", number)
    return numbers


class _Context(NamedTuple):
    """What the texts around numbers allow."""

    has_scale: bool  # words such as million
    has_time: bool

    def match(self, first: list[str], second: list[str]) -> bool:
        """Whether a side has no number without an equal, or the other numbers of both are joined.

        A number may be repeated on one side, unless both sides have as many numbers.
        """
        once = len(first) == len(second)
        left = self._without_equal(first, second, once)
        right = self._without_equal(second, first, once)
        if not left or not right:
            return True
        return len(left) != len(right) and self._have_equal_digits(left, right)

    def _without_equal(self, numbers: list[str], others: list[str], once: bool) -> list[str]:
        remaining = list(others)
        left = []
        for number in numbers:
            equal = [other for other in remaining if self._are_equal(number, other)]
            if not equal:
                left.append(number)
            elif once:
                remaining.remove(number if number in equal else equal[0])
        return left

    def _are_equal(self, first: str, second: str) -> bool:
        """Whether two numbers may mean the same."""
        if first == second or _readings(first) & _readings(second):
            return True
        if self.has_scale and self._have_equal_digits([first], [second]):
            return True
        if not (first.isdecimal() and second.isdecimal()) or max(len(first), len(second)) > 4:
            return False
        low, high = sorted((int(first), int(second)))
        is_decade = high > 999 and low < 100 and high % 100 == low
        return is_decade or (self.has_time and low <= 12 and high == low + 12)

    def _have_equal_digits(self, first: list[str], second: list[str]) -> bool:
        """Whether the digits of joined numbers are equal, except for zeros that scale."""
        zeros = "0" if self.has_scale else ""
        digits = [regex.sub(r"\D", "", "".join(side)).strip(zeros) for side in (first, second)]
        return digits[0] == digits[1]


def _readings(number: str) -> set[str]:
    """Return the values that digits with marks may mean; none for a date or a version."""
    parts = regex.split("[.,]", number)
    marks = regex.findall("[.,]", number)
    grouped = all([len(part) == 3 for part in parts[1:]])
    readings = set()
    if not marks or grouped:
        readings.add("".join(parts).lstrip("0") or "0")
    if marks and (len(marks) == 1 or marks[-1] not in marks[:-1]):
        whole = "".join(parts[:-1]).lstrip("0") or "0"
        readings.add(f"{whole}.{parts[-1]}".rstrip("0").rstrip("."))
    return readings
