"""The filter `language`: sides that are not in their language, as fastText's language identification sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from st_paragram.core.extras import require
from st_paragram.core.files import cache_folder, content_digest
from st_paragram.core.settings import setting
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.base import Row, RowFilter
from st_paragram.tools.cleaning.languages import short_code
from st_paragram.tools.cleaning.options import Languages, options
from st_paragram.tools.language_identification import labels

WRONG_LANGUAGE = "wrong language"

MODEL_NAMES = ("lid.176.bin", "lid.176.ftz")
"""Files of fastText's model, the better one first; they are looked for in the folder `lid` of the cache."""

_LABEL = "__label__"


class Sides(str, Enum):
    """The sides to look at."""

    BOTH = "both"
    FIRST = "first"
    SECOND = "second"


@options
class Language(RowFilter):
    """Drop pairs with a side that fastText's model lid.176 takes for another language than it should be in.

    A side is in a wrong language if the model gives the right one, together with those it confuses with it, less than
    `min_probability`, and another at least `min_other`. Text in a language that the model does not know passes.
    """

    name: ClassVar[str] = "language"
    reasons: ClassVar[tuple[str, ...]] = (WRONG_LANGUAGE,)

    languages: Languages
    sides: Sides = setting(Sides.BOTH, "sides to check")
    min_probability: float = setting(0.1, "minimum probability of the right language", ge=0, le=1)
    min_other: float = setting(
        0.7, "minimum probability of a wrong language; below it, the language is a guess", ge=0, le=1
    )
    min_characters: int = setting(
        30, "minimum length of a side to check; names and exclamations have no language", ge=0
    )
    model: Path | None = setting(None, "model file; default: lid/lid.176.bin or .ftz in the cache folder")

    def reject(self, rows: Sequence[Row]) -> list[str | None]:
        """Return for each row the reason to drop it, or None to keep it.

        Raises:
            SettingsError: The model is not there, or not readable.
            MissingExtraError: fasttext-predict is not installed.
        """
        predict = _predictor(self.model_file())
        verdicts: list[str | None] = [None] * len(rows)
        for side, code in enumerate(self.languages):
            if self.sides in (Sides.BOTH, tuple(Sides)[1 + side]):
                right = {_LABEL + label for label in labels(short_code(code))}
                for index, row in enumerate(rows):
                    if verdicts[index] is None and len(row[side]) >= self.min_characters:
                        verdicts[index] = self._verdict(predict(row[side]), right)
        return verdicts

    def identity(self) -> dict[str, Any]:
        """The options, with the SHA-256 of the model in place of its name.

        Raises:
            SettingsError: The model is not there.
        """
        return {**super().identity(), "model": _digest(self.model_file())}

    def model_file(self) -> Path:
        """The file of the model.

        Raises:
            SettingsError: The model is not there.
        """
        folder = cache_folder() / "lid"
        choices = [self.model.expanduser()] if self.model else [folder / name for name in MODEL_NAMES]
        if found := next((path for path in choices if path.is_file()), None):
            return found
        command = f"get it with `st-paragram download --sets lid --folder {choices[0].parent}`"
        raise SettingsError(f"language: there is no model {' or '.join(map(str, choices))}; {command}")

    def _verdict(self, predictions: Sequence[tuple[str, float]], right: set[str]) -> str | None:
        probability = sum(share for label, share in predictions if label in right)
        other = max((share for label, share in predictions if label not in right), default=0.0)
        return WRONG_LANGUAGE if probability < self.min_probability and other >= self.min_other else None


@cache
def _predictor(path: Path) -> Callable[[str], list[tuple[str, float]]]:
    """A function that gives the five most probable labels of a text, like `__label__es`, and their probabilities."""
    fasttext = require("fasttext", "lid", 'the filter "language"')
    try:
        model = fasttext.load_model(str(path))
    except (ValueError, RuntimeError, MemoryError) as error:
        raise SettingsError(f"language: {path} is not a fastText model ({error}); download it again") from error

    def predict(text: str) -> list[tuple[str, float]]:
        """Predict, without newlines, which the model refuses, and lone surrogates, which cannot be encoded."""
        clean = text.replace("\n", " ").encode("utf-8", "ignore").decode("utf-8")
        found, shares = model.predict(clean, k=5)
        return list(zip(found, map(float, shares), strict=True))

    return predict


def _digest(path: Path) -> str:
    state = path.stat()
    return _file_digest(path, state.st_size, state.st_mtime_ns)


@cache
def _file_digest(path: Path, size: int, modified: int) -> str:
    """SHA-256 of a file, computed again only when its size or time has changed."""
    return content_digest(path)
