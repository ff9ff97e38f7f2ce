r"""Lines of a text: what stands between two `\n`, without byte order mark and trailing carriage returns."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from st_paragram.core.text import streams
from st_paragram.core.text.streams import read_lines
from st_paragram.errors import TextError

PACKERS = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
SPECIAL = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\0 \taж犬🐶"
LINES = st.lists(st.text(st.one_of(st.sampled_from(SPECIAL), st.characters(exclude_characters="\n", codec="utf-8"))))


def expected(text: str) -> list[str]:
    """One character at a time."""
    lines = [""]
    for character in text.removeprefix("\ufeff"):
        if character == "\n":
            lines.append("")
        else:
            lines[-1] += character
    if not text or text.endswith("\n"):  # a line feed ends a line, it does not begin one
        lines.pop()
    return [line.rstrip("\r") for line in lines]


@given(LINES, st.booleans(), st.integers(1, 40))
@example(["\ufeff"], False, 2)
def test_lines_as_cut_by_hand(lines: list[str], ended: bool, block_bytes: int) -> None:
    text = "\n".join(lines) + "\n" * ended
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK_BYTES", block_bytes)
        path = Path(folder) / "a.txt"
        path.write_bytes(text.encode())
        assert list(read_lines(str(path))) == expected(text)


@pytest.mark.parametrize("kind", PACKERS)
def test_compressed_files_and_standard_input(tmp_path, monkeypatch, kind) -> None:
    data = PACKERS[kind]("\ufeffone\r\n\ntwo\u2028three".encode())
    (tmp_path / "a").write_bytes(data)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(data))))
    assert list(read_lines(str(tmp_path / "a"))) == list(read_lines("-")) == ["one", "", "two\u2028three"]


@pytest.mark.parametrize(("before", "number"), [(b"", 1), (b"a\nb\r\n", 3), (b"\n" * 300_000, 300_001)])
def test_what_is_not_utf_8_is_named_by_its_line(tmp_path, monkeypatch, before, number) -> None:
    data = before + b"ok \xff no\nlast\n"
    (tmp_path / "a.txt").write_bytes(data)
    message = f"line {number} is not UTF-8 (byte 0xff); convert the file, e.g. with iconv"
    for path, name in ((str(tmp_path / "a.txt"), r"a\.txt"), ("-", "standard input")):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(data))))
        lines = read_lines(path)
        assert [next(lines) for _ in range(number - 1)] == [
            line.rstrip("\r") for line in before.decode().split("\n")[:-1]
        ]
        with pytest.raises(TextError, match=f"{name}: {re.escape(message)}"):
            next(lines)


def test_files_that_cannot_be_read(tmp_path) -> None:
    with pytest.raises(TextError, match="no such file"):
        list(read_lines(str(tmp_path / "none")))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"one\n" * 1000)[:-10])
    with pytest.raises(TextError, match=r"cut\.gz: truncated compressed file"):
        list(read_lines(str(tmp_path / "cut.gz")))
    (tmp_path / "empty").touch()
    assert list(read_lines(str(tmp_path / "empty"))) == []
