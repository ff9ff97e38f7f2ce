"""Second stage: the embeddings of each text's sentences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from st_paragram.core.encoding.models import cached_model
from st_paragram.core.files import digest
from st_paragram.tools.bitext_mining.sentence_stage import SentenceStage
from st_paragram.tools.embed_files.shards import write_array
from st_paragram.tools.search.vectors import StoredVectors, VectorType, blocks, pack
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage

VERSION = 1  # of the results: count it up when they change


@dataclass(frozen=True)
class EmbedStage(Stage):
    """A task embeds one shard of one text's sentences.

    Attributes:
        sentences: Of the texts.
        model: Directory of a model.
        fingerprint: Of the model.
        vector_type: Of the numbers on disk.
        shard_rows: Sentences of a shard.
        threads: For the model, in each process.
    """

    name: ClassVar[str] = "embed"
    sentences: SentenceStage
    model: Path
    fingerprint: str
    vector_type: VectorType
    shard_rows: int
    threads: int

    def digests(self) -> list[str]:
        """One for each text."""
        how = [self.fingerprint, self.vector_type.value, self.shard_rows]
        return [digest(VERSION, text, how) for text in self.sentences.digests()]

    def results(self) -> list[Path]:
        """A `.npy` file for each shard, text by text."""
        return [path for side in range(len(self.digests())) for path in self.shards(side)]

    def shards(self, side: int) -> list[Path]:
        """The shards of a text, in order."""
        folder, count = self.folder(side), len(list(blocks(self.count(side), self.shard_rows)))
        return [folder / f"{number:05d}.npy" for number in range(count)]

    def count(self, side: int) -> int:
        """Number of sentences of a text."""
        return len(self.sentences.sentences(side))

    def vectors(self, side: int) -> StoredVectors:
        """The embeddings of a text."""
        return StoredVectors(tuple(self.shards(side)))

    def run(self, task: int) -> None:
        """Embed a shard.

        Raises:
            MiningError: The model gives embeddings without a direction.
        """
        path = self.results()[task]
        side, first = self.part_of(path), int(path.stem) * self.shard_rows
        sentences = self.sentences.sentences(side)
        rows = range(first, min(first + self.shard_rows, len(sentences)))
        model = cached_model(self.model, self.fingerprint, self.threads)
        vectors = model.encode(sentences.texts(rows), show_progress_bar=False)
        packed = pack(vectors, self.vector_type, self.sentences.texts[side])
        with write_array(path, self.vector_type.value, packed.shape) as write:
            write(packed)
        write_metadata(path, {"rows": len(rows)})
