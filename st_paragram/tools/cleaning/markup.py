"""The filter `markup`: rows with tags, entities, codes of subtitles or templates, only addresses, broken characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from functools import cache
from html.entities import html5
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.broken_characters import SUSPECT, SUSPICIOUS, flag_misread, has_broken_characters
from st_paragram.tools.cleaning.code_points import CodePoints, table
from st_paragram.tools.cleaning.options import SomeOf, options

MARKUP, BROKEN = "markup", "broken characters"

_TAG = re.compile(r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>|<!--|-->")
_ENTITY = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]{1,30};)|#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};)")
_SUBTITLE = re.compile(r"</?(?:i|b|u|font)(?:\s[^<>]*)?>|\{\\[^{}]*\}|\{[yYfFcCsSpP]:[^{}]*\}|[♩-♬]", re.IGNORECASE)
_TEMPLATE = re.compile(r"\{\{|\}\}|\{%|%\}|\$\{|\[\[(?=[^\W\d_])|(?<=[^\W\d_])\]\]")
# Letters before an @ are looked at once a word, however long it is.
_ADDRESS = re.compile(r"[a-z]{2,9}://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\S+|www\.\S+", re.IGNORECASE)
_MARKS = 64  # flags a character; the flags of broken characters are smaller


class Kind(str, Enum):
    """Kinds of markup.

    Tags and templates that are the same on both sides are the content of documentation and stay.
    """

    TAGS = "tags"
    ENTITIES = "entities"
    SUBTITLES = "subtitles"
    TEMPLATES = "templates"
    ADDRESSES = "addresses"
    CHARACTERS = "characters"


@options
class Markup(RowFilter):
    r"""Drop pairs with markup or broken characters.

    The kinds are tags (HTML, XML) and templates (`{{name}}`, `${name}`, `[[link]]`), both only if the sides differ in
    them; entities (`&nbsp;`); subtitles (`<i>`, `{\an8}`, notes of music); addresses (a side of only web or mail
    addresses); characters (control characters, replacement and private characters, UTF-8 that was read as another
    encoding).
    """

    name: ClassVar[str] = "markup"
    reasons: ClassVar[tuple[str, ...]] = (MARKUP, BROKEN)

    which: SomeOf[Kind] = setting(tuple(Kind), "kinds to look for")

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        which = frozenset(self.which)
        flags = _flags([f"{row[0]}\t{row[1]}" for row in rows])
        verdicts: list[str | None] = [None] * len(rows)
        for index in np.flatnonzero(flags & (_MARKS | SUSPECT)).tolist():
            first, second = rows[index][:2]
            if flags[index] & _MARKS and _has_markup(first, second, which):
                verdicts[index] = MARKUP
            elif Kind.CHARACTERS in which and (has_broken_characters(first) or has_broken_characters(second)):
                verdicts[index] = BROKEN
        return verdicts


def _flags(texts: list[str]) -> NDArray[np.uint8]:
    """What each text may hold, judged by single characters and neighbors: flags, uint8 (n)."""
    points = CodePoints(texts)
    flags = _table().take(points.codes)
    flag_misread(flags)
    return points.flags(flags)


@cache
def _table() -> NDArray[np.uint8]:
    flags = table({r"<&@/{}\[\]♩-♬": _MARKS, **SUSPICIOUS})
    flags[ord("\t")] = 0  # it separates the sides
    return flags


def _has_markup(first: str, second: str, which: frozenset[Kind]) -> bool:
    for text in (first, second):
        if Kind.ENTITIES in which and "&" in text and any(not n or n in html5 for n in _ENTITY.findall(text)):
            return True
        if Kind.SUBTITLES in which and _SUBTITLE.search(text):
            return True
        if Kind.ADDRESSES in which and ("://" in text or "@" in text) and _nothing_but_addresses(text):
            return True
    if Kind.TAGS in which and _differ(_TAG, first, second):
        return True
    return Kind.TEMPLATES in which and _differ(_TEMPLATE, first, second)


def _nothing_but_addresses(text: str) -> bool:
    rest, found = _ADDRESS.subn("", text)
    return found > 0 and not any(map(str.isalpha, rest))


def _differ(pattern: re.Pattern[str], first: str, second: str) -> bool:
    return sorted(pattern.findall(first)) != sorted(pattern.findall(second))
