"""Second stage: the embeddings of each span of lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from st_paragram.core.encoding.models import cached_model
from st_paragram.core.files import content_digest, digest
from st_paragram.core.text.streams import stream_name
from st_paragram.core.threads import usable_cores, usable_threads
from st_paragram.tools.embed_files.line_stage import LineStage
from st_paragram.tools.embed_files.row_encoder import RowEncoder, batches, blank_lines, pack_lines
from st_paragram.tools.embed_files.settings import CollectionSettings
from st_paragram.tools.embed_files.shards import ShardShape, shard_files, shard_writer
from st_paragram.tools.stages.metadata import metadata_file, output_state, read_metadata, write_metadata
from st_paragram.tools.stages.stage import Stage

VERSION = 2  # of the results: count it up when they change


@dataclass(frozen=True)
class ShardStage(Stage):
    """A task embeds one span of one text.

    Attributes:
        lines: Of the texts.
        model: Directory of a model.
        fingerprint: Of the model.
        settings: What the shards are like.
        processes: That share the cores of a machine.
    """

    name: ClassVar[str] = "embed"
    lines: LineStage
    model: Path
    fingerprint: str
    settings: CollectionSettings
    processes: int

    def digests(self) -> list[str]:
        """One for each text."""
        asked = self.settings
        how = [asked.dtype.value, asked.dim, asked.normalize, asked.format.value, asked.with_text]
        return [digest(VERSION, each, self.fingerprint, how) for each in self.lines.digests()]

    def results(self) -> list[Path]:
        """A shard for each span, text by text; a text that is named twice has its shards once."""
        return [path for shards in dict(self._shards()).values() for path in shards]

    def shards(self) -> list[list[Path]]:
        """For each text its shards, in order."""
        return [shards for _, shards in self._shards()]

    def _shards(self) -> Iterator[tuple[str, list[Path]]]:
        suffix = self.settings.format.value
        for name, text in zip(self.digests(), self.lines.scanned(), strict=True):
            folder = self.root / self.name / name
            yield name, [folder / f"{number:05d}.{suffix}" for number in range(len(text.spans))]

    def pending(self) -> list[int]:
        """Tasks that are not done, or whose files have been changed since by somebody who changed a link to them."""
        return [task for task, path in enumerate(self.results()) if not self._is_done(path)]

    def _is_done(self, path: Path) -> bool:
        if not metadata_file(path).is_file():
            return False
        files: dict[str, Any] = read_metadata(path)["files"]
        named = {name: path.with_name(name) for name in files}
        return all(file.is_file() and output_state(file) == files[name] for name, file in named.items())

    def run(self, task: int) -> None:
        """Embed a span.

        Raises:
            TextError: The text changed meanwhile.
            ParagramError: The model gives numbers that cannot be stored.
        """
        path = self.results()[task]
        text, number = self.part_of(path), int(path.stem)
        span = self.lines.scanned()[text].spans[number]
        encode = self.encoder()
        shape = ShardShape(span.lines, encode.dimension, self.settings.dtype, self.settings.with_text)
        name, line, blank = stream_name(self.lines.texts[text]), span.first, 0
        with shard_writer(path, shape) as write:
            for batch in batches(self.lines.read(text, number)):
                write(pack_lines(encode(batch), self.settings.dtype, name, line), batch)
                line += len(batch)
                blank += blank_lines(batch)
        files = shard_files(path, self.settings.dtype)
        made = {
            "rows": span.lines,
            "dimension": encode.dimension,
            "blank": blank,
            "sha256": list(map(content_digest, files)),
            "files": {file.name: output_state(file) for file in files},
        }
        write_metadata(path, made)

    def encoder(self) -> RowEncoder:
        """The model, loaded once in a process.

        Raises:
            SettingsError: It has fewer components than are to be kept.
        """
        return RowEncoder(cached_model(self.model, self.fingerprint, self._threads()), self.settings)

    def _threads(self) -> int:
        """Threads of the process that does a task: its share of the cores, or fewer if its environment says so."""
        return max(1, min(usable_cores() // self.processes, usable_threads()))
