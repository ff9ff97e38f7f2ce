"""Last stage: put the encoded rows together as a pair store, with the report of all stages inside."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from tqdm import tqdm

from st_paragram.data.pair_store import PairStoreWriter
from st_paragram.files import digest
from st_paragram.preparation.encode_stage import EncodeStage
from st_paragram.preparation.report import PrepareReport, collect
from st_paragram.preparation.settings import PrepareSettings
from st_paragram.stages.stage import Stage
from st_paragram.stages.work import metadata_file, write_metadata


@dataclass(frozen=True)
class StoreStage(Stage):
    """The one task writes the store.

    Attributes:
        encode: Whose results go into it.
        settings: Of the preparation, for the store.
        output: The store.
    """

    name: ClassVar[str] = "store"
    encode: EncodeStage
    settings: PrepareSettings
    output: Path

    def results(self) -> list[Path]:
        """The marker in the work folder; the store itself stands where it was asked for."""
        return [folder / "store" for folder in self.folders]

    @property
    def folders(self) -> set[Path]:
        """The one folder."""
        described = digest(self.encode.digest, self._described(), str(self.output.absolute()))
        return {self.encode.order.distinct.folder / self.name / described}

    def pending(self) -> list[int]:
        """Nothing, if the store still is what was made."""
        (marker,) = self.results()
        if metadata_file(marker).is_file() and self.output.is_file():
            facts = json.loads(metadata_file(marker).read_bytes())
            status = self.output.stat()
            if facts["output"] == [status.st_size, status.st_mtime_ns]:
                return []
        return [0]

    def report(self) -> PrepareReport:
        """The numbers of all stages."""
        return collect(self.encode)

    def run(self, task: int) -> None:
        """Write the store.

        Raises:
            TextError: Fewer than two pairs are left; no store is made then.
        """
        started = time.perf_counter()
        encode, settings, report = self.encode, self.settings, self.report()
        report.check_enough()
        described = self._described() | {"report": report.as_json()}
        vocabulary = encode.load_vocabulary()
        pairs = [source.pair_among(settings.languages) for source in encode.order.sources]
        different = list(dict.fromkeys(pairs))
        numbers = np.array([different.index(pair) for pair in pairs])
        with (
            PairStoreWriter(
                self.output, settings.languages, vocabulary, settings.max_pieces, described, settings.seed, different
            ) as writer,
            tqdm(
                total=report.total.kept, desc=self.output.name, unit=" pairs", unit_scale=True, disable=None
            ) as progress,
        ):
            for path in encode.results():
                with np.load(path, allow_pickle=False) as arrays:
                    ids = (arrays[name] for name in ("a_ids", "a_offsets", "b_ids", "b_offsets"))
                    writer.append(*ids, pairs=numbers[arrays["sources"]])
                    progress.update(len(arrays["a_offsets"]) - 1)
        status = self.output.stat()
        seconds = time.perf_counter() - started
        write_metadata(self.results()[task], {"output": [status.st_size, status.st_mtime_ns], "seconds": seconds})

    def _described(self) -> dict[str, Any]:
        return self.settings.as_json() | {"vocabulary_given": self.encode.vocabulary.given is not None}
