"""First stage: the distinct sentences of each text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from st_paragram.core.files import digest, is_pipe
from st_paragram.tools.search.sentences import Sentences, write_sentences
from st_paragram.tools.stages.stage import Stage

VERSION = 1  # of the results: count it up when they change


@dataclass(frozen=True)
class SentenceStage(Stage):
    """A task finds the distinct sentences of one text.

    Attributes:
        texts: Files, or `-`.
        identities: Of each text what `files.file_digest` gives.
        with_ids: Lines are `id TAB sentence`.
        most_repeats: Leave out sentences that occur more often; None for all.
        columns: Of each text its column, if it is a table; None for plain text.
    """

    name: ClassVar[str] = "sentences"
    texts: tuple[str, ...]
    identities: tuple[str, ...]
    with_ids: bool
    most_repeats: int | None
    columns: tuple[str | None, ...]

    def digests(self) -> list[str]:
        """One for each text."""
        return [
            digest(VERSION, each, self.with_ids, self.most_repeats, *([column] if column else []))
            for each, column in zip(self.identities, self.columns, strict=True)
        ]

    def results(self) -> list[Path]:
        """The texts of the sentences."""
        return [self.folder(side) / "text" for side in range(len(self.texts))]

    def local(self, task: int) -> bool:
        """Pipes can be read by the process that was started with them alone."""
        return is_pipe(self.texts[task])

    def sentences(self, side: int) -> Sentences:
        """The sentences of a text."""
        return Sentences(self.folder(side))

    def run(self, task: int) -> None:
        """Find them; raises as `write_sentences`."""
        write_sentences(self.texts[task], self.folder(task), self.with_ids, self.most_repeats, self.columns[task])
