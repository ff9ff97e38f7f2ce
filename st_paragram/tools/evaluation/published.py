"""Rows from the papers, for comparison with ours; every row is theirs, measured with their models and data.

The rows themselves are in the files of the benchmarks.

All figures are shares (0.746 where a paper prints 74.6), errors too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Source(str, Enum):
    """Where a row was printed; the value is the reference, `venue` the short form."""

    P_SP = "Wieting et al., EMNLP 2022 (demo)"
    SP = "Wieting et al., ACL 2019"
    BGT = "Wieting et al., EMNLP 2020"
    MUSE = "Yang et al., ACL 2020 (demo)"
    GILLICK = "Gillick, Presta and Tomar, 2018"
    USE_QA = "the model's page on TensorFlow Hub"
    MTEB = "embeddings-benchmark/results, mteb's repository of results"

    @property
    def venue(self) -> str:
        """E.g. "EMNLP 2022"."""
        return _VENUES[self.name]


_VENUES = {
    "P_SP": "EMNLP 2022",
    "SP": "ACL 2019",
    "BGT": "EMNLP 2020",
    "MUSE": "ACL 2020",
    "GILLICK": "2018",
    "USE_QA": "TF-Hub",
    "MTEB": "mteb",
}


@dataclass(frozen=True)
class Published:
    """One row of a paper's table.

    Args:
        model: as the paper calls it.
        source: the paper.
        scores: column -> share; the tables below say which measure.
        spearman: column -> Spearman's correlation, where `scores` are Pearson's and the paper gives both.
    """

    model: str
    source: Source
    scores: dict[str, float]
    spearman: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The model's name with a mark that the row is published, and where."""
        return f"{self.model} (published, {self.source.venue})"


def rows(source: Source, columns: str, text: str) -> tuple[Published, ...]:
    r"""Rows `model: figure figure ...`; `76.2\76.7` is Pearson\Spearman, `-` no figure."""
    return tuple(_row(source, columns.split(), *line.strip().split(": ")) for line in text.strip().split("\n"))


def _row(source: Source, columns: list[str], model: str, figures: str) -> Published:
    row = Published(model, source, {})
    for column, cell in zip(columns, figures.split(), strict=True):
        first, _, second = cell.partition("\\")
        if first != "-":
            row.scores[column] = round(float(first) / 100, 6)
        if second:
            row.spearman[column] = round(float(second) / 100, 6)
    return row
