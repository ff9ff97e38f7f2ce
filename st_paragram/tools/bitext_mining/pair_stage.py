"""The last stage of mining: scores, the choice of pairs, and the file they are written to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from st_paragram.core.files import atomic, digest
from st_paragram.tools.bitext_mining.candidates import Candidates, ScoredPairs, candidate_pairs, one_to_one, unordered
from st_paragram.tools.bitext_mining.search_stage import SearchStage
from st_paragram.tools.bitext_mining.sentence_stage import SentenceStage
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search.vectors import blocks
from st_paragram.tools.stages.metadata import output_state, write_metadata, written_before
from st_paragram.tools.stages.stage import Stage

_ROWS = 1 << 16


@dataclass(frozen=True)
class PairStage(Stage):
    """The one task writes `score TAB source TAB target`, best pairs first.

    Attributes:
        sentences: Of the texts.
        search: Their neighbors.
        settings: Of the mining run.
        output: The file.
    """

    name: ClassVar[str] = "pairs"
    sentences: SentenceStage
    search: SearchStage
    settings: MiningSettings
    output: Path

    def digests(self) -> list[str]:
        """The one digest."""
        settings = self.settings
        chosen = [settings.margin.value, settings.candidates.value, settings.threshold, settings.with_ids]
        return [digest(self.search.digests(), chosen, str(self.output.absolute()))]

    def results(self) -> list[Path]:
        """The marker in the work folder; the pairs themselves are where they were requested."""
        return [self.folder() / "pairs"]

    def pending(self) -> list[int]:
        """Nothing, if the pairs still are what was written."""
        return [] if written_before(self.results()[0], self.output) else [0]

    def run(self, task: int) -> None:
        """Score, choose, write."""
        pairs = self._choose()
        sides = [self.sentences.sentences(side) for side in ((0, 0) if self.settings.paraphrase else (0, 1))]
        take = [side.ids if self.settings.with_ids else side.texts for side in sides]
        with atomic(self.output) as handle:
            for begin, end in blocks(len(pairs), _ROWS):
                columns = [take[0](pairs.source[begin:end]), take[1](pairs.target[begin:end])]
                rows = zip(pairs.scores[begin:end].tolist(), *columns, strict=True)
                handle.write("".join(f"{score:.6f}\t{one}\t{other}\n" for score, one, other in rows).encode())
        metadata = {"output": output_state(self.output), "pairs": len(pairs), "scores": _quantiles(pairs)}
        write_metadata(self.results()[task], metadata)

    def _choose(self) -> ScoredPairs:
        settings = self.settings
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


def _quantiles(pairs: ScoredPairs) -> dict[str, Any]:
    """What some shares of the pairs reach, best first."""
    if not len(pairs):
        return {}
    shares = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    return {f"{share:g}": float(np.quantile(pairs.scores, 1 - share)) for share in shares}
