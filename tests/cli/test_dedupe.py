"""`st-paragram dedupe`: bytes in and out, odd and damaged texts, what is refused."""

from __future__ import annotations

import io
import sys

import pytest

from st_paragram.cli.main import main

LINE = "a text of eight words and some more"
SHORT = LINE.encode()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dedupe(*arguments):
    return main(["dedupe", *map(str, arguments)])


def test_what_stays_keeps_its_order_and_bytes(here, capsys):
    lines = [
        b"\xef\xbb\xbfOne line",
        b"nul \0 byte\r",
        b"  odd  \xe2\x80\xa8 spaces\t",
        b"one LINE!",
        b"",
        b"\r",
        b"end",
    ]
    (here / "a").write_bytes(b"\n".join(lines))
    assert dedupe("a", "--output", "out", "--removed", "removed.tsv") == 0
    assert (here / "out").read_bytes() == b"\n".join([*lines[:3], lines[4], lines[6]]) + b"\n"
    assert (here / "removed.tsv").read_text() == "4\t1\tnormalized\tone LINE!\n6\t5\texact\t\n"
    assert capsys.readouterr().err.endswith(
        "out: 5 of 7 lines kept; removed: 1 exact, 1 normalized\n"
    )
    assert sorted(path.name for path in here.iterdir()) == ["a", "out", "removed.tsv"]


def test_standard_input_and_output(here, capfdbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"x\ny\nx\n"))))
    assert dedupe("-") == 0
    captured = capfdbinary.readouterr()
    assert captured.out == b"x\ny\n"
    assert captured.err.endswith(b"standard output: 2 of 3 lines kept; removed: 1 exact\n")
    (here / "a").write_text("x\nx\ny\n")
    assert dedupe("a", "--output", "a", "--overwrite") == 0 and (here / "a").read_text() == "x\ny\n"


def test_sides_and_methods_of_pairs_in_a_file_and_in_two(here):
    first = [LINE, LINE, "another text", LINE.upper(), "last"]
    second = ["uno dos tres", "otra cosa", "uno dos tres", "Uno, dos, tres", "fin"]
    rows = [f"{one}\t{other}\n" for one, other in zip(first, second, strict=True)]
    for name, lines in (("pairs", rows), ("a", first), ("b", second)):
        (here / name).write_text("".join(f"{line.rstrip()}\n" for line in lines))
    for sides, kept in (
        ("both", [0, 1, 2, 4]),
        ("first", [0, 2, 4]),
        ("second", [0, 1, 4]),
        ("either", [0, 4]),
    ):
        assert dedupe("pairs", "--pairs", "--sides", sides, "--output", "out", "--overwrite") == 0
        assert (here / "out").read_text() == "".join(rows[row] for row in kept)
        moses = [
            "--moses",
            "a",
            "b",
            "--sides",
            sides,
            "--output",
            "out.a",
            "out.b",
            "--removed",
            "removed",
        ]
        assert dedupe(*moses, "--overwrite") == 0
        assert (here / "out.a").read_text() == "".join(f"{first[row]}\n" for row in kept)
        assert (here / "out.b").read_text() == "".join(f"{second[row]}\n" for row in kept)
        assert (here / "removed").read_text().endswith(f"\t{rows[3]}")
    for options, count in (
        ([], 3),
        (["--method", "exact"], 3),
        (["--method", "exact", "--no-normalize"], 4),
    ):
        assert dedupe("a", "--output", "out", "--overwrite", *options) == 0
        assert len((here / "out").read_text().splitlines()) == count


def test_blank_rows_and_columns_of_a_table(here):
    (here / "some").write_bytes(b"a\tb\n \n\na\tb\n")
    assert (
        dedupe("some", "--pairs", "--output", "blank") == 0
        and (here / "blank").read_bytes() == b"a\tb\n \n"
    )
    (here / "a.csv").write_text(
        'id,en,es\n1,"One, two","uno\tdos"\n2,one two,otro\n3,"One\nTwo",UNO DOS\n'
    )
    assert dedupe("a.csv", "--columns", "en", "--output", "out") == 0
    assert (here / "out").read_text() == "One, two\n"
    assert dedupe("a.csv", "--columns", "en", "es", "--output", "pairs") == 0
    assert (here / "pairs").read_text() == "One, two\tuno dos\none two\totro\n"


REFUSED = [
    (
        ["--moses", "a", "three", "--output", "c", "d"],
        "a has 1 row and three has 2 rows; the files of a pair need",
    ),
    ([], "FILE, FILE with --pairs, or --moses EN XX"),
    (["a", "--sides", "first"], "--sides is for parallel text"),
    (["a.csv"], "a.csv: is a table (CSV); name its columns with --columns"),
    (["empty"], "empty: empty; give a text with at least one line"),
    (["latin1"], "latin1: line 2 is not UTF-8 (byte 0xe9); convert the file"),
    (
        ["a", "--pairs"],
        "a: row 1 has 1 column, but 2 are expected: 'x'; put one tab between columns",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_is_refused_leaves_nothing(here, capsys, arguments, message):
    (here / "a").write_text("x\n")
    (here / "a.csv").write_text("x\ny\n")
    (here / "empty").write_bytes(b"")
    (here / "latin1").write_bytes(b"caf\ncaf\xe9\n")
    (here / "three").write_text("a\tb\na\tb\tc\n")
    before = sorted(here.iterdir())
    output = [] if "--output" in arguments else ["--output", "out"]
    assert dedupe(*arguments, *output) == 1
    error = capsys.readouterr().err.strip()
    assert message in error and "\n" not in error
    assert sorted(here.iterdir()) == before


SAME_FILES = [
    ["--moses", "a", "b", "--output", "s/o", "link/o"],
    ["a", "--output", "s/../y", "--removed", "y"],
    ["a", "--output", "out", "--removed", "a.link", "--overwrite"],
    ["link/../a", "--output", "a.link", "--overwrite"],
]


@pytest.mark.parametrize("arguments", SAME_FILES, ids=" ".join)
def test_outputs_are_different_files_also_through_links(here, capsys, arguments):
    for name in ("a", "b"):
        (here / name).write_text("x\nx\n")
    (here / "s").mkdir()
    (here / "link").symlink_to("s")
    (here / "a.link").symlink_to("a")
    before = sorted(here.rglob("*"))
    assert dedupe(*arguments) == 1
    error = capsys.readouterr().err.strip()
    assert "are the same file; give them different names" in error and "\n" not in error
    assert sorted(here.rglob("*")) == before and (here / "a").read_text() == "x\nx\n"
