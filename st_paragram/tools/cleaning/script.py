"""The filter `script`: sides that are not written in a script of their language."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.settings import setting
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.code_points import CodePoints, as_verdicts, letters_table, table
from st_paragram.tools.cleaning.languages import scripts
from st_paragram.tools.cleaning.options import Languages, options
from st_paragram.tools.cleaning.unsegmented_scripts import HAN_LETTERS, KANA_LETTERS

# The letters of each script, as ranges for regular expressions.
# Blocks of the Unicode standard; digits, marks and punctuation in them do no harm, for only letters are counted.
SCRIPTS = {
    "Latin": "A-Za-z\xaa\xba\xc0-\u02b8\u02e0-\u02e4\u1d00-\u1dbf\u1e00-\u1eff\u2071\u207f\u2090-\u209c\u212a\u212b"
    "\u2132\u214e\u2184\u2c60-\u2c7f\ua722-\ua7ff\uab30-\uab69\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f\u1c80-\u1c8f\u1d2b\u1d78\u2de0-\u2dff\ua640-\ua69f",
    "Armenian": "\u0530-\u058f\ufb13-\ufb17",
    "Hebrew": "\u0590-\u05ff\ufb1d-\ufb4f",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u0870-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Syriac": "\u0700-\u074f\u0860-\u086a",
    "Thaana": "\u0780-\u07bf",
    "Devanagari": "\u0900-\u097f\ua8e0-\ua8ff",
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Oriya": "\u0b00-\u0b7f",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Sinhala": "\u0d80-\u0dff",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Tibetan": "\u0f00-\u0fff",
    "Myanmar": "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf\u2d00-\u2d2f",
    "Hangul": "\u1100-\u11ff\u3131-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc",
    "Ethiopic": "\u1200-\u139f\u2d80-\u2ddf\uab01-\uab2f",
    "Khmer": "\u1780-\u17ff\u19e0-\u19ff",
    "Mongolian": "\u1800-\u18af",
    "Tifinagh": "\u2d30-\u2d7f",
    "Han": "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003347f",
    "Kana": "\u3031-\u3035\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f",
}

# Letters of no script: the micro sign, modifier letters, letter-like symbols, letters of formulas.
NEUTRAL = "\xb5\u02b9-\u02df\u02e5-\u02ff\u2100-\u2129\u212c-\u2131\u2133-\u214d\U0001d400-\U0001d7ff"


NO_LETTERS, WRONG_SCRIPT = "no letters", "wrong script"

_NO_LETTERS, _WRONG_SCRIPT = 1, 2  # places in `reasons`, from 1
_OWN, _FOREIGN = 1, 2
_LOG = logging.getLogger(__name__)


@options
class Script(RowFilter):
    """Drop pairs with a side that has no letters, or too few letters of the scripts of its language.

    A Han character counts as three letters and a kana as two, so that names and code in Latin letters do not outweigh
    a Chinese sentence. If a language is not known here, its sides need only have letters.
    """

    name: ClassVar[str] = "script"
    reasons: ClassVar[tuple[str, ...]] = (NO_LETTERS, WRONG_SCRIPT)

    languages: Languages
    min_share: float = setting(0.25, "minimum share of a side's letters in the scripts of its language", ge=0, le=1)

    def __post_init__(self) -> None:
        """Warn, once, about a language that is not known here."""
        for code in self.languages:
            if not scripts(code):
                _warn_unknown(code)

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it."""
        first, second = ([row[side] for row in rows] for side in (0, 1))
        found = self._reasons(first, scripts(self.languages[0]))
        found = np.where(found == 0, self._reasons(second, scripts(self.languages[1])), found)
        return as_verdicts(found, self.reasons)

    def _reasons(self, texts: list[str], names: tuple[str, ...]) -> NDArray[np.int8]:
        points = CodePoints(texts)
        kinds = _kinds(names).take(points.codes)
        own, foreign = points.count(kinds == _OWN), points.count(kinds == _FOREIGN)
        reasons = np.where(own + foreign == 0, _NO_LETTERS, 0)
        if names:
            own = own * (KANA_LETTERS if "Kana" in names else HAN_LETTERS if "Han" in names else 1)
            reasons[(reasons == 0) & (own < self.min_share * (own + foreign))] = _WRONG_SCRIPT
        return reasons.astype(np.int8)


@cache
def _warn_unknown(code: str) -> None:
    _LOG.warning("script: no script is known for the language %s; its sides need only have letters", code)


@cache
def _kinds(names: tuple[str, ...]) -> NDArray[np.uint8]:
    own = table({SCRIPTS[name]: 1 for name in names}) > 0
    kinds = np.where(own, np.uint8(_OWN), np.uint8(_FOREIGN))
    kinds[~letters_table() | (table({NEUTRAL: 1}) > 0)] = 0
    return kinds
