"""Fields of sentences, such as a language or a year: a column each, of codes of its distinct values.

A folder `fields/` holds two arrays for each field, `0000.codes.npy` (uint8, uint16 or uint32 (n,); 0 for a sentence
without a value, otherwise 1 + the place of its value) and the values in rising order: `0000.values.npy` (int64,
float64, or uint8 for booleans), or for text `0000.values` (UTF-8, one after another) and `0000.values.npy` (int64, the
byte behind each). Comparing a field with a value therefore is comparing codes, whatever the field's kind.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import atomic
from st_paragram.errors import SettingsError, short

Value = str | int | float | bool
Codes = NDArray[Any]

FIELDS = "fields"
_NAME = re.compile(r"[^\s=!<>,]+")
_CODE_TYPES = ("uint8", "uint16", "uint32")
_INTEGERS = -(2**63), 2**63 - 1


class Kind(str, Enum):
    """What a field's values are."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"

    @classmethod
    def of(cls, value: object) -> Kind:
        """The kind of a value.

        Raises:
            SettingsError: It is not text, a number or a boolean.
        """
        for kind, types in ((cls.BOOLEAN, bool), (cls.INTEGER, int), (cls.NUMBER, float), (cls.TEXT, str)):
            if isinstance(value, types) and (kind is not cls.INTEGER or _INTEGERS[0] <= value <= _INTEGERS[1]):  # type: ignore[operator]
                return kind
        raise SettingsError(f"{short(value)} is not text, a number of 64 bits, true or false")

    @property
    def family(self) -> str:
        """Kinds of one family may be mixed: whole numbers are numbers."""
        return Kind.NUMBER.value if self is Kind.INTEGER else self.value

    def read(self, text: str) -> Value:
        """A value as it is written in a filter or a table.

        Raises:
            ValueError: The text is not a value of this kind.
        """
        if self is Kind.TEXT:
            return text
        if self is Kind.BOOLEAN:
            return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else _fail(text)
        if re.fullmatch(r"-?\d{1,18}", text):
            return int(text)
        return float(text) if re.fullmatch(r"-?\d*\.?\d+(?:[eE][-+]?\d+)?", text) else _fail(text)


def _fail(text: str) -> Value:
    raise ValueError(text)


def guessed(texts: Iterable[str]) -> Kind:
    """The kind of values that a file or a command line can only write as text.

    Whole numbers are only what would be written in the same way again: `007` stays text.
    """
    kind, texts = None, list(texts)
    for each, pattern in (
        (Kind.BOOLEAN, r"true|false|True|False"),
        (Kind.INTEGER, r"0|-?[1-9]\d{0,17}"),
        (Kind.NUMBER, r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?"),
    ):
        if kind is None and all(re.fullmatch(pattern, text) for text in texts):
            kind = each
    return kind or Kind.TEXT


@dataclass(frozen=True)
class FieldRecord:
    """A field in `index.json`: its name, and the kind of its values, see `Kind`."""

    name: str
    kind: str


@dataclass(frozen=True, eq=False)
class Column:
    """A field of n sentences.

    Attributes:
        kind: Of the values.
        values: The distinct ones, rising.
        codes: Of the sentences, (n,): 0 for none, or 1 + the place of the value.
    """

    kind: Kind
    values: Sequence[Value]
    codes: Codes

    def of(self, row: int) -> Value | None:
        """The value of a sentence."""
        code = int(self.codes[row])
        return None if code == 0 else self.values[code - 1]

    def take(self, rows: Any) -> Column:  # noqa: ANN401 - whatever indexes an array
        """The field of some of the sentences."""
        return Column(self.kind, self.values, np.asarray(self.codes[rows]))


class _Numbers(Sequence[Value]):
    """Numbers or booleans in an array."""

    def __init__(self, numbers: NDArray[Any], kind: Kind) -> None:
        self._numbers, self._kind = numbers, kind

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - as of Sequence
        value = self._numbers[place].item()
        return bool(value) if self._kind is Kind.BOOLEAN else value


class _Texts(Sequence[Value]):
    """Texts in a file, which are read when they are asked for."""

    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._text, self._ends = text, ends

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 - as of Sequence
        place = int(place)
        begin = int(self._ends[place - 1]) if place else 0
        return self._text[begin : int(self._ends[place])].tobytes().decode("utf-8")


class FieldBuilder:
    """Collects the fields of sentences; distinct values are in memory, and 4 bytes for each field of a sentence."""

    def __init__(self, guess: bool = False, known: Mapping[str, Kind] | None = None) -> None:
        """Begin with no sentence.

        Args:
            guess: Values are text wherever they come from (a CSV file): find out what they are.
            known: Kinds of fields that an index has already.
        """
        self._columns: dict[str, _Growing] = {}
        self._guess, self._known, self.count = guess, known or {}, 0

    def add(self, values: Mapping[str, Value | None], line: int) -> None:
        """Take the fields of the next sentence; None, empty text and NaN are not values.

        Args:
            values: By names of fields.
            line: Of the sentence, for messages.

        Raises:
            SettingsError: A name or a value cannot be kept, or values of a field are of several kinds.
        """
        for name, value in values.items():
            if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
                continue
            if name not in self._columns:
                check_name(name)
                self._columns[name] = _Growing()
            try:
                self._columns[name].put(self.count, value.item() if isinstance(value, np.generic) else value)
            except SettingsError as error:
                raise SettingsError(f"line {line}, field {name}: {error}") from error
        self.count += 1

    def columns(self) -> dict[str, Column]:
        """The fields of all sentences.

        Raises:
            SettingsError: A field is of another kind than in the index.
        """
        found = {}
        for name, growing in self._columns.items():
            kind = self._known.get(name)
            column = growing.column(self.count, self._guess and kind is not Kind.TEXT)
            if kind is not None and kind.family != column.kind.family:
                seen = f"field {name} is {column.kind.value} here and {kind.value} in the index"
                raise SettingsError(f"{seen}; give values of that kind, or another name")
            found[name] = column
        return found


class _Growing:
    """A field while sentences are added."""

    def __init__(self) -> None:
        self._codes, self._seen = array("I"), dict[Value, int]()
        self._kinds = dict[Kind, None]()

    def put(self, row: int, value: Value) -> None:
        code = self._seen.get(value) if isinstance(value, str) else None
        if code is None:
            self._kinds[Kind.of(value)] = None
            if len({kind.family for kind in self._kinds}) > 1:
                seen = f"{short(value)} is {Kind.of(value).value}, values before it are {next(iter(self._kinds)).value}"
                raise SettingsError(f"{seen}; give values of one kind")
            code = self._seen.setdefault(value, len(self._seen) + 1)
        if missing := row - len(self._codes):
            self._codes.extend([0] * missing)
        self._codes.append(code)

    def column(self, count: int, guess: bool) -> Column:
        codes = np.zeros(count, np.uint32)
        codes[: len(self._codes)] = np.frombuffer(self._codes, np.uint32)
        kinds, values = set(self._kinds), list(self._seen)
        kind = Kind.NUMBER if len(kinds) > 1 else next(iter(kinds))
        if guess and kind is Kind.TEXT:
            kind = guessed(str(value) for value in values)
            values = [kind.read(str(value)) for value in values]
        return common([Column(kind, values, codes)])[0]


def check_name(name: object) -> None:
    """Refuse names that a filter could not name.

    Raises:
        SettingsError: It is empty, or has white space or one of `=!<>,`.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SettingsError(f"field {short(name)}: a name may not be empty or have spaces or one of = ! < > ,")


def common(columns: Sequence[Column]) -> list[Column]:
    """The same fields with one list of values, those that occur, rising; columns may have them in any order."""
    kinds = {column.kind for column in columns}
    kind = Kind.NUMBER if len(kinds) > 1 else kinds.pop()
    used = [np.unique(column.codes) for column in columns]
    seen = [
        [column.values[code - 1] for code in codes.tolist() if code]
        for column, codes in zip(columns, used, strict=True)
    ]
    if kind is Kind.NUMBER:
        seen = [list(map(float, own)) for own in seen]
    values = sorted(set().union(*seen))  # type: ignore[type-var]
    code_type = next(name for name in _CODE_TYPES if len(values) <= np.iinfo(name).max)
    found = []
    for column, codes, own in zip(columns, used, seen, strict=True):
        table = np.zeros(int(codes.max(initial=0)) + 1, code_type)
        table[codes[codes > 0]] = [bisect_left(values, value) + 1 for value in own]  # type: ignore[type-var]
        found.append(Column(kind, values, table[column.codes]))
    return found


def joined(parts: Sequence[Mapping[str, Column]], counts: Sequence[int]) -> dict[str, Column]:
    """Fields of sentences one part after another.

    Args:
        parts: Fields of each part.
        counts: Sentences of each part.

    Raises:
        SettingsError: A field is of two kinds.
    """
    found = {}
    for name in sorted(set().union(*parts)):
        there = [part.get(name) for part in parts]
        given = [column for column in there if column is not None]
        if len({column.kind.family for column in given}) > 1:
            raise SettingsError(f"field {name} is {' and '.join(column.kind.value for column in given)}")
        alike = iter(common(given))
        codes = [
            np.zeros(n, np.uint8) if column is None else next(alike).codes
            for column, n in zip(there, counts, strict=True)
        ]
        one = common(given)[0]
        found[name] = Column(one.kind, one.values, np.concatenate(codes))
    return {name: column for name, column in found.items() if len(column.values)}


def write_columns(folder: Path, columns: Mapping[str, Column]) -> list[FieldRecord]:
    """Write fields into a folder; returns what `index.json` says of them."""
    for number, column in enumerate(columns.values()):
        codes, values, text = (folder / name for name in field_files(number))
        _save(codes, column.codes)
        if column.kind is Kind.TEXT:
            encoded = [str(value).encode("utf-8", "surrogatepass") for value in column.values]
            with atomic(text) as handle:
                handle.writelines(encoded)
            _save(values, np.cumsum([len(each) for each in encoded], dtype=np.int64))
        else:
            _save(values, np.array(list(column.values), _value_type(column.kind)))
    return [FieldRecord(name, column.kind.value) for name, column in columns.items()]


def field_files(number: int, kind: str | None = None) -> list[str]:
    """Files of a field: codes, values, and for text their bytes; of any kind, all three."""
    names = [f"{number:04d}.codes.npy", f"{number:04d}.values.npy", f"{number:04d}.values"]
    return names if kind in (None, Kind.TEXT.value) else names[:2]


class Fields:
    """The fields of a segment, mapped."""

    def __init__(self, folder: Path, records: Sequence[FieldRecord], count: int) -> None:
        """Open them.

        Args:
            folder: See `write_columns`.
            records: What `index.json` says.
            count: Sentences, n.

        Raises:
            OSError, ValueError: They are damaged.
        """
        self.columns = {record.name: _opened(folder, number, record, count) for number, record in enumerate(records)}

    @cached_property
    def names(self) -> list[str]:
        """Of the fields."""
        return list(self.columns)

    def of(self, row: int) -> dict[str, Value]:
        """The fields of a sentence that have a value."""
        found = {name: column.of(row) for name, column in self.columns.items()}
        return {name: value for name, value in found.items() if value is not None}


def _opened(folder: Path, number: int, record: FieldRecord, count: int) -> Column:
    codes_file, values_file, text_file = (folder / name for name in field_files(number))
    kind, codes = Kind(record.kind), np.load(codes_file, mmap_mode="r")
    numbers = np.load(values_file, mmap_mode="r")
    values = _Texts(_mapped_bytes(text_file), numbers) if kind is Kind.TEXT else _Numbers(numbers, kind)
    if len(codes) != count or codes.max(initial=0) > len(values):
        raise ValueError(f"field {short(record.name)} has {len(codes)} codes of {len(values)} values")
    return Column(kind, values, codes)


def _mapped_bytes(path: Path) -> NDArray[np.uint8]:
    return np.memmap(path, np.uint8, "r") if path.stat().st_size else np.empty(0, np.uint8)


def _value_type(kind: Kind) -> str:
    return {Kind.INTEGER: "int64", Kind.NUMBER: "float64", Kind.BOOLEAN: "uint8", Kind.TEXT: "int64"}[kind]


def _save(path: Path, values: NDArray[Any]) -> None:
    with atomic(path) as handle:
        np.save(handle, values)
