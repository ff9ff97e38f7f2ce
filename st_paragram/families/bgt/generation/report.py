"""Means of the measures of sentences that come batch by batch, and BLEU of them all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from st_paragram.core.tables import MISSING, markdown_table
from st_paragram.families.bgt.generation.measures import measure

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from st_paragram.families.bgt.generation.bleu import CorpusBleu
    from st_paragram.families.bgt.generation.measures import Measures


class Report:
    """What sentences that were written are like.

    Args:
        scorer: as `measures.measure` has it.
        bleu: counts outputs and references; None where there are no references.

    Attributes:
        rows: Sentences so far.
    """

    def __init__(self, scorer: SentenceTransformer, bleu: CorpusBleu | None = None) -> None:
        self.scorer, self.bleu, self.rows = scorer, bleu, 0
        self._sums: defaultdict[str, float] = defaultdict(float)

    def add(
        self,
        outputs: Sequence[str],
        sources: Sequence[str],
        styles: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> list[Measures]:
        """Measure N sentences.

        Args:
            outputs: N sentences that were written.
            sources: N sentences whose meaning they have.
            styles: N sentences of whose style they are; all batches have some, or none has.
            references: N sentences that they should be, for BLEU.

        Raises:
            MiningError: a cosine is not finite: the scorer is damaged.
        """
        found = measure(self.scorer, outputs, sources, styles)
        self.rows += len(found)
        for one in found:
            for name, value in one.titled().items():
                self._sums[name] += value
        if self.bleu and references is not None:
            for output, reference in zip(outputs, references, strict=True):
                self.bleu.add(output, reference)
        return found

    def means(self) -> dict[str, float]:
        """The mean of each measure by its name, and BLEU; nothing where nothing was measured."""
        found = {name: value / self.rows for name, value in self._sums.items()}
        return found | {"BLEU": self.bleu.score()} if self.bleu and self.rows else found

    def table(self) -> str:
        """The means as a Markdown table."""
        rows = [[name, f"{value:.1f}" if name == "BLEU" else f"{value:.3f}"] for name, value in self.means().items()]
        return markdown_table([f"of {self.rows:,} sentences", "mean"], rows or [["nothing written", MISSING]])
