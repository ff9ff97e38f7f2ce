"""The step `markup`: tags, entities, subtitle codes, templates, addresses, broken characters.

It removes tags that are the same on both sides, decodes entities, and drops the other rows with
markup.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from html import unescape
from html.entities import html5
from typing import Annotated, Literal, get_args

from pydantic import Field

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import AnyOf, Row, RowFilter, RowRepair, options
from st_paragram.tools.cleaning.text import has_letter

_TAG = re.compile(r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>|<!--|-->")
# Two comparisons are not a tag: "a<b and b>c".
_COMPARISONS = re.compile(r"(?<=\w)<[A-Za-z]\w*\s[^<>=/]*>(?=\w)")
_ENTITY = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]{1,30};)|#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};)")
_CODE = r"\{\\[^{}]*\}|\{[yYfFcCsSpP]:[^{}]*\}"
_SUBTITLE = re.compile(rf"</?(?:i|b|u|font)(?:\s[^<>]*)?>|{_CODE}", re.IGNORECASE)
_NOTE = re.compile("[♩-♬]")
# Tags and codes that may be removed. An attribute must have a value: "if a <b and c> d" has no tag.
_VALUE = r"""\s+[\w:.-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+)"""
_REMOVABLE = re.compile(
    rf"<(?P<slash>/?)(?P<name>[A-Za-z][\w:-]*)(?:{_VALUE})*\s*(?P<single>/?)>|{_CODE}"
)
_SUBTITLE_TAGS = frozenset(("i", "b", "u", "font"))
_SINGLE_TAGS = frozenset(("br", "hr", "img", "wbr"))
# Tags inside words and before punctuation; other tags separate words.
_INLINE_TAG = re.compile(
    "a|abbr|b|big|cite|code|del|dfn|em|font|g|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|"
    "sup|tt|u|var"
)
_MOST_ESCAPES = 8  # "&amp;amp;lt;" was escaped three times
_TEMPLATE = re.compile(r"\{\{|\}\}|\{%|%\}|\$\{|\[\[(?=[^\W\d_])|(?<=[^\W\d_])\]\]")
# Markup that must be the same on both sides
_EQUAL = {"tags": _TAG, "subtitles": _SUBTITLE, "templates": _TEMPLATE}
# Letters before an @ are visited once per word, however long it is.
_ADDRESS = re.compile(r"[a-z]{2,9}://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\S+|www\.\S+", re.IGNORECASE)


def _decoded(encoding: str, first: int, last: int) -> str:
    """Return the characters of bytes in an encoding, as the contents of a character class."""
    return re.escape(bytes(range(first, last + 1)).decode(encoding, errors="ignore"))


# A character of UTF-8 is a lead byte followed by bytes 80 .. BF. Read as cp1252: "Ã©", "â€™",
# "Ð¿Ñ€"; as cp1251: "РџСЂРё". Four bytes begin with "ð". One pair is not enough ("AMANHÃ”" ends a
# quotation in Portuguese): a lowercase letter must be next to it, or there must be several pairs.
_LATIN_TRAIL = _decoded("cp1252", 0x80, 0xBF)
_CYRILLIC_TRAIL = _decoded("cp1251", 0x80, 0xBF)
_TWO = _decoded("cp1252", 0xC2, 0xDE)
_THREE = _decoded("cp1252", 0xE0, 0xEF)
_MISREAD = re.compile(
    f"â€[{_LATIN_TRAIL}]|ï»¿|ðŸ[{_LATIN_TRAIL}]|(?<=[a-z])Ã[\xa1-\xbf]|Ã[\xa1-\xbf](?=[a-z])"
    f"|(?:[{_TWO}][{_LATIN_TRAIL}]){{3}}|(?:[{_THREE}][{_LATIN_TRAIL}]{{2}}){{2}}"
    f"|(?:[РС][{_CYRILLIC_TRAIL}]){{3}}"
)
# A faster search that finds all of these
_MAY_BE_MISREAD = re.compile(f"[{_TWO}{_THREE}ðРС][{_LATIN_TRAIL}{_CYRILLIC_TRAIL}]")
# Control, replacement and private characters and lone surrogates.
_NO_TEXT = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffc-\uffff\U000f0000-\U0010ffff]"
)


Kind = Literal["tags", "entities", "subtitles", "templates", "addresses", "characters"]


@options
class Markup(RowRepair, RowFilter):
    r"""Remove markup that is the same on both sides, and drop pairs with other markup or broken
    characters.

    The kinds are tags (HTML, XML) and templates (`{{name}}`, `${name}`, `[[link]]`), both only if
    the two sides have different ones; entities (`&nbsp;`); subtitles (`<i>`, `{\an8}`, musical
    notes); addresses (a side with only web or mail addresses); characters (control, replacement and
    private characters, UTF-8 that was read as another encoding).

    Entities are decoded. Tags are removed if both sides have the same: pairs of tags around text,
    single tags such as `<br/>`, and codes of subtitles. Other tags, such as a `<body>` that the
    text is about, stay.
    """

    name = "markup"
    repairs = "removed_markup"
    note = "rows with entities, or the same tags on both sides (decoded, removed)"
    reasons = ("markup", "broken characters")

    which: Annotated[AnyOf[Kind], Field(min_length=1)] = setting(
        get_args(Kind), "kinds to look for"
    )
    keep_equal: bool = setting(False, "leave tags and codes that are the same on both sides")

    def repair(self, row: Row) -> Row:
        """Return a row without entities and without tags that are the same on both sides."""
        first, second = row[:2]
        if not (_may_have_markup(first) or _may_have_markup(second)):
            return row
        if "entities" in self.which:
            first = _decoded_entities(first)
            second = _decoded_entities(second)
        marks = self._removable(first)
        second_marks = self._removable(second)
        are_equal = sorted(map(_label, marks)) == sorted(map(_label, second_marks))
        if are_equal and not self.keep_equal:
            first = _without(first, marks)
            second = _without(second, second_marks)
        first = " ".join(first.split())
        second = " ".join(second.split())
        if not first or not second or row[:2] == (first, second):
            return row
        return (first, second, *row[2:])

    def _removable(self, text: str) -> list[re.Match[str]]:
        """Return the tags and codes that format a text."""
        marks = list[re.Match[str]]()
        opened = defaultdict[str, list[re.Match[str]]](list)
        for mark in _REMOVABLE.finditer(text):
            name = (mark["name"] or "").lower()
            if not self._is_wanted(name):
                continue
            if not name or mark["single"] or name in _SINGLE_TAGS:
                marks.append(mark)
            elif not mark["slash"]:
                opened[name].append(mark)
            elif opened[name]:
                start = opened[name].pop()
                if text[start.end() : mark.start()].strip():
                    marks += [start, mark]
            elif name in _SUBTITLE_TAGS and mark.end() == len(text):
                marks.append(mark)
        for name in _SUBTITLE_TAGS:
            marks += [tag for tag in opened[name] if tag.start() == 0]
        return sorted(marks, key=lambda mark: mark.start())

    def _is_wanted(self, name: str) -> bool:
        is_subtitle = name == "" or name in _SUBTITLE_TAGS
        return ("tags" in self.which and name != "") or ("subtitles" in self.which and is_subtitle)

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        first, second = row[:2]
        may_have_markup = _may_have_markup(first) or _may_have_markup(second)
        if may_have_markup and self._have_markup(first, second):
            return "markup"
        if "characters" in self.which and (
            has_broken_characters(first) or has_broken_characters(second)
        ):
            return "broken characters"
        return None

    def _have_markup(self, first: str, second: str) -> bool:
        if self._has_markup(first) or self._has_markup(second):
            return True
        for kind, pattern in _EQUAL.items():
            if kind in self.which and _marks(pattern, first) != _marks(pattern, second):
                return True
        return False

    def _has_markup(self, text: str) -> bool:
        if "entities" in self.which:
            for name in _ENTITY.findall(text):
                if not name or name in html5:
                    return True
        has_text = _SUBTITLE.sub("", text).strip() and not _NOTE.search(text)
        if "subtitles" in self.which and not has_text:
            return True
        if "addresses" not in self.which or not ("://" in text or "@" in text):
            return False
        rest, addresses = _ADDRESS.subn("", text)
        return addresses > 0 and not has_letter(rest)


@options
class SoftHyphens(RowRepair):
    """Remove soft hyphens (U+00AD), which only show where a word may be divided."""

    name = "soft_hyphens"
    repairs = "soft_hyphens"
    note = "rows with soft hyphens (removed)"

    def repair(self, row: Row) -> Row:
        """Return a row without soft hyphens; a text of nothing else stays."""
        first, second = (text.replace("\xad", "") or text for text in row[:2])
        return row if (first, second) == row[:2] else (first, second, *row[2:])


def has_broken_characters(text: str) -> bool:
    """Whether a text has characters that are not text, or UTF-8 read as another encoding.

    The former are control, replacement and private characters, and lone surrogates. Direction
    marks, joiners, soft hyphens and similar characters are part of good text.
    """
    is_text = text.isprintable() and "\ufffc" not in text and "\ufffd" not in text
    if not is_text and _NO_TEXT.search(text):
        return True
    if text.isascii() or not _MAY_BE_MISREAD.search(text):
        return False
    return _MISREAD.search(text) is not None


def _may_have_markup(text: str) -> bool:
    # twice as fast as a regular expression
    if "<" in text or "&" in text or "@" in text or "/" in text:
        return True
    if "{" in text or "}" in text or "[" in text or "]" in text:
        return True
    return "♩" in text or "♪" in text or "♫" in text or "♬" in text


def _marks(pattern: re.Pattern[str], text: str) -> list[str]:
    if not pattern.search(text):
        return []
    return sorted(pattern.findall(_COMPARISONS.sub("", text)))


def _decoded_entities(text: str) -> str:
    """Decode entities, also if escaped several times; "AT&T" and "a=1&copy=2" have none."""
    for _ in range(_MOST_ESCAPES):
        decoded = _ENTITY.sub(_character, text)
        if decoded == text:
            break
        text = decoded
    return text


def _character(entity: re.Match[str]) -> str:
    """Return the character of an entity; a name that HTML does not have stays."""
    if entity[1] and entity[1] not in html5:
        return entity[0]
    return unescape(entity[0])


def _label(mark: re.Match[str]) -> str:
    """Return the name of a tag, whose attributes may differ, or the whole code of a subtitle."""
    return f"{mark['slash']}{mark['name'].lower()}" if mark["name"] else mark[0]


def _without(text: str, marks: Sequence[re.Match[str]]) -> str:
    """Remove tags and codes; a power such as `10<sup>2</sup>` becomes 10^2."""
    parts = list[str]()
    start = 0
    for mark in marks:
        parts.append(text[start : mark.start()])
        start = mark.end()
        name = (mark["name"] or "").lower()
        if name == "sup" and not mark["slash"] and text[start : start + 1].isdigit():
            parts.append("^")
        elif name and not _INLINE_TAG.fullmatch(name):
            parts.append(" ")
    return "".join([*parts, text[start:]])
