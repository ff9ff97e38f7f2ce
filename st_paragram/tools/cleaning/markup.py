"""The filter `markup`: rows with tags, entities, codes of subtitles or templates, only addresses, broken characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.entities import html5
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import AnyOf, Row, RowFilter, options

MARKUP, BROKEN = "markup", "broken characters"

_TAG = re.compile(r"</?[A-Za-z][\w:-]*(?:\s[^<>]*)?/?>|<!--|-->")
_ENTITY = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]{1,30};)|#\d{1,7};|#[xX][0-9A-Fa-f]{1,6};)")
_SUBTITLE = re.compile(r"</?(?:i|b|u|font)(?:\s[^<>]*)?>|\{\\[^{}]*\}|\{[yYfFcCsSpP]:[^{}]*\}|[♩-♬]", re.IGNORECASE)
_TEMPLATE = re.compile(r"\{\{|\}\}|\{%|%\}|\$\{|\[\[(?=[^\W\d_])|(?<=[^\W\d_])\]\]")
# Letters before an @ are visited once per word, however long it is.
_ADDRESS = re.compile(r"[a-z]{2,9}://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.\S+|www\.\S+", re.IGNORECASE)
_MAY_BE = re.compile(r"[<&@/{}\[\]♩-♬]")


def _decoded(encoding: str, first: int, last: int) -> str:
    """Return the characters that bytes become in an encoding, as the contents of a character class."""
    return re.escape(bytes(range(first, last + 1)).decode(encoding, errors="ignore"))


# A character of UTF-8 is a lead byte followed by bytes 80 .. BF. Read as cp1252: "Ã©", "â€™", "Ð¿Ñ€"; as cp1251:
# "РџСЂРё". Four bytes begin with "ð". One pair is not enough ("AMANHÃ”" ends a quotation in Portuguese): a lowercase
# letter must be next to it, or there must be several pairs.
_LATIN_TRAIL, _CYRILLIC_TRAIL = _decoded("cp1252", 0x80, 0xBF), _decoded("cp1251", 0x80, 0xBF)
_TWO, _THREE = _decoded("cp1252", 0xC2, 0xDE), _decoded("cp1252", 0xE0, 0xEF)
_MISREAD = re.compile(
    f"â€[{_LATIN_TRAIL}]|ï»¿|ðŸ[{_LATIN_TRAIL}]|(?<=[a-z])Ã[\xa1-\xbf]|Ã[\xa1-\xbf](?=[a-z])"
    f"|(?:[{_TWO}][{_LATIN_TRAIL}]){{3}}|(?:[{_THREE}][{_LATIN_TRAIL}]{{2}}){{2}}|(?:[РС][{_CYRILLIC_TRAIL}]){{3}}"
)
# Control, replacement and private characters and lone surrogates.
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf8ff\ufdd0-\ufdef\ufffc-\uffff\U000f0000-\U0010ffff]")


Kind = Literal["tags", "entities", "subtitles", "templates", "addresses", "characters"]


@options
class Markup(RowFilter):
    r"""Drop pairs with markup or broken characters.

    The kinds are tags (HTML, XML) and templates (`{{name}}`, `${name}`, `[[link]]`), both only if the two sides have
    different ones; entities (`&nbsp;`); subtitles (`<i>`, `{\an8}`, musical notes); addresses (a side with only web or
    mail addresses); characters (control, replacement and private characters, UTF-8 that was read as another encoding).
    """

    name: ClassVar[str] = "markup"
    reasons: ClassVar[tuple[str, ...]] = (MARKUP, BROKEN)

    which: Annotated[AnyOf[Kind], Field(min_length=1)] = setting(get_args(Kind), "kinds to look for")

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "markup" or "broken characters" for rows with either."""
        return [self._reason(row[0], row[1]) for row in rows]

    def _reason(self, first: str, second: str) -> str | None:
        if (_MAY_BE.search(first) or _MAY_BE.search(second)) and (
            any(map(self._has_markup, (first, second)))
            or ("tags" in self.which and _differ(_TAG, first, second))
            or ("templates" in self.which and _differ(_TEMPLATE, first, second))
        ):
            return MARKUP
        broken = "characters" in self.which and (has_broken_characters(first) or has_broken_characters(second))
        return BROKEN if broken else None

    def _has_markup(self, text: str) -> bool:
        if "entities" in self.which and any(not name or name in html5 for name in _ENTITY.findall(text)):
            return True
        if "subtitles" in self.which and _SUBTITLE.search(text):
            return True
        if "addresses" not in self.which or not ("://" in text or "@" in text):
            return False
        rest, found = _ADDRESS.subn("", text)
        return found > 0 and not any(map(str.isalpha, rest))  # nothing else


def has_broken_characters(text: str) -> bool:
    """Whether a text has control, replacement or private characters, lone surrogates, or misread UTF-8.

    Direction marks, joiners, soft hyphens and similar characters are part of good text.
    """
    return _NO_TEXT.search(text) is not None or (not text.isascii() and _MISREAD.search(text) is not None)


def _differ(pattern: re.Pattern[str], first: str, second: str) -> bool:
    return sorted(pattern.findall(first)) != sorted(pattern.findall(second))
