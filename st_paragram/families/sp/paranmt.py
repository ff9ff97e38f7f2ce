"""How paraphrases with scores are filtered, as the papers filter ParaNMT. Nothing here needs torch."""

from __future__ import annotations

from typing import Any

from st_paragram.core.settings import setting, settings
from st_paragram.tools.cleaning.config import Cleaning, parse_cleaning
from st_paragram.tools.cleaning.overlap import Overlap
from st_paragram.tools.cleaning.paraphrase_score import ParaphraseScore

_TEXTS = 2  # columns before the further ones


@settings
class ParanmtSettings:
    """The filters of paraphrases; the defaults are those of EMNLP 2022, section 3. Columns are counted from 1."""

    sim_low: float = setting(ParaphraseScore.low, "minimum score")
    sim_high: float = setting(ParaphraseScore.high, "maximum score")
    overlap: float = setting(Overlap.max_overlap, "maximum share of word trigrams in common", ge=0, le=1)
    min_length: int = setting(5, "minimum words per side", ge=1)
    max_length: int = setting(40, "maximum words per side", ge=1)
    columns: int | None = setting(
        None, "number of columns of the texts; default: as many as the other options need", ge=_TEXTS
    )
    score_column: int = setting(3, "number of the score column", ge=_TEXTS + 1)
    model: str | None = setting(None, "model (directory or name) to compute the scores with instead")
    label_column: int | None = setting(
        None, "number of a language label column; only rows with the label --label stay", ge=_TEXTS + 1
    )
    label: str = setting("en", "label that rows must have in --label-column")
    lid: bool = setting(False, "also drop rows in another language according to fastText (needs the extra lid)")

    @property
    def further_columns(self) -> int:
        """Columns behind the two sentences."""
        needed = max(self.label_column or 0, _TEXTS if self.model else self.score_column)
        return (self.columns or needed) - _TEXTS

    def cleaning(self) -> Cleaning:
        """The filters, those that cost least first.

        Raises:
            SettingsError: The options of a filter contradict each other.
        """
        filters: list[dict[str, Any]] = [{"length": {"min_length": self.min_length, "max_length": self.max_length}}]
        if self.label_column:
            filters.append({"label": {"column": self.label_column - _TEXTS - 1, "value": self.label}})
        where = {"model": self.model} if self.model else {"column": self.score_column - _TEXTS - 1}
        score: list[dict[str, Any]] = [{"paraphrase_score": {"low": self.sim_low, "high": self.sim_high, **where}}]
        others: list[dict[str, Any]] = [{"overlap": {"max_overlap": self.overlap}}]
        others += [{"language": {}}] if self.lid else []
        filters += [*others, *score] if self.model else [*score, *others]
        return parse_cleaning([*filters, {"duplicates": {"on": ["pair"]}}], "the options")
