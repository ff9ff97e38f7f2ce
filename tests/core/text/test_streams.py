r"""Lines of a text: what stands between two `\n`, without byte order mark and trailing carriage
returns.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_paragram.core.text import streams
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.core.text.streams import read_lines, regular_file
from st_paragram.core.text.tables import read_columns
from st_paragram.errors import TextError

PACKERS = {
    "": bytes,
    ".gz": partial(gzip.compress, mtime=0),  # equal bytes, which name tests
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.Codec("zstd").compress(data, asbytes=True),
}
SPECIAL = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\0 \taж犬🐶"
LINES = st.lists(
    st.text(
        st.one_of(st.sampled_from(SPECIAL), st.characters(exclude_characters="\n", codec="utf-8"))
    )
)


def expected(text: str) -> list[str]:
    """Of the whole text at once."""
    lines = text.removeprefix("\ufeff").split("\n")
    if not text or text.endswith("\n"):  # a line feed ends a line, it does not begin one
        lines.pop()
    return [line.rstrip("\r") for line in lines]


@given(LINES, st.booleans(), st.integers(1, 40))
@example(["\ufeff"], False, 3)
def test_lines_as_cut_by_hand(lines: list[str], ended: bool, block_bytes: int) -> None:
    text = "\n".join(lines) + "\n" * ended
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK_BYTES", block_bytes)
        path = Path(folder) / "a.txt"
        path.write_bytes(text.encode())
        assert list(read_lines(str(path))) == expected(text)


@pytest.mark.parametrize("ending", PACKERS)
def test_compressed_files(tmp_path: Path, ending: str) -> None:
    pack, path = PACKERS[ending], tmp_path / f"a.TXT{ending.upper()}"
    path.write_bytes(pack("\ufeffone\r\n\n".encode()) + pack("two\u2028three".encode()))
    assert list(read_lines(str(path))) == ["one", "", "two\u2028three"]
    path.write_bytes(pack(b""))
    assert list(read_lines(str(path))) == []
    if not ending:
        return
    path = tmp_path / f"cut{ending}"
    path.write_bytes(PACKERS[ending](b"".join(b"%d\n" % number for number in range(9999)))[:-9])
    with pytest.raises(
        TextError,
        match=rf"cut\{ending}: cannot be read \(.*\); if it is damaged or incomplete, download it",
    ):
        list(read_lines(str(path)))


@pytest.mark.parametrize(
    ("before", "number"), [(b"", 1), (b"a\nb\r\n", 3), (b"\n" * 300_000, 300_001)]
)
def test_what_is_not_utf_8_is_named_by_its_line(
    tmp_path: Path, monkeypatch, before: bytes, number: int
) -> None:
    data = before + b"ok \xff no\nlast\n"
    (tmp_path / "a.txt").write_bytes(data)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(data))))
    for path, name in ((str(tmp_path / "a.txt"), r"a\.txt"), ("-", "standard input")):
        with pytest.raises(
            TextError, match=f"{name}: line {number} is not UTF-8 .byte 0xff.; convert the file"
        ):
            list(read_lines(path))


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        *(
            (text.encode(encoding), f"{name} text; convert it: iconv -f {name} -t UTF-8 ")
            for text in ("a\tb\n", "где я\t在哪里\n" * 99)
            for encoding, name in (("utf-16", "UTF-16"), ("utf-32", "UTF-32"))
        ),
        ("one\ttwo\n".encode("utf-16-le"), "UTF-16LE text; convert it: iconv -f UTF-16LE"),
        ("one\ttwo\n".encode("utf-16-be"), "UTF-16BE text; convert it: iconv -f UTF-16BE"),
        ("где я\tтут\n".encode("utf-16-le") * 99, "UTF-16LE text"),
        (b"\x89HDF\r\n\x1a\n\0", "is HDF5, not text; the name of a pair store must end in .h5"),
        (b"\x93NUMPY\x01\0", "is a numpy array, not text"),
        (b"PAR1\x15\n", "is a Parquet table, not text; its name must end in .parquet"),
        (b"%PDF-1.4\n", "is a PDF document, not text; export it as text"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n", "is XML, not text; save a translation file as"),
        *(
            (pack(b"a\n"), "looks like a compressed file; its name must end in")
            for pack in list(PACKERS.values())[1:]
        ),
    ],
)
def test_what_is_no_text(tmp_path: Path, data: bytes, seen: str) -> None:
    (tmp_path / "a.tsv").write_bytes(data)
    with pytest.raises(TextError, match=r"a\.tsv: " + re.escape(seen)):
        list(read_lines(str(tmp_path / "a.tsv")))


@pytest.mark.parametrize("data", [b"a\0\tb\n" * 9, b"\0" * 90 + b"\n", b"a\0b\n"])
def test_text_with_nul_is_not_utf_16(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tsv").write_bytes(data)
    assert list(read_lines(str(tmp_path / "a.tsv"))) == data.decode().removesuffix("\n").split("\n")


@pytest.mark.parametrize("data", [b"a\tb\rc\td\r", b"a\rb\rc"])
def test_lines_that_end_in_carriage_returns_only(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.tsv").write_bytes(data)
    with pytest.raises(
        TextError, match=r"a\.tsv: its lines end in carriage returns .* convert it with: tr"
    ):
        list(read_lines(str(tmp_path / "a.tsv")))


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"one\rline\r\n", ["one\rline"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"one\rline", ["one\rline"]),
        (b"a line\r", ["a line"]),
    ],
)
def test_other_carriage_returns_are_read(tmp_path: Path, data: bytes, lines: list[str]) -> None:
    (tmp_path / "a.tsv").write_bytes(data)
    assert list(read_lines(str(tmp_path / "a.tsv"))) == lines


@pytest.mark.parametrize("name", ["c.xlsx", "d.docx", "e.PDF.gz", "f.json"])
def test_formats_of_other_programs_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"<?xml version='1.0'?>\n")
    with pytest.raises(
        TextError, match=rf"{re.escape(name)}: is .*, not text; export it as tab-separated text"
    ):
        list(read_lines(str(tmp_path / name)))


def test_a_pipe_can_be_read_twice_from_a_copy(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(b"a\nb\n",))
    writer.start()
    with ExitStack() as stack:
        copy = regular_file(str(pipe), stack)
        assert list(read_lines(copy)) == list(read_lines(copy)) == ["a", "b"]
        plain = str(tmp_path / "plain")
        assert regular_file(plain, stack) == plain
    writer.join()
    assert not Path(copy).exists()


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"none\.gz: No such file or directory; check the path"):
        list(read_lines(str(tmp_path / "none.gz")))
    with pytest.raises(TextError, match="is a folder, but a file is expected; name a file"):
        list(read_lines(str(tmp_path)))


@pytest.mark.parametrize(
    "change",
    [lambda path: path.write_text("one\tuno\n"), lambda path: path.open("a").write("x\ty\n")],
)
@pytest.mark.parametrize(
    "read",
    [
        read_lines,
        lambda path: read_columns(path, ["1", "2"]),
        lambda path: read_pairs(TextSource((path,), ("en", "es"))),
        lambda path: read_pairs(TextSource((path, path), ("en", "es"))),
    ],
)
def test_files_that_change_while_they_are_read(tmp_path: Path, monkeypatch, read, change) -> None:
    monkeypatch.setattr(streams, "BLOCK_BYTES", 1000)
    path = tmp_path / "x.tsv"
    path.write_text("one\tuno\n" * 500)
    rows = read(str(path))
    next(iter(rows))
    change(path)
    with pytest.raises(
        TextError,
        match=r"x\.tsv: changed while it was read, from 4,000 to [48](,004)? bytes; run again",
    ):
        list(rows)


def test_files_that_are_replaced_or_not_read_to_their_end(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("one\ntwo\n")
    rows = read_lines(str(path))
    assert next(rows) == "one"
    path.write_text("")
    rows.close()  # an unread rest does not matter
    with streams.unchanged([str(path), "-", str(tmp_path / "none")]):
        path.unlink()
