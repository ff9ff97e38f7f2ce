"""Reading parallel text: what comes out is what went in, or the text is refused by file and row."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.cli.main import main
from st_paragram.core.languages import joined_sides
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text import streams
from st_paragram.core.text.parallel import (
    ReadCounts,
    TextSource,
    parse_source,
    read_pairs,
    read_rows,
    with_columns,
)
from st_paragram.errors import SettingsError, TextError

EN_ES = ("en", "es")
ROWS = [("one fish", "un pez"), ("two", "dos ñandúes"), ("", "trés"), ("犬", "🐶 perro")]
SIDES = ["".join(row[side] + "\n" for row in ROWS).encode() for side in (0, 1)]
SPECIAL = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\0 a"
TEXTS = st.text(
    st.one_of(
        st.sampled_from(SPECIAL),
        st.characters(exclude_characters="\n\t", exclude_categories=["Cs"]),
    )
)


def tabbed(rows: list[tuple[str, str]]) -> bytes:
    return "".join(f"{a}\t{b}\n" for a, b in rows).encode()


def read(
    source: TextSource | str | Path, **options: bool
) -> tuple[list[tuple[str, str]], ReadCounts]:
    counts = ReadCounts()
    source = source if isinstance(source, TextSource) else parse_source(str(source), EN_ES)
    return list(read_pairs(source, counts, **options)), counts


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def moses(folder: Path, first: bytes, second: bytes) -> TextSource:
    return TextSource(
        (str(write(folder / "a.en", first)), str(write(folder / "a.es", second))), EN_ES
    )


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def repaired(text: str) -> str:
    """The documented replacements, one character at a time."""
    return "".join(" " if c in SPECIAL[:9] else c for c in text)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1), st.integers(1, 40), st.booleans())
def test_any_text_comes_back(rows: list[tuple[str, str]], block: int, newline_at_end: bool) -> None:
    data = tabbed(rows) if newline_at_end else tabbed(rows)[:-1]
    marked = data.startswith("\ufeff".encode())
    if marked:
        rows = [(rows[0][0][1:], rows[0][1]), *rows[1:]]
    kept = [row for row in rows if "\0" not in row[0] + row[1]]
    expected = [(repaired(a), repaired(b.rstrip("\r"))) for a, b in kept]
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(streams, "BLOCK_BYTES", block):
        pairs, counts = read(write(Path(folder) / "pairs.tsv", data))
    assert pairs == expected
    assert (counts.rows, counts.nul_rows) == (len(rows), len(rows) - len(kept))
    assert counts.trailing_returns == sum(b.endswith("\r") for _, b in rows)
    assert counts.inner_returns == sum((a + "\t" + b.rstrip("\r")).count("\r") for a, b in rows)
    assert counts.line_separators == sum(c in SPECIAL[1:9] for a, b in rows for c in a + b)
    assert counts.byte_order_marks == marked


def test_column_order(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", tabbed(ROWS))
    swapped = [(b, a) for a, b in ROWS]
    assert read(f"en-es:{path}")[0] == ROWS
    assert read(f"es-en:{path}")[0] == swapped
    assert read(parse_source(f"en-en:{path}", ("en", "en")))[0] == ROWS
    with pytest.raises(SettingsError, match=r"en-de, but en-es is expected; .* --pair en de$"):
        parse_source(f"en-de:{path}", EN_ES)
    with pytest.raises(
        SettingsError, match=r"ambiguous language \(one of es, de\); write for example en-es:pairs"
    ):
        parse_source("pairs", ("en", "es-de"))
    with pytest.raises(SettingsError, match=r"en-es:pairs \(or give --lang es if one side is"):
        parse_source("pairs", ("en", "en-es"))


def test_pairs_without_english() -> None:
    assert parse_source("pairs", ("fr", "de")).pair == ("fr", "de")
    assert parse_source("de-fr:pairs", ("fr", "de")).pair == ("fr", "de")
    several = joined_sides([("fr", "de"), ("en", "fr")])
    assert several == ("fr-en", "de-fr")
    for spec, pair in [("fr-de", "fr-de"), ("de-fr", "fr-de"), ("fr-en", "en-fr")]:
        assert parse_source(f"{spec}:pairs", several).pair == tuple(pair.split("-"))
    with pytest.raises(SettingsError, match=r"one of en, de, fr\); write for example fr-de:pairs"):
        parse_source("pairs", several)
    with pytest.raises(SettingsError, match="give --pair fr de if no side is English"):
        parse_source("pairs", ("en", "fr-de"))
    with pytest.raises(SettingsError, match=r"columns fr-de, but en-de is expected.*--pair fr de"):
        parse_source("fr-de:pairs", ("en", "de"))


def test_moses_rows_stay_aligned_and_unequal_lengths_are_refused(tmp_path: Path) -> None:
    message = (
        r"a\.en has 50,000 rows and .*a\.es has 3 rows; the files of a pair need the same number"
    )
    with pytest.raises(TextError, match=message):
        read(moses(tmp_path, b"some words\n" * 50_000, b"palabras\n" * 3), drop_invalid=True)
    assert read(moses(tmp_path, SIDES[0], SIDES[1].removesuffix(b"\n")))[0] == ROWS
    source = moses(tmp_path, b"1\n2\0\n3\n4\n", b"uno\ndos\ntr\xffs\ncuatro\n")
    pairs, counts = read(source, drop_invalid=True)
    assert pairs == [("1", "uno"), ("4", "cuatro")]
    assert (counts.rows, counts.nul_rows, counts.invalid_rows) == (4, 1, 1)


def test_opus_zip(tmp_path: Path) -> None:
    members = {"README": b"r", "C.en-es.es": SIDES[1], "C.en-es.en": SIDES[0], "C.en-es.ids": b""}
    path = write_zip(tmp_path / "C.zip", members)
    assert read(path)[0] == read(f"es-en:{path}")[0] == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["C.zip"]  # nothing is unpacked
    with_region = {"O.en-zh_cn.en": b"a dog\n", "O.en-zh_cn.zh_cn": "狗\n".encode()}
    path = write_zip(tmp_path / "O.zip", with_region)
    assert read(parse_source(str(path), ("en", "zh")))[0] == [("a dog", "狗")]
    path = write_zip(tmp_path / "P.zip", with_region | {"O.en-zh_tw.zh_tw": "犬\n".encode()})
    with pytest.raises(
        TextError, match=r"needs one member each for \.en and \.zh, .*; give the codes as in"
    ):
        read(parse_source(str(path), ("en", "zh")))
    assert read(parse_source(f"en-zh_tw:{path}", ("en", "zh")))[0] == [("a dog", "犬")]


def test_zip_with_one_file_of_columns(tmp_path: Path) -> None:
    assert read(write_zip(tmp_path / "t.zip", {"folder/table.tsv": tabbed(ROWS)}))[0] == ROWS
    with pytest.raises(
        TextError, match=r"u\.zip: needs one member each for .*its members are a.tsv, b.tsv"
    ):
        read(write_zip(tmp_path / "u.zip", {"a.tsv": b"a\tb\n", "b.tsv": b"a\tb\n"}))


def test_files_that_systems_add_to_a_zip_are_ignored(tmp_path: Path) -> None:
    added = {
        "__MACOSX/._p.tsv": b"\0\5",
        ".DS_Store": b"\0",
        "f/Thumbs.db": b"\0",
        "._p.tsv": b"\0",
    }
    assert read(write_zip(tmp_path / "t.zip", {"f/p.tsv": tabbed(ROWS), **added}))[0] == ROWS


def test_tables_have_the_columns_of_the_hub_by_default(tmp_path: Path) -> None:
    rows = [{"translation": {"es": spanish, "en": english}} for english, spanish in ROWS]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for spec in ("", "es-en:"):
        source = parse_source(f"{spec}{tmp_path / 'p.jsonl'}", EN_ES)
        assert list(read_pairs(with_columns([source], ())[0])) == ROWS
    with pytest.raises(
        TextError, match=r"p\.csv: is a table \(CSV\); name its columns with --columns"
    ):
        with_columns([TextSource((str(write(tmp_path / "p.csv", b"a,b\n")),), EN_ES)], ())


def test_a_zip_cut_off_is_refused(tmp_path: Path) -> None:
    whole = write_zip(tmp_path / "a.zip", {"a.tsv": tabbed(ROWS * 999)}).read_bytes()
    with pytest.raises(TextError, match=r"cut\.zip: cannot be read"):
        read(write(tmp_path / "cut.zip", whole[: len(whole) // 2]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\tb\nc\n", "row 2 has 1 column, but 2 are expected: 'c'; put one tab"),
        (b"a\tb\nc\td\xff\n", "line 2 is not UTF-8 (byte 0xff)"),
        (b"", "empty; give"),
    ],
)
def test_refusals_name_the_place(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(TextError, match="pairs.tsv: .*" + re.escape(message)) as caught:
        read(write(tmp_path / "pairs.tsv", data), drop_invalid=False)
    assert "\n" not in str(caught.value) and ("--drop-invalid" in str(caught.value)) == bool(data)


def test_rows_of_a_wrong_number_of_columns_are_dropped_on_demand(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", b"a\tb\nc\nd\te\t0.9\n\n \t\t\n\xff\n\0\nf\tg")
    pairs, counts = read(path, drop_invalid=True)
    # a row of nothing but spaces is a blank one
    assert pairs == [("a", "b"), ("", ""), ("", ""), ("f", "g")]
    assert counts == ReadCounts(rows=8, nul_rows=1, invalid_rows=1, wrong_columns=2)
    scored, counts = TextSource((str(path),), EN_ES, further_columns=1), ReadCounts()
    assert list(read_rows(scored, counts, drop_invalid=True)) == [
        ("d", "e", "0.9"),
        ("", "", ""),
        (" ", "", ""),
    ]
    assert counts.wrong_columns == 3


def test_each_file_of_a_pair_has_its_own_header(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = {
        "a.csv": 'id,en\n1,"Hello, there"\n2,Good day\n\n3,Bye\n\n',
        "b.csv": "es,id\nHola,1\nBuenos dias,2\n\nAdios,3\n",
        "b.tsv": "id\tes\n1\tHola\n2\tBuenos dias\n9\t\n3\tAdios\n",
        "b.jsonl": '{"es": "Hola"}\n{"es": "Buenos dias", "x": 1}\n\n{"es": "Adios"}\n',
        "bare.csv": "1,Hola\n2,Buenos dias\n\n3,Adios\n",
        "damaged.csv": "es,id\nHola,1\nBuenos, dias,2\n\nAdios,3\n",
    }
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    rows = [("Hello, there", "Hola"), ("Good day", "Buenos dias"), ("", ""), ("Bye", "Adios")]

    def pair(second, column="es"):
        return TextSource(("a.csv", second), EN_ES, columns=("en", column))

    for second, column in (("b.csv", "es"), ("b.tsv", "es"), ("b.jsonl", "es"), ("bare.csv", "2")):
        assert read(pair(second, column))[0] == rows
    with pytest.raises(
        TextError, match=r"bare\.csv: no column 'es' \(its columns are 1, Hola\); correct the name"
    ):
        read(pair("bare.csv"))
    with pytest.raises(
        TextError, match=r"damaged\.csv: line 3 has 3 cells, but the first row has 2"
    ):
        read(pair("damaged.csv"))
    left, counts = read(pair("damaged.csv"), drop_invalid=True)
    assert left == [rows[0], *rows[2:]] and (counts.rows, counts.wrong_columns) == (4, 1)
    with pytest.raises(
        TextError, match=r"a\.csv: is a table \(CSV\); name its columns with --columns NAME"
    ):
        read(TextSource(("a.csv", "b.csv"), EN_ES))


def test_a_header_of_a_pair_of_files_is_no_pair(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("en\nHello my old friend\nGood day to you\n")
    Path("b.csv").write_text("es\nHola mi viejo amigo\nBuenos dias a usted\n")
    command = [
        "prepare",
        "--lang",
        "es",
        "--moses",
        "a.csv",
        "b.csv",
        "--output",
        "s.h5",
        "--vocab-size",
        "30",
    ]
    assert main(command) == 1
    assert (
        "a.csv: is a table (CSV); name its columns with --columns NAME" in capsys.readouterr().err
    )
    assert main([*command, "--columns", "en", "es"]) == 0
    assert len(PairStore("s.h5")) == 2
    assert main(["align", "--source", "a.csv", "--target", "b.csv", "--output", "p.tsv"]) == 1
    assert (
        "a.csv: is a table (CSV); give plain text, one sentence per line" in capsys.readouterr().err
    )


def test_both_languages_need_a_column_of_one_table() -> None:
    table = TextSource(("pairs.csv",), EN_ES)
    with pytest.raises(SettingsError, match=r"pairs\.csv: column text for both languages"):
        with_columns([table], [("text", "text")])
    two_files = TextSource(("a.csv", "b.csv"), EN_ES)
    assert with_columns([two_files], [("text", "text")])[0].columns == ("text", "text")
