"""What a mining run read, searched and found, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, field

from st_paragram.core.words import counted
from st_paragram.tools.neighbors.effort import Effort
from st_paragram.tools.neighbors.sentences import SentenceCounts


@dataclass(frozen=True)
class Searched:
    """How one side was searched.

    Attributes:
        index: The factory string of an index; None if everything was compared with everything.
        parts: Indexes that were searched one after another.
        effort: How hard they looked, and what they found; None without an index.
    """

    index: str | None = None
    parts: int = 1
    effort: Effort | None = None

    def __str__(self) -> str:
        """In words."""
        parts = f" in {self.parts} parts" if self.parts > 1 else ""
        return f"index {self.index}{parts}, {self.effort}" if self.effort else "exact"


@dataclass(frozen=True)
class MiningReport:
    """The numbers of a mining run.

    Attributes:
        texts: Names of the texts.
        counts: What became of their lines.
        searched: One for each direction.
        pairs: Written.
        scores: What some shares of the pairs reach, best first: {"0": the best score, ..., "1": the worst}.
        seconds: What each part of the work took: sentences, embed, search, pairs.
    """

    texts: tuple[str, ...]
    counts: tuple[SentenceCounts, ...]
    searched: tuple[Searched, ...]
    pairs: int
    scores: dict[str, float]
    seconds: dict[str, float] = field(default_factory=dict)

    def table(self) -> str:
        """Render plain text."""
        lines = []
        for name, counts in zip(self.texts, self.counts, strict=True):
            read = f"{counted(counts.lines, 'line')}, {counted(counts.sentences, 'sentence')}"
            left_out = f"{counts.blank:,} blank, {counts.near_empty:,} near-empty, {counts.repeated:,} repeated"
            often = f", {counts.boilerplate:,} too frequent" if counts.boilerplate else ""
            most = f"the most frequent occurs {counted(counts.most_repeated, 'time')}"
            lines.append(f"{name}: {read} ({left_out}{often}; {most})")
        ways = ("among themselves",) if len(self.texts) == 1 else ("source to target", "target to source")
        lines += [f"{way}: {searched}" for way, searched in zip(ways, self.searched, strict=True)]
        if self.scores:
            best, *others = self.scores.items()
            shown = ", ".join(f"{float(share):.0%} {score:.3f}" for share, score in others)
            lines.append(f"scores: best {best[1]:.3f}; reached by this share of the pairs: {shown}")
        took = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.seconds.items())
        return "\n".join([*lines, f"seconds: {took}"])
