"""The cost of a release, shown before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from st_paragram.core.tables import markdown_table
from st_paragram.release.description import ModelDescription, Release
from st_paragram.release.texts import SourceText, count_rows, texts_of

# Of one pair, on two cores of 2025 (AMD EPYC, Zen 4): preparing it, and training on it once.
_PREPARING = 50e-6
_TRAINING, _TRAINING_A_COMPONENT = 19e-6, 0.074e-6


@dataclass(frozen=True)
class ModelPlan:
    """A model to make.

    Attributes:
        name: Of the model.
        model: Its description.
        texts: What it is trained on.
        rows: Of each text.
    """

    name: str
    model: ModelDescription
    texts: Sequence[SourceText]
    rows: Sequence[int]

    @property
    def seconds(self) -> float:
        """A rough guess at the time that two cores need to prepare the text and to train."""
        settings, pairs = self.model.training(), sum(self.rows)
        return pairs * (_PREPARING + settings.epochs * (_TRAINING + _TRAINING_A_COMPONENT * settings.dim))

    @property
    def bytes(self) -> int:
        """A guess at the largest disk space that its checkpoints take: table and optimizer's state, twice."""
        return 2 * 3 * 4 * self.model.training().dim * self.model.preparing().pieces(sum(self.rows))


def plan(release: Release, folder: str | Path) -> list[ModelPlan]:
    """Look at the texts of all models.

    Args:
        release: What to make.
        folder: Of the texts, see `texts_of`.

    Raises:
        SettingsError: As `texts_of`.
        TextError: A text cannot be read.
    """
    texts = {name: texts_of(model, release, folder) for name, model in release.models.items()}
    distinct = {text.path: text for of_model in texts.values() for text in of_model}
    rows = {path: count_rows(text) for path, text in tqdm(distinct.items(), desc="looking at texts", unit="text")}
    return [
        ModelPlan(name, model, texts[name], [rows[text.path] for text in texts[name]])
        for name, model in release.models.items()
    ]


def plan_table(plans: Sequence[ModelPlan]) -> str:
    """The plans as a Markdown table, with the sum of their times."""
    columns = ("model", "languages", "texts", "pairs", "components", "epochs", "minutes", "GB of checkpoints")
    rows = [_row(each) for each in plans]
    minutes = sum(each.seconds for each in plans) / 60
    note = f"About {minutes:.0f} minutes on two cores, without scoring and packing: a guess by one machine's rates."
    return f"{markdown_table(columns, rows)}\n\n{note}"


def _row(each: ModelPlan) -> tuple[str, ...]:
    settings = each.model.training()
    return (
        each.name,
        each.model.language,
        f"{len(each.texts)}",
        f"{sum(each.rows):,}",
        f"{settings.dim:,}",
        f"{settings.epochs:g}",
        f"{each.seconds / 60:.0f}",
        f"{each.bytes / 1e9:.1f}",
    )
