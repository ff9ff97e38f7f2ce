"""What a benchmark found, as a JSON file that reports collect."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import pydantic

from st_paragram.core.encoding.directory import CONFIG_FILE
from st_paragram.core.encoding.find import HUB_ID, commit_of
from st_paragram.core.files import folder_for_file, read_json, write_text
from st_paragram.core.machine import MachineDescription, describe_machine
from st_paragram.errors import DAMAGED, EvaluationError, one_line, short
from st_paragram.tools.evaluation.benchmarks import own_run_types, run_types
from st_paragram.tools.evaluation.results import BenchmarkRun

Run = TypeVar("Run", bound=BenchmarkRun)


@dataclass(frozen=True)
class Training:
    """Description of a model's training; None where its directory does not say.

    Args:
        languages: of the two sides.
        pairs: trained on.
        seconds: of wall time, with evaluation and checkpoints.
        pairs_per_second: while training.
        machine: the kind, and the number of threads.
        dim: components of an embedding.
        vocab_size: pieces asked for, or those that there are where none were.
        epochs: over the pairs.
        megabatch_size: M.
        settings: all of them, as the training recorded them.
    """

    languages: tuple[str, ...]
    pairs: int
    seconds: float
    pairs_per_second: float
    machine: str
    dim: int | None = None
    vocab_size: int | None = None
    epochs: float | None = None
    megabatch_size: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Record(Generic[Run]):
    """A run of one benchmark, and where its figures come from.

    Args:
        run: the results.
        command: that made it.
        date: ISO.
        machine: on which it was made.
        training: model -> how it was trained, for models that record it.
        commits: model -> the commit of the hub that was taken, for models of the hub.
    """

    run: Run
    command: str
    date: str
    machine: MachineDescription
    training: dict[str, Training] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        """The benchmark's name."""
        return self.run.benchmark


def new_record(run: Run) -> Record[Run]:
    """A record of this run: the command line, today, this machine, and how the models were trained."""
    trainings = {name: training for name in run.models if (training := _training(name)) is not None}
    commits = {name: commit for name in run.models if (commit := cached_commit(name)) is not None}
    return Record(run, _command(), datetime.date.today().isoformat(), describe_machine(), trainings, commits)


def write_records(records: Sequence[Record[Any]], path: str | Path) -> None:
    """Write one record, or a list of several, whole or not at all; the folder is made.

    Numbers that are not finite are written as null.
    """
    documents = [_document(record) for record in records]
    text = json.dumps(documents[0] if len(documents) == 1 else documents, indent=1, ensure_ascii=False)
    write_text(Path(path), f"{text}\n")


def read_records(path: str | Path, kinds: Mapping[str, type[Any]] | None = None) -> list[Record[Any]]:
    """Read back what `write_records` wrote.

    Args:
        path: of the file.
        kinds: benchmark -> the type of its runs; all that `benchmarks` has if there are none.

    Raises:
        EvaluationError: the file is missing, no record, or of a benchmark that is not among the kinds.
    """
    if wrong := folder_for_file(path, "a file of results"):
        raise EvaluationError(f"{wrong}; make it with --json")
    try:
        values = read_json(path)
        documents = values if isinstance(values, list) else [values]
        if not documents:
            raise ValueError("an empty list")
        return [
            _read(document, path, run_types() | own_run_types() if kinds is None else kinds) for document in documents
        ]
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise EvaluationError(
            f"{path}: results that no benchmark writes ({reason}); create the record again"
        ) from error
    except DAMAGED as error:
        reason = one_line(error, about=path)
        raise EvaluationError(f"{path}: not a benchmark's record ({reason}); make it with --json") from error


def _command() -> str:
    program, *arguments = sys.argv
    start = ["python", program] if program.endswith(".py") else [Path(program).name]
    return shlex.join([*start, *arguments])


def _training(name: str) -> Training | None:
    from st_paragram.core.encoding.record import read_training_record

    record = read_training_record(name)
    if record is None:
        return None
    settings = dict(record.settings)
    return Training(
        tuple(record.languages),
        record.pairs,
        record.seconds,
        record.pairs_per_second,
        record.machine,
        settings.get("dim"),
        record.preparation.get("vocab_size") or record.preparation.get("report", {}).get("vocabulary_size"),
        settings.get("epochs"),
        settings.get("megabatch_size"),
        settings,
    )


def _document(record: Record[Any]) -> dict[str, Any]:
    written = json.loads(pydantic.TypeAdapter(Any).dump_json(record))
    return {"benchmark": record.benchmark, **written}


def _read(document: Any, path: str | Path, kinds: Mapping[str, type[Any]]) -> Record[Any]:  # noqa: ANN401
    values = dict(document)
    name = values.pop("benchmark")
    if name not in kinds:
        raise EvaluationError(f"{path}: a record of {short(name)}; known are {', '.join(kinds)}")
    values["run"] = pydantic.TypeAdapter(kinds[name]).validate_python(values["run"])
    read: Record[Any] = pydantic.TypeAdapter(Record[Any]).validate_python(values)
    return read


def cached_commit(name: str) -> str | None:
    """The commit that a hub id stands for in the hub's cache, where it was found before; None for any other name."""
    hub = HUB_ID.fullmatch(name)
    if hub is None or Path(name).is_dir():
        return None
    from huggingface_hub import try_to_load_from_cache

    try:
        found = try_to_load_from_cache(hub[1], CONFIG_FILE, revision=hub[2])
    except ValueError:  # no name that the hub has
        return None
    return commit_of(Path(found).parent) if isinstance(found, str) else None
