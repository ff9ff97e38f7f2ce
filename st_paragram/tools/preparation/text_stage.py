"""The text of a store's rows in two files, for a teacher to embed."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from tqdm import tqdm

from st_paragram.core.files import atomic, digest, output_lock, remove_unfinished
from st_paragram.core.pair_store import SIDES
from st_paragram.tools.preparation.plan_stage import PlanStage
from st_paragram.tools.preparation.row_files import row_as_seen
from st_paragram.tools.stages.metadata import output_state, read_metadata, write_metadata, written_before
from st_paragram.tools.stages.stage import Stage

VERSION = 1  # of the results: count it up when they change


@dataclass(frozen=True)
class TextStage(Stage):
    """The one task writes `a.txt` and `b.txt`: line i is of row i of the store, as the filters saw it, in its case.

    The rows carry their columns along, as for rows that are dropped.

    Attributes:
        plan: The order.
        output: The folder of the files.
    """

    name: ClassVar[str] = "text"
    plan: PlanStage
    output: Path

    def digests(self) -> list[str]:
        """The one digest."""
        return [digest(VERSION, self.plan.digests(), str(self.output.absolute()))]

    def results(self) -> list[Path]:
        """The marker in the work folder; the files are where they were requested."""
        return [self.folder() / "text"]

    @property
    def files(self) -> dict[str, Path]:
        """The files, by side."""
        return {side: self.output / f"{side}.txt" for side in SIDES}

    @property
    def sha256(self) -> dict[str, str]:
        """The SHA-256 of each file, by side, after the task was done."""
        return dict(read_metadata(self.results()[0])["sha256"])

    def pending(self) -> list[int]:
        """Nothing, if the files still are what was made."""
        (result,) = self.results()
        return [] if all(written_before(result, path, side) for side, path in self.files.items()) else [0]

    def run(self, task: int) -> None:
        """Write the files.

        Raises:
            StoreError: The folder cannot be written, or another run is writing there.
        """
        started = time.perf_counter()
        with output_lock(self.output):
            self.output.mkdir(exist_ok=True)
            remove_unfinished(self.output)
            digests = self._write()
            states = {side: output_state(path) for side, path in self.files.items()}
        seconds = time.perf_counter() - started
        write_metadata(self.results()[task], states | {"sha256": digests, "seconds": seconds})

    def _write(self) -> dict[str, str]:
        """Write both files; returns their SHA-256, by side."""
        plan, hashes = self.plan.plan(), {side: sha256() for side in SIDES}
        with (
            ExitStack() as stack,
            tqdm(desc=self.output.name, total=sum(plan.quotas), unit=" pairs", unit_scale=True, disable=None) as bar,
        ):
            files = {side: stack.enter_context(atomic(path)) for side, path in self.files.items()}
            for task in range(len(plan.files)):
                rows = [row_as_seen(row)[:-1].split(b"\t", 2) for row in plan.rows(task)]
                for column, side in enumerate(SIDES):
                    text = b"".join(row[column] + b"\n" for row in rows)
                    files[side].write(text)
                    hashes[side].update(text)
                bar.update(len(rows))
        return {side: each.hexdigest() for side, each in hashes.items()}
