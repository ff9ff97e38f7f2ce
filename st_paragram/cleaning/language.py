"""Sides that are not in their language, by fastText's language identification."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from st_paragram.cleaning.base import Row, RowFilter
from st_paragram.cleaning.languages import short_code
from st_paragram.cleaning.options import as_choice, check_count, check_languages, check_number, set_field
from st_paragram.errors import SettingsError
from st_paragram.extras import require
from st_paragram.files import cache_folder

WRONG_LANGUAGE = "wrong language"

MODEL_NAMES = ("lid.176.bin", "lid.176.ftz")
"""Of fastText's model, the better one first; it is looked for in the folder `lid` of the cache."""

_LABEL = "__label__"
# What the model calls them by, where that is not the language's own code; and languages it cannot tell apart in a
# sentence, so that any of them will do.
_LABELS = {
    **dict.fromkeys(("no", "nb", "nn", "da"), ("no", "nn", "da")),
    **dict.fromkeys(("bs", "hr", "sh", "sr"), ("hr", "sr", "sh", "bs")),
    **dict.fromkeys(("id", "ms", "zsm"), ("id", "ms")),
    **dict.fromkeys(("zh", "yue", "wuu"), ("zh", "yue", "wuu", "ja")),
    **dict.fromkeys(("hi", "ne", "mr", "awa"), ("hi", "mr", "ne", "bh", "mai", "sa", "new")),
    "ar": ("ar", "arz"),
    "fa": ("fa", "mzn", "glk"),
    "az": ("az", "azb"),
    "pa": ("pa", "pnb"),
    "pt": ("pt", "gl"),
    "gl": ("gl", "pt"),
    "fil": ("tl",),
    "tl": ("tl",),
    "he": ("he",),
    "ku": ("ku", "ckb"),
}


class Sides(str, Enum):
    """The sides that are looked at."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"


@dataclass(frozen=True)
class Language(RowFilter):
    """Drop pairs with a side that fastText's lid.176 takes for another language than it should be in.

    A side goes if the model gives its language, with those it confuses with it, less than `min_probability`, and
    another at least `min_other`. Text in a language that the model does not know passes.

    Attributes:
        languages: Codes of the two sides.
        sides: "both", "first" or "second".
        min_probability: The least probability of the right language, 0 .. 1.
        min_other: The least probability of a wrong one, 0 .. 1; lower ones are guesses.
        min_characters: Shorter sides pass; names and exclamations have no language.
        model: File of the model; None: `lid/lid.176.bin` or `lid/lid.176.ftz` in the cache folder.
    """

    name: ClassVar[str] = "language"
    reasons: ClassVar[tuple[str, ...]] = (WRONG_LANGUAGE,)

    languages: tuple[str, str]
    sides: Sides = Sides.BOTH
    min_probability: float = 0.1
    min_other: float = 0.7
    min_characters: int = 30
    model: str | None = None

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            SettingsError: An option is out of range.
        """
        check_languages(self.name, self.languages)
        set_field(self, "sides", as_choice(self.name, "sides", self.sides, Sides))
        check_number(self.name, "min_probability", self.min_probability, low=0, high=1)
        check_number(self.name, "min_other", self.min_other, low=0, high=1)
        check_count(self.name, "min_characters", self.min_characters)
        if self.model is not None:
            set_field(self, "model", str(self.model))

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it.

        Raises:
            SettingsError: There is no model.
            MissingExtraError: fasttext-predict is not installed.
        """
        predict = _predictor(self.model_file())
        verdicts: list[str | None] = [None] * len(rows)
        for side, code in enumerate(self.languages):
            if self.sides in (Sides.BOTH, tuple(Sides)[1 + side]):
                right = {_LABEL + label for label in labels(code)}
                for index, row in enumerate(rows):
                    if verdicts[index] is None and len(row[side]) >= self.min_characters:
                        verdicts[index] = self._verdict(predict(row[side]), right)
        return verdicts

    def identity(self) -> dict[str, Any]:
        """The options, and the SHA-256 of the model in place of its name.

        Raises:
            SettingsError: There is no model.
        """
        return {**super().identity(), "model": _digest(self.model_file())}

    def model_file(self) -> Path:
        """The file of the model.

        Raises:
            SettingsError: There is none.
        """
        folder = cache_folder() / "lid"
        choices = [Path(self.model).expanduser()] if self.model else [folder / name for name in MODEL_NAMES]
        if found := next((path for path in choices if path.is_file()), None):
            return found
        command = f"get it with `st-paragram download --sets lid --folder {choices[0].parent}`"
        raise SettingsError(f"language: no model {' or '.join(map(str, choices))}; {command}")

    def _verdict(self, predictions: Sequence[tuple[str, float]], right: set[str]) -> str | None:
        probability = sum(share for label, share in predictions if label in right)
        other = max((share for label, share in predictions if label not in right), default=0.0)
        return WRONG_LANGUAGE if probability < self.min_probability and other >= self.min_other else None


def labels(code: str) -> tuple[str, ...]:
    """The labels, without `__label__`, by which the model may call a language: that of its code, and its doubles."""
    short = short_code(code)
    return _LABELS.get(code.lower().split("_")[0], _LABELS.get(short, (short,)))


@cache
def _predictor(path: Path) -> Callable[[str], list[tuple[str, float]]]:
    """What gives a text's five most probable labels, `__label__es`, and their probabilities."""
    fasttext = require("fasttext", "lid", 'the filter "language"')
    try:
        model = fasttext.load_model(str(path))
    except (ValueError, RuntimeError, MemoryError) as error:
        raise SettingsError(f"language: {path} is no fastText model ({error}); get it anew") from error

    def predict(text: str) -> list[tuple[str, float]]:
        """The model refuses newlines, and lone surrogates cannot be encoded."""
        clean = text.replace("\n", " ").encode("utf-8", "ignore").decode("utf-8")
        found, shares = model.predict(clean, k=5)
        return list(zip(found, map(float, shares), strict=True))

    return predict


def _digest(path: Path) -> str:
    state = path.stat()
    return _file_digest(path, state.st_size, state.st_mtime_ns)


@cache
def _file_digest(path: Path, size: int, modified: int) -> str:
    """SHA-256 of a file, taken anew only when its size or time has changed."""
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()
