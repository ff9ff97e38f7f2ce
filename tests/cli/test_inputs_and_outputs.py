"""Commands give the same output for CSV, JSON lines and Parquet as for plain text, and write to standard output."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from st_paragram.cli.main import main
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows, with_columns
from st_paragram.errors import SettingsError, TextError
from st_paragram.learning.training.training_data import choose_data
from st_paragram.tools.embed_files import read_embeddings
from st_paragram.tools.preparation.clean import identity
from st_paragram.tools.preparation.settings import PrepareSettings

TABLES = ("csv", "jsonl", "parquet")
MODEL = ["--model", "p-sp-mini"]


@pytest.fixture
def folder(tmp_path: Path, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same 60 pairs as plain texts and as tables; the current folder."""
    rows = [(str(number), *pair) for number, pair in enumerate(pairs[:60])]
    names = ["id", "english", "spanish"]
    with (tmp_path / "t.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    objects = [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows]
    write(tmp_path / "t.jsonl", objects)
    pq.write_table(pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)}), tmp_path / "t.parquet")
    write(tmp_path / "t.tsv", [f"{one}\t{other}" for _, one, other in rows])
    write(tmp_path / "en.txt", [one for _, one, _ in rows])
    write(tmp_path / "es.txt", [other for _, _, other in rows])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def made(*command: str) -> bytes:
    """The bytes of `new.npy` that a command makes."""
    assert main([*command, "--overwrite", "--output", "new.npy"]) == 0
    return Path("new.npy").read_bytes()


def refused(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    assert main([*command]) == 1
    said = capsys.readouterr().err.strip().split("\n")[-1]
    assert said.startswith(f"st-paragram {command[0]}: ")
    return said


def test_tables_give_what_plain_text_gives(folder: Path) -> None:
    embedded, scored = made("embed", "en.txt", *MODEL), made("score", "t.tsv", *MODEL)
    mined = made("mine", "--source", "en.txt", "--target", "es.txt", *MODEL)
    for kind in TABLES:
        assert made("embed", f"t.{kind}", "--columns", "english", *MODEL) == embedded
        assert made("score", f"t.{kind}", "--columns", "english", "spanish", *MODEL) == scored
        texts = ["--source", f"t.{kind}", "--target", "t.csv", "--columns", "english", "spanish"]
        assert made("mine", *texts, *MODEL) == mined


def test_folders_of_tables(folder: Path) -> None:
    shared = [*MODEL, "--shard-lines", "25", "--output"]
    assert main(["embed", "en.txt", "es.txt", "en.txt", *shared, "plain"]) == 0
    columns = ["--columns", "english", "spanish", "english"]
    assert main(["embed", "t.csv", "t.parquet", "t.jsonl", *columns, *shared, "tables"]) == 0
    plain, tables = read_embeddings("plain"), read_embeddings("tables")
    np.testing.assert_array_equal(plain.rows(0, 180), tables.rows(0, 180))


@pytest.mark.parametrize("kind", TABLES)
def test_rows_of_tables_are_those_of_plain_text(folder: Path, kind: str) -> None:
    plain = list(read_rows(TextSource(("t.tsv",), ("en", "es"))))
    source = TextSource((f"t.{kind}",), ("en", "es"), columns=("english", "spanish"))
    assert list(read_rows(source)) == plain
    swapped = TextSource((f"t.{kind}",), ("es", "en"), swapped=True, columns=("spanish", "english"))
    assert list(read_rows(swapped)) == plain
    assert str(choose_data("es", [f"t.{kind}"], columns=[["english", "spanish"]])).startswith(f"t.{kind}: text")
    with pytest.raises(TextError, match="column 'nope'"):
        choose_data("es", [f"t.{kind}"], columns=[["english", "nope"]])


def test_tables_and_plain_text_go_into_one_store(folder: Path) -> None:
    shared = ["prepare", "--lang", "es", "--vocab-size", "120", "--text", "t.csv", "--columns", "english", "spanish"]
    assert main([*shared, "--text", "t.tsv", "--columns", "1", "2", "--output", "two.h5"]) == 0


def test_work_for_other_columns_is_not_taken_for_this(folder: Path) -> None:
    plain = TextSource(("t.csv",), ("en", "es"))
    named = [plain, *with_columns([plain] * 2, [["english", "spanish"], ["spanish", "english"]])]
    assert len({identity([source], PrepareSettings(("en", "es"))) for source in named}) == 3


def test_rows_that_are_dropped_are_counted(folder: Path) -> None:
    (folder / "bad.jsonl").write_text(
        '{"a": "1", "b": "2"}\n{"a": null, "b": "2"}\n{"b": 2}\n{"a": "3\\u0000", "b": "4"}\n'
    )
    source, counts = TextSource(("bad.jsonl",), ("en", "es"), columns=("a", "b")), ReadCounts()
    assert list(read_rows(source, counts, drop_invalid=True)) == [("1", "2")]
    assert counts == ReadCounts(rows=4, wrong_columns=2, nul_rows=1)
    with pytest.raises(TextError, match=r"line 2 has no value in column 'a'.*--drop-invalid"):
        list(read_rows(source, drop_invalid=False))


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_a_table_given_as_plain_text_is_refused(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["score", name, *MODEL],
        ["prepare", "--lang", "es", "--text", name, "--output", "new.h5", "--drop-invalid"],
        ["train", "bitext", "--lang", "es", "--data", name],
    ):
        assert "; name its columns with --columns" in refused(capsys, *command)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("embed t.csv --output x.npy", "is a table (CSV); name its columns with --columns"),
        ("embed en.txt --output x.csv", "x.csv: unknown ending .csv; name X.npy (a matrix), X.parquet"),
        ("embed t.csv --columns a b --output x.npy", "2 columns for 1 text; name one column for all"),
        ("mine --source t.csv --target en.txt --output x", "name its columns with --columns"),
        (
            "mine --source t.csv --target t.csv --columns english spanish --ids --output x",
            "ids are read from plain text",
        ),
        (
            "prepare --lang es --text t.csv --text t.csv --text t.csv --columns a b --columns c d --output x",
            "columns a b and c d for 3 texts; give two",
        ),
        ("train bitext --lang es --data built-in --columns a b", "which is not a table; leave it out"),
    ],
)
def test_what_is_refused(folder: Path, command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refused(capsys, *command.split())
    assert not Path("x").exists() and not list(folder.glob("x.*"))


def test_columns_come_in_twos() -> None:
    with pytest.raises(SettingsError, match="columns a b c for 1 text; give two"):
        with_columns([TextSource(("a",), ("en", "es"))], [["a", "b", "c"]])


def test_json_lines_of_embeddings(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    made("embed", "en.txt", *MODEL, "--dim", "8")
    matrix = np.load("new.npy")
    assert main(["embed", "en.txt", *MODEL, "--dim", "8", "--output", "x.jsonl"]) == 0
    rows = [json.loads(line) for line in Path("x.jsonl").read_text(encoding="utf-8").splitlines()]
    lines = Path("en.txt").read_text(encoding="utf-8").splitlines()
    assert [(row["line"], row["text"]) for row in rows] == list(enumerate(lines, 1))
    np.testing.assert_array_equal(np.array([row["embedding"] for row in rows], np.float32), matrix)
    capfdbinary.readouterr()
    assert main(["embed", "t.csv", "--columns", "english", *MODEL, "--dim", "8", "--output", "-"]) == 0
    assert capfdbinary.readouterr().out == Path("x.jsonl").read_bytes()
    assert not Path("-").exists()


def test_scores_and_pairs_on_standard_output(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    mining = ["mine", "--source", "en.txt", "--target", "es.txt", *MODEL]
    for command in (["score", "t.tsv", *MODEL], ["score", "t.tsv", *MODEL, "--sort", "--background", "self"], mining):
        wanted = made(*command)
        capfdbinary.readouterr()
        assert main([*command, "--output", "-"]) == 0
        out, err = capfdbinary.readouterr()
        assert out == wanted and b"standard output: " in err
    assert main(["score", "t.tsv", *MODEL]) == 0
    assert not Path("-").exists() and not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_kept_work_serves_mining_to_standard_output(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    command = ["mine", "--source", "en.txt", "--target", "es.txt", *MODEL, "--work", "work", "--output", "-"]
    assert main(command) == 0
    first = capfdbinary.readouterr().out
    times = {path: path.stat().st_mtime_ns for path in Path("work").glob("vectors-*/*") if path.is_file()}
    assert times and main(command) == 0
    assert capfdbinary.readouterr().out == first
    assert times == {path: path.stat().st_mtime_ns for path in times}


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed in another way")
def test_a_closed_pipe_ends_quietly(folder: Path) -> None:
    write(folder / "many.txt", [f"line {number}" for number in range(3000)])
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "st_paragram.cli.main", "embed", "many.txt", *MODEL, "--output", "-"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, env=_environment())
    os.close(writing)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr and b"BrokenPipe" not in done.stderr


def _environment() -> dict[str, str]:
    root = str(Path(main.__globals__["__file__"]).parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
