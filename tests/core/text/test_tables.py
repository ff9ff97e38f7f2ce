"""Columns of CSV, TSV, JSON lines and Parquet: the same texts from each, and errors that name file, row and column."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import tempfile
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.text import streams
from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.tables import column_names, read_columns, table_form, table_rows
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.options.columns import columns_of

Rows = Sequence[Sequence[str]]
NAMES = ("english", "spanish", "id")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}
CELLS = st.text(st.one_of(st.sampled_from(" \t\r\n,;\"'\0\u2028\ufeff{}"), st.characters(codec="utf-8")), max_size=8)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6)


def as_csv(rows: Rows, delimiter: str = ",") -> bytes:
    """A header and rows, as Python and spreadsheets write them."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerows([NAMES, *rows])
    return text.getvalue().encode()


def as_jsonl(rows: Rows) -> bytes:
    return b"".join(json.dumps(dict(zip(NAMES, row, strict=True))).encode() + b"\n" for row in rows)


def as_parquet(rows: Rows) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({name: [row[at] for row in rows] for at, name in enumerate(NAMES)}, _schema()), file)
    return file.getvalue()


def _schema() -> pa.Schema:
    return pa.schema([(NAMES[0], pa.string()), (NAMES[1], pa.large_string()), (NAMES[2], pa.string())])


FORMS: dict[str, Callable[[Rows], bytes]] = {".csv": as_csv, ".jsonl": as_jsonl, ".parquet": as_parquet}


def cleaned(rows: Rows) -> list[tuple[str, ...]]:
    """What reading makes of cells."""
    return [tuple(re.sub(r"[\r\n\t]+", " ", cell) for cell in row) for row in rows]


@given(ROWS, st.sampled_from(list(FORMS)), st.permutations(NAMES), st.integers(1, 30))
def test_any_strings_come_back_cleaned(rows: Rows, ending: str, names: list[str], block: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK_BYTES", block)
        path = Path(folder) / f"pairs{ending}"
        path.write_bytes(FORMS[ending](rows))
        if ending == ".jsonl" and not rows:
            with pytest.raises(TextError, match="empty"):
                list(read_columns(str(path), names))
            return
        wanted = [tuple(row[NAMES.index(name)] for name in names) for row in cleaned(rows)]
        assert list(read_columns(str(path), names)) == wanted
        assert list(read_lines(str(path), "id")) == [row[2].rstrip("\r") for row in cleaned(rows)]


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_and_packed_files(tmp_path: Path, packed: str, delimiter: str) -> None:
    path = tmp_path / f"pairs.csv{packed}"
    path.write_bytes(PACKERS[packed](b"\xef\xbb\xbf" + as_csv([("a, b", "c; d", "e\tf")], delimiter)))
    assert column_names(str(path)) == list(NAMES)
    assert list(read_columns(str(path), ["spanish", "english"])) == [("c; d", "a, b")]


def test_tsv_takes_quotation_marks_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text('en\tes\n"Hi," he said.\t"Hola"\n\n5" disk\tdisco\n')
    wanted = [('"Hi," he said.', '"Hola"'), ('5" disk', "disco")]
    assert list(read_columns(str(path), ["en", "es"])) == wanted
    assert list(read_columns(str(path), ["2", "1"])) == [("es", "en"), *((b, a) for a, b in wanted)]


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("pairs.csv", "a,b\n1,2\n", [("b",), ("2",)]),
        ("pairs.csv", "1,2\nx,y\n", [("y",)]),  # a column of that name comes first
        ("pairs.jsonl", '["a", "b"]\n["c", "d", "e"]\n', [("b",), ("d",)]),
        ("pairs.txt", "\n\na\tb\n1\t2\n", [("b",), ("2",)]),
        ("pairs.txt", '{"2": "b"}\n', [("b",)]),
    ],
)
def test_numbers_stand_for_columns_without_names(
    tmp_path: Path, name: str, content: str, wanted: list[tuple[str]]
) -> None:
    (tmp_path / name).write_text(content)
    assert list(read_columns(str(tmp_path / name), ["2"])) == wanted


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"english,spanish\na,b\nc\n", r"row 2 \(line 3\) has 1 cells where the first row has 2"),
        (b'english,spanish\n"a\nb",c\n"d" e,f\n', r"row 2 \(line 4\) is not CSV"),
        (b'english,spanish\na,b\n\nc,"d\n\n', r"row 2 \(line 4\) is not CSV"),
        (b"english,spanish\na,\xff\n", r"row 1 \(line 2\) is not UTF-8 in column 'spanish'"),
        (b"English,espanol\na,b\n", r"no column 'english' \(did you mean English\?\), only English, espanol"),
        (b"english,spanish,spanish\na,b,c\n", "more than one column 'spanish'"),
        (b"\n\n", "empty"),
    ],
)
def test_csv_that_is_refused(tmp_path: Path, content: bytes, seen: str) -> None:
    (tmp_path / "p.csv").write_bytes(content)
    with pytest.raises(TextError, match=seen):
        list(read_columns(str(tmp_path / "p.csv"), ["english", "spanish"]))


JSON_REFUSED = [
    (b'{"text": null}', r"has no value \(null\) in column 'text'"),
    (b'{"text": 3}', "has 3, not text"),
    (b'{"text": NaN}', "has nan, not text"),
    (b'{"text": ["a"]}', r"has a nested value \(\['a'\]\)"),
    (b'{"texts": "a"}', r"no column 'text' \(did you mean texts\?\)"),
    (b'{"text": "a"', "is not JSON"),
    (b'["a"]', "has no column 'text', only 1"),
    (b"7", "neither an object nor a list"),
    (b'{"text": "\xff"}', "is not UTF-8"),
    (b'{"text": "\\ud800"}', "is not UTF-8 in column 'text'"),
    (b"[" * 100_000, "is not JSON|nested more than"),
]


@pytest.mark.parametrize(("line", "seen"), JSON_REFUSED)
def test_json_lines_that_are_refused(tmp_path: Path, line: bytes, seen: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"text": "good"}\n\n' + line + b'\n{"text": "too"}\n')
    with pytest.raises(TextError, match=rf"p\.jsonl: line 3 .*({seen})"):
        list(read_columns(str(path), ["text"]))
    errors: list[TextError] = []
    assert list(read_columns(str(path), ["text"], errors.append)) == [("good",), ("too",)]
    assert len(errors) == 1


def test_parquet_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    table = pa.table({"text": ["a", None], "n": [1, 2], "tags": [["x"], []], "empty": [None, None]})
    pq.write_table(table, path)
    assert table_rows(str(path)) == 2
    for name, seen in [("n", "it has int64 in column 'n'"), ("tags", "it has list"), ("empty", "it has null")]:
        with pytest.raises(TextError, match=seen):
            list(read_columns(str(path), [name]))
    with pytest.raises(TextError, match=r"row 2 has no value \(null\) in column 'text'"):
        list(read_columns(str(path), ["text"]))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TextError, match="cannot be read as Parquet"):
        list(read_columns(str(path), ["text"]))
    with pytest.raises(TextError, match=r"gone\.parquet: cannot be read"):
        list(read_columns(str(tmp_path / "gone.parquet"), ["text"]))


def test_parquet_of_other_layouts(tmp_path: Path) -> None:
    texts = [f"text {number % 7}" for number in range(10_000)]
    pq.write_table(pa.table({"a.b": pa.array(texts).dictionary_encode()}), tmp_path / "nameless", row_group_size=999)
    assert [text for (text,) in read_columns(str(tmp_path / "nameless"), ["a.b"])] == texts


@pytest.mark.parametrize("ending", FORMS)
def test_memory_does_not_grow_with_a_table(tmp_path: Path, ending: str) -> None:
    rows = [("a" * 100, "b" * 100, str(number)) for number in range(20_000)]
    path = tmp_path / f"p{ending}"
    path.write_bytes(FORMS[ending](rows))
    del rows
    found = read_columns(str(path), NAMES)
    assert len(list(islice(found, 100))) == 100
    tracemalloc.start()
    assert sum(1 for _ in found) == 19_900
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000  # the table has 4.5 MB, its cells as text 7.5 MB


def test_kinds_by_endings() -> None:
    names = ["a.csv", "A.CSV.gz", "a.ndjson.xz", "a.jsonl", "a.parquet", "a.tsv", "a.txt.gz", "csv", "-"]
    kinds = ["CSV", "CSV", "JSON lines", "JSON lines", "Parquet", "TSV", None, None, None]
    assert [getattr(table_form(name), "value", None) for name in names] == kinds


def test_tables_need_the_name_of_a_column(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv([]))
    with pytest.raises(TextError, match=r"\(CSV\) with the columns english, spanish, id; .*--columns NAME"):
        columns_of(None, [str(tmp_path / "a.csv")])
    assert columns_of(None, ["a.txt", "-"]) == [None, None]
    assert columns_of(["text"], ["a.csv", "b.csv"]) == ["text", "text"]
    with pytest.raises(SettingsError, match="3 columns for 2 texts"):
        columns_of(["a", "b", "c"], ["a.csv", "b.csv"])
