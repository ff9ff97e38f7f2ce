"""Columns of CSV, TSV, JSON lines and Parquet: the same texts from each, and errors that name file,
row and column.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.text import streams
from st_paragram.core.text.tables import DAMAGED, read_columns, read_texts
from st_paragram.errors import TextError

Rows = Sequence[Sequence[str]]
NAMES = ("english", "spanish", "id")
CELLS = st.text(
    st.one_of(st.sampled_from(" \t\r\n,;\"'\0\u2028\ufeff{}"), st.characters(codec="utf-8")),
    max_size=8,
)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6)


def as_csv(rows: Rows) -> bytes:
    """A header and rows, as Python and spreadsheets write them."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([NAMES, *rows])
    return text.getvalue().encode()


def as_tsv(rows: Rows) -> bytes:
    return "".join("\t".join(row) + "\n" for row in [NAMES, *cleaned(rows)]).encode()


def as_jsonl(rows: Rows) -> bytes:
    return b"".join(json.dumps(dict(zip(NAMES, row, strict=True))).encode() + b"\n" for row in rows)


def as_parquet(rows: Rows) -> bytes:
    file = io.BytesIO()
    schema = pa.schema(
        [(NAMES[0], pa.string()), (NAMES[1], pa.string()), (NAMES[2], pa.large_string())]
    )
    pq.write_table(
        pa.table({name: [row[at] for row in rows] for at, name in enumerate(NAMES)}, schema), file
    )
    return file.getvalue()


FORMS: dict[str, Callable[[Rows], bytes]] = {
    ".csv": as_csv,
    ".txt": as_tsv,
    ".jsonl": as_jsonl,
    ".parquet": as_parquet,
}


def cleaned(rows: Rows) -> list[tuple[str, ...]]:
    """What reading makes of cells."""
    return [tuple(re.sub(r"[\r\n\t]+", " ", cell) for cell in row) for row in rows]


@given(ROWS, st.sampled_from(list(FORMS)), st.permutations(NAMES), st.integers(1, 30))
def test_any_strings_come_back_cleaned(
    rows: Rows, ending: str, names: list[str], block: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK_BYTES", block)
        path = Path(folder) / f"pairs{ending}"
        path.write_bytes(FORMS[ending](rows))
        wanted = [tuple(row[NAMES.index(name)] for name in names) for row in cleaned(rows)]
        found = list(read_columns(str(path), names))
        # a run of breaks may be cut into two by the end of a line
        spaces = "[ ]+" if ending == ".csv" else "[ ]"
        found, wanted = (
            [tuple(re.sub(spaces, " ", cell) for cell in row) for row in each]
            for each in (found, wanted)
        )
        assert found == wanted
        assert len(list(read_texts(str(path), "id"))) == len(rows)


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.csv", "\ufeffone,two\r\n\r\na,\"b, 'c'\"\r\n", [("b, 'c'", "a")]),
        ("a.tsv", 'one\ttwo\n"Hi," he said.\t5" disk\r\n\n', [('5" disk', '"Hi," he said.')]),
        ("a", "one\ttwo\na\tb", [("b", "a")]),
        ("a.ndjson", '{"two": "b", "one": "a"}\n \n', [("b", "a")]),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_forms_by_the_ending_of_the_name(
    tmp_path: Path, name: str, content: str, wanted: object, pack
) -> None:
    path = tmp_path / (name if pack is bytes else f"{name}.gz")
    path.write_bytes(pack(content.encode()))
    assert list(read_columns(str(path), ["two", "one"])) == wanted


def test_numbers_stand_for_columns_without_names(tmp_path: Path) -> None:
    # a name comes first
    for content, wanted in (("a,b\n1,2\n", [("b",), ("2",)]), ("1,2\nx,y\n", [("y",)])):
        (tmp_path / "pairs.csv").write_text(content)
        assert list(read_columns(str(tmp_path / "pairs.csv"), ["2"])) == wanted


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"english,spanish\na,b\n\nc\n", "line 4 has 1 cells, but the first row has 2"),
        (b'english,spanish\n"a\nb",c\n"d" e,f\n', "line 4 is not CSV"),
        (b"english,spanish\na,\xff\n", "line 2 is not UTF-8 in column 'spanish'"),
        (b"english|spanish\na|b\n", r"no column 'english' \(its columns are english\|spanish\)"),
        (
            b"english;spanish\na;b;c\n",
            "line 2 has 3 cells, but the first row has 2; a CSV cell with ';' needs",
        ),
    ],
)
def test_csv_that_is_refused(tmp_path: Path, content: bytes, seen: str) -> None:
    (tmp_path / "p.csv").write_bytes(content)
    with pytest.raises(TextError, match=rf"p\.csv: {seen}"):
        list(read_columns(str(tmp_path / "p.csv"), ["english", "spanish"]))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("columns", [["english", "spanish"], ["1", "2"]])
def test_the_delimiter_of_csv_is_recognized(
    tmp_path: Path, delimiter: str, columns: list[str]
) -> None:
    rows = [["english", "spanish"], ["a, b; c", "d"], ["e", 'f "g"']]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    (tmp_path / "p.csv").write_text(text.getvalue(), newline="")
    wanted = [tuple(row) for row in rows[columns[0] == "english" :]]
    assert list(read_columns(str(tmp_path / "p.csv"), columns)) == wanted


def test_members_of_a_column_of_translations(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "translation": {"en": "a\tb", "es": "c"}},
        {"id": "2", "translation": {"en": "d", "es": "e"}},
    ]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    columns = ["translation.es", "id", "translation.en"]
    for name in ("p.jsonl", "p.parquet"):
        assert list(read_columns(str(tmp_path / name), columns)) == [
            ("c", "1", "a b"),
            ("e", "2", "d"),
        ]
    with pytest.raises(
        TextError,
        match=r"line 1 has no value in column 'translation.de'; name the columns with --col",
    ):
        list(read_columns(str(tmp_path / "p.jsonl"), ["translation.de"]))
    with pytest.raises(
        TextError, match=r"no column 'translation.de' \(its columns are .*translation.es\)"
    ):
        list(read_columns(str(tmp_path / "p.parquet"), ["translation.de"]))
    (tmp_path / "dotted.jsonl").write_text('{"translation.en": "x", "translation": {"en": "y"}}\n')
    assert list(read_columns(str(tmp_path / "dotted.jsonl"), ["translation.en"])) == [("x",)]


def test_a_row_without_translations_is_named(tmp_path: Path) -> None:
    rows = [{"translation": {"en": "a"}}, {"translation": None}]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    for name, place in (("p.jsonl", "line 2"), ("p.parquet", "row 2")):
        with pytest.raises(TextError, match=f"{place} has no value in column 'translation.en'"):
            list(read_columns(str(tmp_path / name), ["translation.en"]))


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (b'{"text": null}', "has no value in column 'text'"),
        (b'{"text": "\xff"}', "is not UTF-8 in column 'text'"),
    ],
)
def test_json_lines_that_are_refused(tmp_path: Path, line: bytes, seen: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"text": "good"}\n\n' + line + b'\n{"text": "too"}\n')
    with pytest.raises(TextError, match=rf"p\.jsonl: line 3 ({seen})"):
        list(read_columns(str(path), ["text"]))
    errors: list[TextError] = []
    rows = list(read_columns(str(path), ["text"], bad_row=errors.append))
    assert rows == [("good",), (DAMAGED,), ("too",)]
    assert len(errors) == 1


def test_other_columns_keep_their_values(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": "x", "n": 1}\n{"t": "y"}\n')
    assert list(read_columns(str(tmp_path / "a.jsonl"), ["t"], others=["n"])) == [
        ("x", 1),
        ("y", None),
    ]
    pq.write_table(pa.table({"t": ["x", "y"], "n": [1, None]}), tmp_path / "a.parquet")
    assert list(read_columns(str(tmp_path / "a.parquet"), ["t"], others=["n"])) == [
        ("x", 1),
        ("y", None),
    ]


def test_parquet_that_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"text": ["a", None], "n": [1, 2]}), path)
    for name, seen in [
        ("n", "row 1 has 1 in column 'n'"),
        ("text", "row 2 has no value"),
        ("x", r"no column 'x' \(.*n"),
    ]:
        with pytest.raises(TextError, match=seen):
            list(read_columns(str(path), [name]))
    path.write_bytes(path.read_bytes()[:-20])
    for broken in (path, tmp_path / "gone.parquet"):
        with pytest.raises(TextError, match=rf"{broken.name}: cannot be read as Parquet"):
            list(read_columns(str(broken), ["text"]))
