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
from st_paragram.tools.cleaning.unicode_scripts import NEUTRAL, SCRIPTS
from st_paragram.tools.cleaning.unsegmented_scripts import HAN_LETTERS, KANA_LETTERS

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
    min_share: float = setting(
        0.25, "least share of the letters of a side that must be of the scripts of its language", least=0, most=1
    )

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
