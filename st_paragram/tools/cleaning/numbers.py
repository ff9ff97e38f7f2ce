"""The filter `numbers`: pairs whose sides have different numbers."""

from __future__ import annotations

from collections import Counter

import regex

from st_paragram.tools.cleaning.base import Row, RowFilter, options

_MOST_NUMBERS = 100  # texts with more are tables
_MOST_DIGITS = 500
_DIGIT = regex.compile(r"\d")
_NO_DIGITS = regex.compile(r"\D+")
_GROUP = r"[.,'\u2019\u060c\u066b\u066c \xa0\u2009\u202f]\d{3}"
# Digits in groups of three, a decimal number, or digits between other marks, as in a date
_NUMBER = regex.compile(
    rf"(?<![\d.,])\d{{1,3}}(?:{_GROUP})+(?:[.,]\d\d?)?(?!\d)"
    r"|(?<![\w.])\.\d+|(?<![\d.,])\d++[.,\u060c\u066b]\d++(?![.,]\d)|\d+"
)
_DECIMALS = regex.compile(r"[.,\u060c\u066b]\d\d?$")
# Months and full hours, which other languages write in words, and zeros of decimals
_IGNORED = regex.compile(r"(?<!\d)\d{1,2} ?月|:00(?!\d)|(?<=\d)[.,]00?(?!\d)|(?<=[.,]\d)0(?!\d)")
# Words that stand for zeros in the languages of the included models: 1.5 million is 150万
_SCALE = regex.compile(
    r"\b(?:thousand|hundred|mill?i|bill?i|tri?ll|mil\b|mil[jy]|mrd|mio|tausend|hundert|mille|bin"
    r"|тыс|млн|млрд|милл|трилл)|\d ?[KMBkm]\b|[百千万萬亿億兆]"
    r"|ألف|آلاف|مليون|ملايين|مليار|مائة|مئة",
    regex.IGNORECASE,
)
_TIME = regex.compile(
    r"\d:\d\d|\d ?[ap]\.? ?m\b|\buhr\b|\bo'clock|下午|晚上|مساء", regex.IGNORECASE
)
_MARK_OF_MINUTES = regex.compile(r"(?<=\d)[.,](?=[0-5]\d(?!\d))")


@options
class Numbers(RowFilter):
    """Drop pairs in which each side has a number that the other lacks.

    A number in digits on only one side may be written in words on the other. Digits of all scripts
    are equal, and so are 1,234.5 and 1.234,5, 1990 and 90, 3 and 15 (of the afternoon). Next to
    words such as million, zeros do not count. Texts with more than 100 numbers are not compared.
    """

    name = "numbers"
    reasons = ("other numbers",)

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        first, second = row[:2]
        if not (_DIGIT.search(first) and _DIGIT.search(second)):
            return None
        texts = f"{first}\n{second}"
        has_time = _TIME.search(texts) is not None
        zeros = "0." if _SCALE.search(texts) else ""
        first_numbers = _numbers(first, has_time)
        second_numbers = _numbers(second, has_time)
        if max(first_numbers.total(), second_numbers.total()) > _MOST_NUMBERS:
            return None
        left = []
        right = list((second_numbers - first_numbers).elements())
        for number in (first_numbers - second_numbers).elements():
            equal = [other for other in right if _are_equal(number, other, zeros, has_time)]
            if equal:
                right.remove(equal[0])
            else:
                left.append(number)
        is_same = "".join(left).rstrip(zeros) == "".join(right).rstrip(zeros)
        return None if is_same or not left or not right else "other numbers"


def _numbers(text: str, has_time: bool) -> Counter[str]:
    """Count the numbers of a text in ASCII digits; a final full stop means decimals."""
    if has_time:
        text = _MARK_OF_MINUTES.sub(":", text)
    numbers = Counter[str]()
    for match in _NUMBER.findall(_IGNORED.sub("", text)):
        digits = _NO_DIGITS.sub("", match)
        number = str(int(digits[:_MOST_DIGITS]))
        if _DECIMALS.search(match):
            number += "."
        numbers[number] += 1
    return numbers


def _are_equal(first: str, second: str, zeros: str, has_time: bool) -> bool:
    """Whether two numbers may mean the same, if `zeros` at their ends do not count."""
    if first.rstrip(zeros) == second.rstrip(zeros):
        return True
    low, high = sorted((float(first), float(second)))
    is_decade = 999 < high < 10000 and 9 < low == high % 100
    return is_decade or (has_time and low <= 12 and high == low + 12)
