"""Commands give the same output for CSV, JSON lines and Parquet as for plain text, and write to
standard output.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from st_paragram.cli.main import main
from st_paragram.core.text.parallel import ReadCounts, TextSource, read_rows
from st_paragram.errors import TextError
from st_paragram.tools.embed_files import read_embeddings

TABLES = ("csv", "jsonl", "parquet")
EMBED, SCORE, MINE = "embed en.txt", "score t.tsv", "mine --source en.txt --target es.txt"


@pytest.fixture(autouse=True)
def folder(tmp_path, pairs, monkeypatch):
    """The same 60 pairs as plain texts and as tables; the current folder."""
    monkeypatch.chdir(tmp_path)
    rows = [(str(number), *pair) for number, pair in enumerate(pairs[:60])]
    names = ["id", "english", "spanish"]
    with Path("t.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    write(
        "t.jsonl",
        [json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in rows],
    )
    pq.write_table(
        pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)}), "t.parquet"
    )
    write("t.tsv", [f"{one}\t{other}" for _, one, other in rows])
    write("en.txt", [one for _, one, _ in rows])
    write("es.txt", [other for _, _, other in rows])
    return tmp_path


def write(name, lines):
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def run(command):
    return main([*command.split(), "--model", "p-sp-mini"])


def made(command):
    """The bytes of `new.npy` that a command makes."""
    assert run(f"{command} --overwrite --output new.npy") == 0
    return Path("new.npy").read_bytes()


def test_tables_give_what_plain_text_gives():
    embedded, scored, mined = made(EMBED), made(SCORE), made(MINE)
    for kind in TABLES:
        assert made(f"embed t.{kind} --columns english") == embedded
        assert made(f"score t.{kind} --columns english spanish") == scored
        assert made(f"mine --source t.{kind} --target t.csv --columns english spanish") == mined
    assert run("embed en.txt es.txt en.txt --shard-lines 25 --output plain") == 0
    columns = "--columns english spanish english"
    assert run(f"embed t.csv t.parquet t.jsonl {columns} --shard-lines 25 --output tables") == 0
    plain, tables = read_embeddings("plain"), read_embeddings("tables")
    np.testing.assert_array_equal(plain.rows(0, 180), tables.rows(0, 180))


def test_rows_that_are_dropped_are_counted():
    write(
        "bad.jsonl",
        [
            '{"a": "1", "b": "2"}',
            '{"a": null, "b": "2"}',
            '{"b": 2}',
            '{"a": "3\\u0000", "b": "4"}',
        ],
    )
    source, counts = TextSource(("bad.jsonl",), ("en", "es"), columns=("a", "b")), ReadCounts()
    assert list(read_rows(source, counts, drop_invalid=True)) == [("1", "2")]
    assert counts == ReadCounts(rows=4, wrong_columns=2, nul_rows=1)
    with pytest.raises(TextError, match=r"line 2 has no value in column 'a'.*--drop-invalid"):
        list(read_rows(source, drop_invalid=False))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("embed t.csv --output x.npy", "is a table (CSV); name its columns with --columns"),
        ("train bitext --lang es --data t.csv", "; name its columns with --columns"),
        (
            "embed en.txt --output x.csv",
            "x.csv: unknown extension .csv; name X.npy (a matrix), X.parquet",
        ),
        (
            "embed t.csv --columns a b --output x.npy",
            "2 columns for 1 text; name one column for all",
        ),
        (
            "mine --source t.csv --target t.csv --columns english spanish --ids --output x",
            "ids are read only from",
        ),
        (
            "train bitext --lang es --data built-in --columns a b",
            "but built-in is not a table; leave it out",
        ),
    ],
)
def test_what_is_refused(folder, command, said, capsys):
    assert main(command.split()) == 1
    assert said in capsys.readouterr().err.strip().split("\n")[-1] and not list(folder.glob("x*"))


def test_json_lines_of_embeddings(capfdbinary):
    made(f"{EMBED} --dim 8")
    capfdbinary.readouterr()
    assert run("embed t.csv --columns english --dim 8 --output -") == 0
    rows = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    lines = Path("en.txt").read_text(encoding="utf-8").splitlines()
    assert [(row["line"], row["text"]) for row in rows] == list(enumerate(lines, 1))
    np.testing.assert_array_equal(
        np.array([row["embedding"] for row in rows], np.float32), np.load("new.npy")
    )
    assert not Path("-").exists()


@pytest.mark.parametrize("command", [SCORE, f"{SCORE} --background self", MINE])
def test_scores_and_pairs_on_standard_output(folder, command, capfdbinary):
    wanted = made(command)
    capfdbinary.readouterr()
    assert run(f"{command} --output -") == 0
    out, err = capfdbinary.readouterr()
    assert out == wanted and b"standard output: " in err
    assert not Path("-").exists() and not [
        path for path in folder.iterdir() if path.name.startswith(".")
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes are of another kind")
@pytest.mark.parametrize(
    "command",
    [
        "align --source en.txt --target es.txt --output aligned.tsv --overwrite",
        "evaluate --translations t.tsv",
        "evaluate --graded grades.tsv",
        "search en.txt --queries es.txt -k 2 --output searched.tsv --overwrite",
    ],
)
def test_texts_may_be_pipes(folder, command, capfdbinary):
    pairs = zip(
        *(Path(name).read_text(encoding="utf-8").splitlines() for name in ("en.txt", "es.txt")),
        strict=True,
    )
    rows = ["\t".join(pair) for pair in pairs]
    write("t.tsv", rows)
    write("grades.tsv", [f"{number % 5}\t{row}" for number, row in enumerate(rows)])
    assert run(command) == 0
    wanted = [capfdbinary.readouterr().out, *(path.read_bytes() for path in folder.glob("*ed.tsv"))]
    texts = [
        word for word in command.split() if Path(word).is_file() and not word.endswith("ed.tsv")
    ]
    writers = []
    for text in texts:
        content = Path(text).read_bytes()
        Path(text).unlink()
        os.mkfifo(text)
        writers.append(Thread(target=Path(text).write_bytes, args=(content,), daemon=True))
        writers[-1].start()
    assert run(command) == 0
    assert [
        capfdbinary.readouterr().out,
        *(path.read_bytes() for path in folder.glob("*ed.tsv")),
    ] == wanted
    for writer in writers:
        writer.join()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are closed in another way")
def test_a_closed_pipe_ends_quietly():
    write("many.txt", [f"line {number}" for number in range(3000)])
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "st_paragram.cli.main",
        "embed",
        "p-sp-mini",
        "many.txt",
        "--output",
        "-",
    ]
    root = str(Path(main.__globals__["__file__"]).parents[2])
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    }
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, check=False, env=environment
    )
    os.close(writing)
    assert (
        done.returncode == 1
        and b"Traceback" not in done.stderr
        and b"BrokenPipe" not in done.stderr
    )


def test_whole_lines_of_a_tab_separated_file_are_read_with_a_warning(capsys):
    assert run("embed t.tsv --output whole.npy") == 0
    warning = "WARNING: t.tsv: lines with tabs are read whole; for one column, give --columns 1\n"
    assert warning in capsys.readouterr().err
    assert run("embed t.tsv --columns 1 --output first.npy") == 0
    assert run("embed en.txt --output en.npy") == 0
    assert "WARNING" not in capsys.readouterr().err
    assert Path("first.npy").read_bytes() == Path("en.npy").read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", ["--version", "cache"])
def test_a_full_standard_output_is_named(words):
    command = [sys.executable, "-m", "st_paragram.cli.main", words]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, text=True)
    name = "st-paragram" if words == "--version" else f"st-paragram {words}"
    wanted = f"{name}: standard output: No space left on device; free disk space\n"
    assert (done.returncode, done.stderr) == (1, wanted)


@pytest.mark.skipif(sys.platform == "win32", reason="shells close streams in another way")
@pytest.mark.parametrize("words", ["--version", "info"])
def test_a_closed_standard_output_is_like_an_empty_one(words):
    command = f'"{sys.executable}" -m st_paragram.cli.main {words} >&-'
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
