"""Last stage: put the encoded rows together as a pair store, with the report of all stages inside."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from tqdm import tqdm

from st_paragram.core.files import digest
from st_paragram.core.pair_store import PairStoreWriter
from st_paragram.core.text.parallel import TextSource
from st_paragram.tools.preparation.encode_stage import EncodeStage
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.preparation.text_stage import TextStage
from st_paragram.tools.stages.metadata import output_state, write_metadata, written_before
from st_paragram.tools.stages.stage import Stage


@dataclass(frozen=True)
class StoreStage(Stage):
    """The one task writes the store.

    Attributes:
        encode: Whose results go into it.
        sources: The texts, for the languages of rows.
        settings: Of the preparation, for the store.
        vocabulary_given: Whether the vocabulary was not trained here, for the store.
        output: The store.
        text: Keeps the text of the rows, if it is to be kept; the store says which it is.
    """

    name: ClassVar[str] = "store"
    encode: EncodeStage
    sources: tuple[TextSource, ...]
    settings: PrepareSettings
    vocabulary_given: bool
    output: Path
    text: TextStage | None = None

    def digests(self) -> list[str]:
        """The one digest."""
        text = [self.text.digests()] if self.text else []
        return [digest(self.encode.digests(), self._described(), str(self.output.absolute()), *text)]

    def results(self) -> list[Path]:
        """The marker in the work folder; the store itself is where it was requested."""
        return [self.folder() / "store"]

    def pending(self) -> list[int]:
        """Nothing, if the store still is what was made."""
        return [] if written_before(self.results()[0], self.output) else [0]

    def report(self) -> PrepareReport:
        """The numbers of all stages."""
        return self.encode.report()

    def run(self, task: int) -> None:
        """Write the store.

        Raises:
            TextError: Fewer than two pairs are left; no store is made then.
        """
        started = time.perf_counter()
        encode, settings, report = self.encode, self.settings, self.report()
        report.check_enough()
        described = self._described() | {"report": report.as_json()}
        if self.text:
            described["texts"] = self.text.sha256
        first, second = encode.tokenizers()
        tokenizers = first if first is second else (first, second)
        pairs = [source.pair_among(settings.languages) for source in self.sources]
        different = list(dict.fromkeys(pairs))
        numbers = np.array([different.index(pair) for pair in pairs])
        with (
            PairStoreWriter(
                self.output, settings.languages, tokenizers, settings.max_tokens, described, settings.seed, different
            ) as writer,
            tqdm(
                total=report.total.kept, desc=self.output.name, unit=" pairs", unit_scale=True, disable=None
            ) as progress,
        ):
            for path in encode.results():
                with np.load(path, allow_pickle=False) as arrays:
                    a, b = ((arrays[f"{side}_ids"], arrays[f"{side}_offsets"]) for side in "ab")
                    writer.append(*a, *b, numbers[arrays["sources"]])
                    progress.update(len(arrays["a_offsets"]) - 1)
        seconds = time.perf_counter() - started
        write_metadata(self.results()[task], {"output": output_state(self.output), "seconds": seconds})

    def _described(self) -> dict[str, Any]:
        return self.settings.as_json() | {"vocabulary_given": self.vocabulary_given}
