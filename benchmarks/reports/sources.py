"""Records of several runs, brought together: for each model the newest figure of each kind, and where it came from."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import pydantic
from harness.families.ablation_results import AblationResult, AblationsRun
from harness.speed.results import Table

from st_paragram.core.machine import MachineDescription
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation.benchmarks import run_types
from st_paragram.tools.evaluation.record import Record, read_records

#: Benchmark -> the type of its runs, of all that the report knows.
KINDS: dict[str, type[Any]] = run_types() | {AblationsRun.benchmark: AblationsRun}

_ABSOLUTE = re.compile(r"(?<![^\s=,(])(?:/|~/|[A-Za-z]:\\)[^\s=,)]+")

Place = tuple[str, ...]
Result = TypeVar("Result")


@dataclass(frozen=True)
class SpeedRun:
    """What `benchmarks/speed.py` wrote: tables, the machine, the date."""

    date: str
    machine: MachineDescription
    tables: list[Table]


@dataclass
class Collected(Generic[Result]):
    """The results of one benchmark from all its records.

    Args:
        results: short name of a model -> what all records say of it, the newest figures where several have them.
        origins: short name of a model -> place in its result, e.g. ("sets", "2017/en-en") -> the record it is from.
        notes: sentences on figures that an older record has too.
    """

    results: dict[str, Result] = field(default_factory=dict)
    origins: dict[str, dict[Place, Record[Any]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def records(self, *place: str) -> list[Record[Any]]:
        """The records that figures at or below a place come from, each once."""
        found = [r for places in self.origins.values() for p, r in places.items() if p[: len(place)] == place]
        return [record for index, record in enumerate(found) if record not in found[:index]]


def read_sources(paths: Iterable[str | Path]) -> tuple[list[Record[Any]], list[SpeedRun]]:
    """Read records, and results of the speed benchmark.

    Raises:
        EvaluationError: a file is missing or neither of the two.
    """
    records: list[Record[Any]] = []
    speeds: list[SpeedRun] = []
    for path in paths:
        if (speed := _speed_run(Path(path))) is not None:
            speeds.append(speed)
        else:
            records += read_records(path, KINDS)
    return records, speeds


def collect(records: Sequence[Record[Any]], kind: type[Any], result: type[Result]) -> Collected[Result]:
    """Bring together what all records say of one benchmark.

    Of figures that several records have, those with the later date count (on one day: of the later file), with a note.

    Args:
        records: of any benchmarks.
        kind: the type of the benchmark's runs.
        result: the type of a model's result in them.

    Raises:
        EvaluationError: two models of one record have the same short name.
    """
    collected: Collected[Result] = Collected()
    for record in sorted((r for r in records if isinstance(r.run, kind)), key=lambda r: r.date):
        check_names(record)
        for model, found in record.run.models.items():
            assert isinstance(found, result)
            name = short_name(model)
            origins = collected.origins.setdefault(name, {})
            places = list(_places(found))
            if older := {origins[place].date for place in places if place in origins}:
                dates = ", ".join(sorted(older))
                count = f"Those of {record.date} count, not those of {dates}."
                collected.notes.append(f"Some figures of {name} were measured more than once. {count}")
            origins.update(dict.fromkeys(places, record))
            collected.results[name] = _merge(collected.results[name], found) if name in collected.results else found
    return collected


def ablation_sets(records: Sequence[Record[Any]]) -> list[Collected[AblationResult]]:
    """Ablations by what they were trained and scored on: only within one such set do rows compare."""
    groups: dict[str, list[Record[Any]]] = {}
    for record in records:
        if isinstance(record.run, AblationsRun):
            about = asdict(replace(record.run, models={}))
            groups.setdefault(json.dumps(about, sort_keys=True, default=str), []).append(record)
    return [collect(group, AblationsRun, AblationResult) for group in groups.values()]


def check_names(record: Record[Any]) -> None:
    """Refuse a record in which two models have one short name.

    Raises:
        EvaluationError: naming both.
    """
    full: dict[str, str] = {}
    for model in record.run.models:
        other = full.setdefault(short_name(model), model)
        if other != model:
            raise EvaluationError(f"{other} and {model} would both be {short_name(model)}; rename one and score again")


def short_name(model: str) -> str:
    """The last component of a model's path, also where words stand around the path."""
    return _last(model.rstrip("/")) if re.fullmatch(r"\S+", model) else shorten(model)


def shorten(text: str) -> str:
    """A command or a sentence with absolute paths cut to their last component; relative ones stay as they are.

    Of this project's own scripts the folder stays too: `benchmarks/sts.py`.
    """
    return _ABSOLUTE.sub(lambda match: _script(match[0]) or _last(match[0].rstrip("/\\")), text)


def shorten_command(command: str) -> str:
    """`shorten` for a command line: paths in quotes may hold spaces."""
    try:
        words = shlex.split(command)
    except ValueError:
        return shorten(command)
    return shlex.join(_shorten_word(word) for word in words)


def _shorten_word(word: str) -> str:
    option, equals, value = word.partition("=")
    if equals and not option.startswith(("/", "~/")):
        return f"{option}={_shorten_word(value)}"
    return _script(word) or _last(word.rstrip("/\\")) if re.match(r"/.|~/|[A-Za-z]:\\", word) else shorten(word)


def _script(path: str) -> str:
    found = re.search(r"(?:^|[/\\])benchmarks[/\\](\w+\.py)$", path)
    return f"benchmarks/{found[1]}" if found else ""


def _last(path: str) -> str:
    return re.split(r"[/\\]", path)[-1] or path


def _places(result: Any) -> Iterator[Place]:  # noqa: ANN401 - a dataclass
    """Where a result has figures: the names of its fields, with the keys of those that hold parts by name."""
    for each in fields(result):
        yield from _below((each.name,), getattr(result, each.name))


def _below(place: Place, value: Any) -> Iterator[Place]:  # noqa: ANN401
    if isinstance(value, dict) and _has_parts(value):
        for name, part in value.items():
            yield from _below((*place, str(name)), part)
    elif value is not None and not _is_empty(value):
        yield place


def _merge(old: Result, new: Result) -> Result:
    """Two results of one model: what the new one has replaces what the old one has at the same places."""
    pairs = {each.name: (getattr(old, each.name), getattr(new, each.name)) for each in fields(new)}  # type: ignore[arg-type]
    merged = {name: _merged(before, after) for name, (before, after) in pairs.items()}
    return replace(old, **merged)  # type: ignore[type-var]


def _merged(old: Any, new: Any) -> Any:  # noqa: ANN401
    if isinstance(old, dict) and isinstance(new, dict) and _has_parts(new):
        return old | {name: _merged(old.get(name), part) for name, part in new.items()}
    return old if new is None or _is_empty(new) else new


def _has_parts(value: dict[str, Any]) -> bool:
    return any(is_dataclass(part) or isinstance(part, dict) for part in value.values())


def _is_empty(value: Any) -> bool:  # noqa: ANN401
    """Whether figures by name are all missing: too few sets for any mean."""
    return isinstance(value, dict) and all(part is None for part in value.values())


def _speed_run(path: Path) -> SpeedRun | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if "benchmark" in values or "tables" not in values:
            return None
        machine = pydantic.TypeAdapter(MachineDescription).validate_python(values["machine"])
        return SpeedRun(values["date"], machine, [Table.from_json(table) for table in values["tables"]])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EvaluationError(
            f"{path}: neither a benchmark's record nor results of speed.py ({str(error).splitlines()[0]})"
        ) from error
