"""Records of several runs, brought together: for each model the newest figure of each kind, and where it came from."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.results import Table

from st_paragram.errors import EvaluationError
from st_paragram.evaluation.record import Record, read_record

ABLATIONS = "ablations"
BENCHMARKS = ("sts", "hard-sts", "tatoeba", "bucc", "mteb", ABLATIONS)
PROTOCOLS = "protocols"
_ABSOLUTE = re.compile(r"(?<![^\s=,(])(?:/|~/|[A-Za-z]:\\)[^\s=,)]+")


@dataclass(frozen=True)
class SpeedRun:
    """What `benchmarks/speed.py` wrote: tables, the machine, the date."""

    date: str
    machine: dict[str, Any]
    tables: list[Table]


@dataclass(frozen=True)
class Entry:
    """A figure, or the figures of one data set, and the record they are from."""

    value: Any
    record: Record


@dataclass
class Collected:
    """The results of one benchmark from all its records.

    Args:
        entries: model -> place in its results, e.g. ("sets", "2017/en-en") -> the newest figures.
        notes: sentences on figures that an older record has too.
    """

    entries: dict[str, dict[tuple[str, ...], Entry]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def models(self) -> list[str]:
        """Short names, in the order of the records."""
        return list(self.entries)

    def get(self, model: str, *place: str) -> Any:  # noqa: ANN401
        """The value at a place, or None."""
        entry = self.entries.get(model, {}).get(place)
        return entry.value if entry else None

    def below(self, *place: str) -> list[str]:
        """The names that follow a place, over all models, each once."""
        names = (p[len(place)] for places in self.entries.values() for p in places if p[: len(place)] == place)
        return list(dict.fromkeys(names))

    def records(self, *place: str) -> list[Record]:
        """The records that figures at or below a place come from, each once."""
        found = [e.record for places in self.entries.values() for p, e in places.items() if p[: len(place)] == place]
        return [record for index, record in enumerate(found) if record not in found[:index]]


def read_sources(paths: Iterable[str | Path]) -> tuple[list[Record], list[SpeedRun]]:
    """Read records, and results of the speed benchmark.

    Raises:
        EvaluationError: a file is missing or neither of the two.
    """
    records: list[Record] = []
    speeds: list[SpeedRun] = []
    for path in paths:
        if (speed := _speed_run(Path(path))) is not None:
            speeds.append(speed)
        else:
            records.append(read_record(path))
    return records, speeds


def collect(records: Sequence[Record], benchmark: str) -> Collected:
    """Bring together what all records say of one benchmark.

    Of figures that several records have, those with the later date count (on one day: of the later file), with a note.

    Raises:
        EvaluationError: two models of one record have the same short name.
    """
    collected = Collected()
    for record in sorted((r for r in records if r.benchmark == benchmark), key=lambda r: r.date):
        check_names(record)
        for model, results in record.results.items():
            name = short_name(model)
            places = collected.entries.setdefault(name, {})
            found = {place: Entry(value, record) for place, value in _leaves(results, benchmark)}
            if older := {places[place].record.date for place in found if place in places}:
                dates = ", ".join(sorted(older))
                collected.notes.append(f"{name}: measured more than once; {record.date} counts, not {dates}.")
            places.update(found)
    return collected


def ablation_sets(records: Sequence[Record]) -> list[Collected]:
    """Ablations by what they were trained and scored on: only within one such set do rows compare."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.benchmark == ABLATIONS:
            groups.setdefault(json.dumps(record.data, sort_keys=True), []).append(record)
    return [collect(group, ABLATIONS) for group in groups.values()]


def check_names(record: Record) -> None:
    """Refuse a record in which two models have one short name.

    Raises:
        EvaluationError: naming both.
    """
    full: dict[str, str] = {}
    for model in record.results:
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


def _leaves(results: Any, benchmark: str) -> list[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    """Places and values: single figures, and mappings that hold any."""
    if benchmark == ABLATIONS or not isinstance(results, Mapping):
        return [((), results)]
    return [leaf for name, value in results.items() for leaf in _inner((str(name),), value)]


def _inner(place: tuple[str, ...], value: Any) -> list[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    if not isinstance(value, Mapping):
        return [] if value is None else [(place, value)]
    if any(not isinstance(item, Mapping) for item in value.values()):
        empty = place[0] == PROTOCOLS and all(item is None for item in value.values())  # too few sets for any mean
        return [] if empty else [(place, value)]
    return [leaf for name, item in value.items() for leaf in _inner((*place, str(name)), item)]


def _speed_run(path: Path) -> SpeedRun | None:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if "benchmark" in values or "tables" not in values:
            return None
        return SpeedRun(values["date"], values["machine"], [Table.from_json(table) for table in values["tables"]])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EvaluationError(f"{path}: neither a benchmark's record nor results of speed.py ({error})") from error
