"""The last stage of mining: scores, the choice of pairs, and the file they are written to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from st_paragram.bitext_mining.margin import (
    Candidates,
    ScoredPairs,
    candidate_pairs,
    one_to_one,
    unordered,
)
from st_paragram.bitext_mining.stages import EmbedStage, SearchStage
from st_paragram.files import atomic, digest
from st_paragram.search.vectors import blocks
from st_paragram.stages.stage import Stage
from st_paragram.stages.work import metadata_file, write_metadata

_ROWS = 1 << 16


@dataclass(frozen=True)
class PairStage(Stage):
    """The one task writes `score TAB source TAB target`, best pairs first."""

    name: ClassVar[str] = "pairs"
    search: SearchStage
    output: Path

    def results(self) -> list[Path]:
        """The marker in the work folder; the pairs themselves stand where they were asked for."""
        return [folder / "pairs" for folder in self.folders]

    @property
    def folders(self) -> set[Path]:
        """The one folder."""
        settings = self._embed.settings
        searched = [path.parent.name for path in self.search.results()]
        chosen = [settings.margin.value, settings.candidates.value, settings.threshold, settings.with_ids]
        return {self._embed.before.folder / self.name / digest(searched, chosen, str(self.output.absolute()))}

    def pending(self) -> list[int]:
        """Nothing, if the pairs still are what was written."""
        (marker,) = self.results()
        if metadata_file(marker).is_file() and self.output.is_file():
            status = self.output.stat()
            if json.loads(metadata_file(marker).read_bytes())["output"] == [status.st_size, status.st_mtime_ns]:
                return []
        return [0]

    def run(self, task: int) -> None:
        """Score, choose, write."""
        pairs = self._choose()
        sides = (0, 0) if self._embed.settings.paraphrase else (0, 1)
        take = [
            self._embed.before.sentences(side).ids
            if self._embed.settings.with_ids
            else self._embed.before.sentences(side).texts
            for side in sides
        ]
        with atomic(self.output) as handle:
            for begin, end in blocks(len(pairs), _ROWS):
                columns = [take[0](pairs.source[begin:end]), take[1](pairs.target[begin:end])]
                rows = zip(pairs.scores[begin:end].tolist(), *columns, strict=True)
                handle.write("".join(f"{score:.6f}\t{one}\t{other}\n" for score, one, other in rows).encode())
        status = self.output.stat()
        write_metadata(
            self.results()[task],
            {"output": [status.st_size, status.st_mtime_ns], "pairs": len(pairs), "scores": _quantiles(pairs)},
        )

    def _choose(self) -> ScoredPairs:
        settings = self._embed.settings
        forward = self.search.neighbours(0)
        if settings.paraphrase:
            pairs = unordered(candidate_pairs(forward, forward, settings.margin, settings.candidates))
            pairs = one_to_one(pairs) if settings.candidates is Candidates.MAX else pairs
        else:
            pairs = candidate_pairs(forward, self.search.neighbours(1), settings.margin, settings.candidates)
        if settings.threshold is None:
            return pairs
        enough = pairs.scores >= settings.threshold
        return ScoredPairs(pairs.source[enough], pairs.target[enough], pairs.scores[enough])

    @property
    def _embed(self) -> EmbedStage:
        return self.search.before.before.plan.embed


def _quantiles(pairs: ScoredPairs) -> dict[str, Any]:
    """Scores at some shares of the pairs, best first."""
    if not len(pairs):
        return {}
    shares = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    return {f"{share:g}": float(np.quantile(pairs.scores, 1 - share)) for share in shares}
