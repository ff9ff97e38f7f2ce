"""Pairs of documents as tasks: mine or align each, on any executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from st_paragram.core.encoding.models import cached_model
from st_paragram.core.files import atomic, digest
from st_paragram.errors import MiningError
from st_paragram.tools.alignment.alignment import align
from st_paragram.tools.alignment.document_list import read_document, read_plan
from st_paragram.tools.alignment.scores import Embed, unit_vectors
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.candidates import candidate_pairs
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search.nearest import nearest_both_ways
from st_paragram.tools.search.threads import at_most
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage

VERSION = 1  # of results: count it up when they change

Settings = AlignmentSettings | MiningSettings
Row = tuple[float, str, str]


@dataclass(frozen=True)
class DocumentStage(Stage):
    """A task writes `score TAB source TAB target` for one pair of documents; metadata: the number of `pairs`.

    Attributes:
        plan: The documents, as `write_plan` writes them.
        model: Directory of a model.
        fingerprint: Of the model.
        settings: Of the kind that says what to do: align, or mine without regard to order.
        threads: For each process.
    """

    name: ClassVar[str] = "documents"
    plan: Path
    model: Path
    fingerprint: str
    settings: Settings
    threads: int

    def digests(self) -> list[str]:
        """The one digest."""
        settings = self.settings
        if isinstance(settings, AlignmentSettings):
            how = ["align", settings.k, settings.margin, settings.least, settings.with_skipped]
        else:
            how = ["mine", settings.k, settings.margin, settings.candidates, settings.threshold]
        return [digest(VERSION, self.fingerprint, how)]

    def results(self) -> list[Path]:
        """A file for each pair of documents; pairs that are named twice have one together."""
        folder = self.folder()
        return [folder / key for _, key in read_plan(self.plan)]

    def run(self, task: int) -> None:
        """Mine or align.

        Raises:
            MiningError: The model gives embeddings without a direction.
            TextError: A document cannot be read any more.
        """
        pair, key = read_plan(self.plan)[task]
        folder = self.folder()
        source, target = read_document(pair.source), read_document(pair.target)
        try:
            embed = _embed(self.model, self.fingerprint, self.threads)
            with at_most(self.threads):
                rows = list(_rows(source, target, embed, self.settings))
        except MiningError as error:
            raise pair.error(error) from error
        with atomic(folder / key) as handle:
            handle.write("".join(f"{score:.6f}\t{one}\t{other}\n" for score, one, other in rows).encode())
        write_metadata(folder / key, {"pairs": sum(bool(one and other) for _, one, other in rows)})


def _rows(source: Sequence[str], target: Sequence[str], embed: Embed, settings: Settings) -> Iterator[Row]:
    if isinstance(settings, MiningSettings):
        yield from mine_pair(source, target, embed, settings)
        return
    for block in align(source, target, embed, settings):
        one, other = (
            " ".join(document[row] for row in rows)
            for document, rows in ((source, block.source), (target, block.target))
        )
        yield block.score, one, other


def mine_pair(source: Sequence[str], target: Sequence[str], embed: Embed, settings: MiningSettings) -> list[Row]:
    """Find sentences of two documents that translate each other, in any order, as rows of score, source, target.

    Backgrounds are of `k` neighbors, or of as many as there are in a smaller document. Identical sentences of a
    document count as one, blank ones as none.

    Args:
        source: Sentences.
        target: Sentences.
        embed: Gives float32 (c, D) for c texts.
        settings: `k`, `margin`, `candidates` and `threshold` count here.

    Returns:
        Rows of the best scores first.

    Raises:
        MiningError: An embedding has no direction.
    """
    sides = [list(dict.fromkeys(filter(str.strip, document))) for document in (source, target)]
    if not all(sides):
        return []
    one, other = (unit_vectors(side, embed, name) for side, name in zip(sides, ("source", "target"), strict=True))
    pairs = candidate_pairs(*nearest_both_ways(one, other, settings.k), settings.margin, settings.candidates)
    found = zip(pairs.scores.tolist(), pairs.source.tolist(), pairs.target.tolist(), strict=True)
    least = float("-inf") if settings.threshold is None else settings.threshold
    return [(score, sides[0][i], sides[1][j]) for score, i, j in found if score >= least]


def _embed(model: Path, fingerprint: str, threads: int) -> Embed:
    encoder = cached_model(model, fingerprint, threads)
    return lambda texts: encoder.encode(list(texts), show_progress_bar=False)
