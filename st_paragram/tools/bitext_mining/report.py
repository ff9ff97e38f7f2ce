"""What a mining run read, searched and found, in numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from st_paragram.core.words import counted
from st_paragram.tools.search.effort import describe_recall
from st_paragram.tools.search.sentences import SentenceCounts
from st_paragram.tools.stages.executors import StageTime


@dataclass(frozen=True)
class Searched:
    """How one side was searched.

    Attributes:
        index: "Flat", or the factory string of an inexact index.
        parts: Indexes that were searched one after another.
        effort: Lists or nodes looked at for a query; None if the search was exact, which finds all.
        recall: Share of a sample of queries whose nearest neighbor was found, see `effort`.
        recall_at_k: Share of their k nearest neighbors that were found.
        k: Of the latter.
        tried: Both recalls by every effort that was tried.
    """

    index: str
    parts: int = 1
    effort: int | None = None
    recall: float = 1.0
    recall_at_k: float = 1.0
    k: int = 0
    tried: dict[str, tuple[float, float]] | None = None

    def describe(self) -> str:
        """In words."""
        parts = f" in {self.parts} parts" if self.parts > 1 else ""
        if self.effort is None:
            return f"index {self.index}{parts}, exact"
        found = describe_recall(self.recall, self.recall_at_k, self.k)
        return f"index {self.index}{parts}, effort {self.effort}, finds {found}"


@dataclass(frozen=True)
class MiningReport:
    """The numbers of a mining run.

    Attributes:
        texts: Names of the texts.
        counts: What became of their lines.
        searched: One for each direction.
        pairs: Written.
        scores: What some shares of the pairs reach, best first: {"0": the best score, ..., "1": the worst}.
        times: Of the stages.
    """

    texts: tuple[str, ...]
    counts: tuple[SentenceCounts, ...]
    searched: tuple[Searched, ...]
    pairs: int
    scores: dict[str, float]
    times: list[StageTime]

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)

    def table(self) -> str:
        """Render plain text."""
        lines = [_of_text(name, counts) for name, counts in zip(self.texts, self.counts, strict=True)]
        for number, each in enumerate(self.searched):
            way = "among themselves" if len(self.texts) == 1 else ("source to target", "target to source")[number]
            lines.append(f"{way}: {each.describe()}")
        if self.scores:
            best, *others = self.scores.items()
            shown = ", ".join(f"{float(share):.0%} {score:.3f}" for share, score in others)
            lines.append(f"scores: best {best[1]:.3f}; reached by this share of the pairs: {shown}")
        done = [f"{each.name} {each.seconds:.1f}" for each in self.times if each.tasks]
        return "\n".join([*lines, f"seconds: {', '.join(done) or 'none, all was done before'}"])


def _of_text(name: str, counts: SentenceCounts) -> str:
    left_out = {
        "blank": counts.blank,
        "near-empty": counts.near_empty,
        "repeated": counts.repeated,
        "too frequent": counts.boilerplate,
    }
    shown = ", ".join(f"{count:,} {what}" for what, count in left_out.items() if count)
    most = f"; the most frequent occurs {counts.most_repeated:,} times" if counts.most_repeated > 1 else ""
    read = f"{counted(counts.lines, 'line')}, {counted(counts.sentences, 'sentence')}"
    return f"{name}: {read} ({shown or 'nothing left out'}{most})"
