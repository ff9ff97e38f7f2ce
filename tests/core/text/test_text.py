"""Reading parallel text: what comes out is what went in, or the text is refused by file and row."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.text import streams
from st_paragram.core.text.parallel import ReadCounts, TextSource, moses_source, parse_source, read_pairs, read_rows
from st_paragram.errors import SettingsError, TextError

EN_ES = ("en", "es")
ROWS = [("one fish", "un pez"), ("two", "dos ñandúes"), ("", "trés"), ("犬", "🐶 perro")]
PACKERS = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
SPECIAL = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\0 a"
TEXTS = st.text(
    st.one_of(st.sampled_from(SPECIAL), st.characters(exclude_characters="\n\t", exclude_categories=["Cs"]))
)


def tabbed(rows: list[tuple[str, str]]) -> bytes:
    return "".join(f"{a}\t{b}\n" for a, b in rows).encode()


def read(source: TextSource | str | Path, **options: bool) -> tuple[list[tuple[str, str]], ReadCounts]:
    counts = ReadCounts()
    source = source if isinstance(source, TextSource) else parse_source(str(source), EN_ES)
    return list(read_pairs(source, counts, **options)), counts


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def mended(text: str) -> str:
    """The documented replacements, one character at a time."""
    return "".join(" " if c in "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029" else c for c in text)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1), st.integers(1, 40), st.booleans())
def test_any_text_comes_back(rows: list[tuple[str, str]], block: int, newline_at_end: bool) -> None:
    data = tabbed(rows) if newline_at_end else tabbed(rows)[:-1]
    marked = data.startswith("\ufeff".encode())
    if marked:
        rows = [(rows[0][0][1:], rows[0][1]), *rows[1:]]
    kept = [row for row in rows if "\0" not in row[0] + row[1]]
    expected = [(mended(a), mended(b.rstrip("\r"))) for a, b in kept]
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(streams, "BLOCK_BYTES", block):
        pairs, counts = read(write(Path(folder) / "pairs.tsv", data))
    assert pairs == expected
    assert (counts.rows, counts.nul_rows) == (len(rows), len(rows) - len(kept))
    assert counts.trailing_returns == sum(b.endswith("\r") for _, b in rows)
    assert counts.inner_returns == sum((a + "\t" + b.rstrip("\r")).count("\r") for a, b in rows)
    assert counts.line_separators == sum(c in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029" for a, b in rows for c in a + b)
    assert counts.byte_order_marks == marked


@pytest.mark.parametrize("kind", PACKERS)
def test_compression_is_told_by_content(kind: str, tmp_path: Path) -> None:
    assert read(write(tmp_path / "no_ending", PACKERS[kind](tabbed(ROWS))))[0] == ROWS


@pytest.mark.parametrize("kind", PACKERS)
def test_standard_input(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BufferedReader(io.BytesIO(PACKERS[kind](tabbed(ROWS))))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=buffer))
    assert read("-")[0] == ROWS
    assert not buffer.closed


def test_column_order(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", tabbed(ROWS))
    swapped = [(b, a) for a, b in ROWS]
    assert read(f"en-es:{path}")[0] == ROWS
    assert read(f"es-en:{path}")[0] == swapped
    assert read(parse_source(f"en-en:{path}", ("en", "en")))[0] == ROWS
    with pytest.raises(SettingsError, match=r"columns en-de, but en-es is expected"):
        parse_source(f"en-de:{path}", EN_ES)


@pytest.mark.parametrize("packer", PACKERS.values())
def test_moses_pair(packer: type[bytes], tmp_path: Path) -> None:
    first, second = ("".join(row[side] + "\n" for row in ROWS).encode() for side in (0, 1))
    paths = write(tmp_path / "a.en", packer(first)), write(tmp_path / "a.es", second.removesuffix(b"\n"))
    pairs, counts = read(moses_source(str(paths[0]), str(paths[1]), EN_ES))
    assert pairs == ROWS
    assert counts.rows == len(ROWS)


@pytest.mark.parametrize(("short", "long"), [("en", "es"), ("es", "en")])
def test_moses_of_unequal_length_is_refused(short: str, long: str, tmp_path: Path) -> None:
    write(tmp_path / f"a.{short}", b"x\ny\n")
    write(tmp_path / f"a.{long}", b"x\ny\nz\n")
    message = rf"a\.{short}: ends after row 2, but .*a\.{long} goes on"
    with pytest.raises(TextError, match=message):
        read(moses_source(str(tmp_path / "a.en"), str(tmp_path / "a.es"), EN_ES))


def test_moses_rows_stay_aligned_when_one_side_is_bad(tmp_path: Path) -> None:
    first = write(tmp_path / "a.en", b"1\n2\0\n3\n4\n")
    second = write(tmp_path / "a.es", b"uno\ndos\ntr\xffs\ncuatro\n")
    pairs, counts = read(moses_source(str(first), str(second), EN_ES), drop_invalid=True)
    assert pairs == [("1", "uno"), ("4", "cuatro")]
    assert (counts.rows, counts.nul_rows, counts.invalid_rows) == (4, 1, 1)


def test_opus_zip(tmp_path: Path) -> None:
    first, second = ("".join(row[side] + "\n" for row in ROWS).encode() for side in (0, 1))
    path = write_zip(
        tmp_path / "C.zip", {"README": b"r", "C.en-es.es": second, "C.en-es.en": first, "C.en-es.ids": b""}
    )
    assert read(path)[0] == ROWS
    assert read(f"es-en:{path}")[0] == ROWS


def test_opus_zip_with_a_region(tmp_path: Path) -> None:
    members = {"O.en-zh_cn.en": b"a dog\n", "O.en-zh_cn.zh_cn": "狗\n".encode()}
    path = write_zip(tmp_path / "O.zip", members)
    assert read(parse_source(str(path), ("en", "zh")))[0] == [("a dog", "狗")]
    path = write_zip(tmp_path / "P.zip", members | {"O.en-zh_tw.zh_tw": "犬\n".encode()})
    with pytest.raises(TextError, match=r"needs one member ending in each of \.en and \.zh"):
        read(parse_source(str(path), ("en", "zh")))
    assert read(parse_source(f"en-zh_tw:{path}", ("en", "zh")))[0] == [("a dog", "犬")]


def test_zip_with_one_table(tmp_path: Path) -> None:
    assert read(write_zip(tmp_path / "t.zip", {"folder/table.tsv": tabbed(ROWS)}))[0] == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["t.zip"]  # nothing is unpacked
    with pytest.raises(TextError, match=r"o\.zip: member '\.\./\.\./outside\.tsv' points outside"):
        read(write_zip(tmp_path / "o.zip", {"../../outside.tsv": tabbed(ROWS)}))
    path = write_zip(tmp_path / "u.zip", {"a.tsv": b"a\tb\n", "b.tsv": b"a\tb\n"})
    with pytest.raises(TextError, match=r"u\.zip: needs one member .*it has 2 \(a.tsv, b.tsv\)"):
        read(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\tb\nc\n", "row 2 has 1 column, the last 'c', where 2 are expected"),
        (
            b"a\tb\na\tb\nc\td\t0.93\n",
            "row 3 has 3 columns, the last '0.93', where 2 are expected; keep only the two",
        ),
        (b"a\tb\nc\td\xff\n", "row 2 is not UTF-8 (byte 0xff at byte 4 of the row)"),
        (b"a\tb\n\xed\xa0\x80\td\n", "row 2 is not UTF-8"),
        (b"", "empty; give"),
        ("a\tb\n".encode("utf-16"), "looks like UTF-16"),
        (gzip.compress(b"", mtime=0), "empty; give"),
        (gzip.compress(tabbed(ROWS * 999), mtime=0)[:-20], "truncated"),
        (lzma.compress(tabbed(ROWS * 999))[:-40], "truncated"),
        (gzip.compress(tabbed(ROWS), mtime=0)[:12], "truncated"),
        (gzip.compress(tabbed(ROWS), mtime=0)[:-8] + b"\0" * 8, "cannot be read"),
    ],
)
def test_refusals_name_the_place(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(TextError, match="pairs.tsv: .*" + re.escape(message)) as caught:
        read(write(tmp_path / "pairs.tsv", data))
    assert "\n" not in str(caught.value)


def test_a_zip_cut_off_or_damaged_is_refused(tmp_path: Path) -> None:
    whole = write_zip(tmp_path / "a.zip", {"a.tsv": tabbed(ROWS * 999)}).read_bytes()
    with pytest.raises(TextError, match=r"cut\.zip: truncated or damaged zip archive"):
        read(write(tmp_path / "cut.zip", whole[: len(whole) // 2]))
    middle = len(whole) // 3
    with pytest.raises(TextError, match=r"bad\.zip:a\.tsv: "):
        read(write(tmp_path / "bad.zip", whole[:middle] + bytes(8) + whole[middle + 8 :]))


def test_a_zip_whose_members_have_other_names_than_its_directory_says_is_refused(tmp_path: Path) -> None:
    data = write_zip(tmp_path / "a.zip", {"é.tsv": tabbed(ROWS)}).read_bytes()
    assert data.count("é".encode()) == 2
    with pytest.raises(TextError, match=r"bad\.zip: member .* cannot be opened"):
        read(write(tmp_path / "bad.zip", data.replace("é".encode(), b"\xff\xff", 1)))


@pytest.mark.parametrize("members", [["a\nb.tsv"], ["a\n", "\x1b[31m", "c"]])
def test_names_in_a_zip_do_not_break_messages(tmp_path: Path, members: list[str]) -> None:
    path = write_zip(tmp_path / "a.zip", dict.fromkeys(members, b"one\ttwo\tthree"))
    with pytest.raises(TextError) as caught:
        read(path)
    assert str(caught.value).isprintable()


def test_what_zstd_packed_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"compressed with zstd.*zstd -d"):
        read(write(tmp_path / "a.tsv", b"\x28\xb5\x2f\xfd" + bytes(20)))


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"none\.tsv: no such file"):
        read(tmp_path / "none.tsv")
    with pytest.raises(TextError, match="is a folder, where a file is expected"):
        read(tmp_path)
    with pytest.raises(SettingsError, match="standard input"):
        moses_source("-", "-", EN_ES)


def test_a_file_without_lines_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    with (
        mock.patch.object(streams, "MAX_LINE_BYTES", 1 << 20),
        pytest.raises(TextError, match="longer than 1 MiB"),
    ):
        read(write(tmp_path / "image.tsv", gzip.compress(b"x" * (1 << 22), mtime=0)))


def test_invalid_rows_are_dropped_on_demand(tmp_path: Path) -> None:
    data = b"a\tb\n\xc3\td\nx\ty\r\n\ne\tf\0\n"
    pairs, counts = read(write(tmp_path / "pairs.tsv", data), drop_invalid=True)
    assert pairs == [("a", "b"), ("x", "y"), ("", "")]
    assert counts == ReadCounts(rows=5, nul_rows=1, invalid_rows=1, trailing_returns=1)


def test_rows_of_a_wrong_number_of_columns_are_dropped_on_demand(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"row 2 has 1 column.*or drop such rows \(--drop-invalid\)"):
        read(write(tmp_path / "pairs.tsv", b"a\tb\nc\nd\te\t0.9\n"), drop_invalid=False)
    path = write(tmp_path / "pairs.tsv", b"a\tb\nc\nd\te\t0.9\n\n \t\t\n\xff\n\0\nf\tg")
    pairs, counts = read(path, drop_invalid=True)
    assert pairs == [("a", "b"), ("", ""), ("", ""), ("f", "g")]  # a row of nothing but spaces is a blank one
    assert counts == ReadCounts(rows=8, nul_rows=1, invalid_rows=1, wrong_columns=2)
    scored = TextSource((str(path),), EN_ES, further_columns=1)
    counts = ReadCounts()
    assert list(read_rows(scored, counts, drop_invalid=True)) == [("d", "e", "0.9"), ("", "", ""), (" ", "", "")]
    assert counts.wrong_columns == 3


def test_a_moses_pair_of_unequal_length_is_refused_all_the_same(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.en", b"a\tb\nc\n"), write(tmp_path / "a.es", b"d\n")
    with pytest.raises(TextError, match=r"a\.es: ends after row 1"):
        read(moses_source(str(first), str(second), EN_ES), drop_invalid=True)


@pytest.mark.parametrize("block", [1, 5, 1 << 18])
def test_rows_are_numbered_across_blocks(block: int, tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", tabbed(ROWS * 2) + b"\xff\n")
    with (
        mock.patch.object(streams, "BLOCK_BYTES", block),
        pytest.raises(TextError, match="row 9 is not UTF-8"),
    ):
        read(path)


def test_a_blank_row_is_an_empty_pair(tmp_path: Path) -> None:
    assert read(write(tmp_path / "a.tsv", b"\xef\xbb\xbf"))[0] == [("", "")]
    assert read(write(tmp_path / "b.tsv", b"a\tb\n \n"))[0] == [("a", "b"), ("", "")]


def test_reading_is_lazy(tmp_path: Path) -> None:
    path = write(tmp_path / "pairs.tsv", tabbed(ROWS * 100_000) + b"one column\n")
    assert next(read_pairs(parse_source(str(path), EN_ES))) == ROWS[0]  # the bad row at the end is never met


def test_time_grows_with_the_length_of_a_line_and_no_faster(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"a" + b"\r" * 100_000 + b"b\tc" + b"\r" * 100_000 + b"\n")
    started = time.perf_counter()
    rows, counts = read(tmp_path / "a.tsv")
    assert time.perf_counter() - started < 5
    assert rows == [("a" + " " * 100_000 + "b", "c")]
    assert (counts.trailing_returns, counts.inner_returns) == (1, 100_000)


@pytest.mark.parametrize("content", [b"a\tb\tc\n", b"a\xff\tb\n"])
def test_dropping_is_advised_where_it_can_be_asked_for(tmp_path, content):
    path = tmp_path / "rows.tsv"
    path.write_bytes(content)
    for drop_invalid, advised in ((None, False), (False, True)):
        with pytest.raises(TextError) as raised:
            list(read_pairs(parse_source(str(path), EN_ES), drop_invalid=drop_invalid))
        assert ("--drop-invalid" in str(raised.value)) == advised
