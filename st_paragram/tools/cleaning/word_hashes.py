"""Words of many texts at once, as hashes of 64 bits.

Words are found in the UTF-8 bytes of all texts together, and every word becomes a hash: a sum of its bytes' values
times powers of an odd number, which running sums give for all words in a few passes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

_ODD = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
_FACTOR = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)

_SPACE, _MARK, _LETTER, _DIGIT = range(4)
_CLASSES = np.full(256, _LETTER, np.uint8)
_CLASSES[:33] = _CLASSES[127] = _SPACE
_CLASSES[list(b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")] = _MARK
_CLASSES[list(b"0123456789")] = _DIGIT
_JOINS_WORDS, _JOINS_DIGITS = np.zeros((2, 256), bool)
_JOINS_WORDS[list(b"-./_")] = True
_JOINS_DIGITS[list(b",:")] = True
_APOSTROPHE = ord("'")

# Characters beyond ASCII that are separate words: marks, and scripts without spaces between words.
_ALONE = re.compile(
    "[\u00a1-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7\u060c\u061b\u061f\u06d4\u0964\u0965"
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2010-\u2bff\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9f\U00020000-\U0003134f]"
)
_QUOTES = dict(zip("‘’‚‛ʼ“”„‟«»", '\'\'\'\'\'""""""', strict=True))


def words(text: str) -> list[str]:
    """The words of a text.

    A word is a run of letters and digits. It may hold the characters ``- . / _`` between two of them, and ``,`` or
    ``:`` between two digits. An apostrophe begins a word if a letter or digit follows (``don 't``). All other marks are
    separate words, and so is every character of a script without spaces.

    This follows NLTK's Treebank tokens in what matters to word n-grams, their number included; it differs in that
    ``don't`` is cut before the apostrophe and not before the n, that quotation marks stay what they are, that
    ``cannot`` and ``gonna`` stay whole, that a full stop is cut off wherever a word ends, and that an ellipsis is
    three words.
    """
    data = _prepare(text).encode("utf-8", "surrogatepass")
    starts, ends = _word_edges(np.frombuffer(data, np.uint8))
    return [data[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=True)]


def word_hashes(texts: Sequence[str], lower_case: bool = True) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of the words of n texts, in their order; fastest for some hundred texts at a time.

    Args:
        texts: The texts.
        lower_case: Make no difference between upper and lower case.

    Returns:
        Hashes, uint64 (words,), and the text that each is of, int64 (words,).
    """
    joined = "\n".join(texts)
    if joined.count("\n") >= max(len(texts), 1):  # a line feed inside a text
        joined = "\n".join(text.replace("\n", " ") for text in texts)
    joined = _prepare(joined)
    data = np.frombuffer((joined.lower() if lower_case else joined).encode("utf-8", "surrogatepass"), np.uint8)
    starts, ends = _word_edges(data)
    text_of = np.searchsorted(np.flatnonzero(data == ord("\n")), starts)
    sums = np.zeros(len(data) + 1, np.uint64)
    powers, inverses = _powers(1 << len(data).bit_length())
    np.cumsum(_byte_values()[data] * powers[: len(data)], out=sums[1:])
    return (sums[ends] - sums[starts]) * inverses[starts], text_of


def ngram_hashes(hashes: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """Hashes of each word together with the `count` - 1 after it; the last `count` - 1 words have none.

    Args:
        hashes: Of words, uint64 (words,).
        count: Words of an n-gram, at least 1.
    """
    result = mix(hashes)
    for place in range(1, count):
        result = mix(result[:-1] + hashes[place:])
    return result


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random, different ones for different values."""
    values = (values ^ (values >> _SHIFT)) * _FACTOR
    return values ^ (values >> _SHIFT)


def _prepare(text: str) -> str:
    """Give typographic quotation marks their plain form, and spaces to the words that are one character."""
    if text.isascii():
        return text
    for mark, plain in _QUOTES.items():
        text = text.replace(mark, plain)
    return "\n".join(line if line.isascii() else _ALONE.sub(r" \g<0> ", line) for line in text.split("\n"))


def _word_edges(data: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where words begin and end, two arrays int64 (words,); see `words`."""
    if len(data) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    kind = _CLASSES[data]
    letter, digit = _both_neighbours(kind >= _LETTER), _both_neighbours(kind == _DIGIT)
    follows = np.append(kind[1:] >= _LETTER, False)
    apostrophe = (data == _APOSTROPHE) & follows
    in_word = (kind >= _LETTER) | apostrophe | (_JOINS_WORDS[data] & letter) | (_JOINS_DIGITS[data] & digit)
    begins = (kind != _SPACE) & (~in_word | apostrophe)
    begins[0] |= in_word[0]
    begins[1:] |= in_word[1:] & ~in_word[:-1]
    ends = kind != _SPACE
    ends[:-1] &= begins[1:] | (kind[1:] == _SPACE)
    return np.flatnonzero(begins), np.flatnonzero(ends) + 1


def _both_neighbours(holds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether something holds for the bytes before and after each byte."""
    result = np.zeros_like(holds)
    result[1:-1] = holds[:-2] & holds[2:]
    return result


@cache
def _byte_values() -> NDArray[np.uint64]:
    """A random-looking number for each byte."""
    return mix(mix(np.arange(1, 257, dtype=np.uint64) * np.uint64(_ODD)) * _FACTOR)


@cache
def _powers(count: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first powers of an odd number and of its inverse, modulo 2^64."""
    result = np.empty((2, count), np.uint64)
    result[:, 0] = 1
    result[:, 1:] = np.array([[_ODD], [pow(_ODD, -1, 1 << 64)]], np.uint64)
    first, second = np.cumprod(result, axis=1, dtype=np.uint64)
    return first, second
