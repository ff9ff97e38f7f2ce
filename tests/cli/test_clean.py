"""`st-paragram clean`: files, standard input and output, and what is refused."""

from __future__ import annotations

import io
import os
import sys

import pytest

from st_paragram.cli.main import main
from st_paragram.core.text.translation_files import read_units

GOOD = "The house is old.\tLa casa es vieja.\n"
BAD = "One cat\tOne cat\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text(GOOD + BAD + GOOD)
    return tmp_path


def clean(*words: str) -> int:
    return main(["clean", *words])


def test_a_memory_is_cleaned(here, capsys):
    assert main(["score", "pairs.tsv", "--pair", "en", "es", "--output", "memory.tmx"]) == 0
    words = ["memory.tmx", "--lang", "es", "--output", "clean.tmx", "--rejects", "rejects.tsv"]
    assert clean(*words) == 0
    assert list(read_units("clean.tmx", ("en", "es"))) == [tuple(GOOD.rstrip().split("\t"))]
    assert '<prop type="score">' in (here / "clean.tmx").read_text()
    rejects = f"2\tidentical sides\t{BAD}3\tduplicate\t{GOOD}"
    assert (here / "rejects.tsv").read_text() == rejects
    message = capsys.readouterr().err
    counts = [line.split() for line in message.splitlines()]
    assert ["-", "identical", "sides", "1"] in counts and ["kept", "1"] in counts
    assert message.endswith("clean.tmx: 1 pair\n")
    assert clean(*words) == 1 and "clean.tmx exists" in capsys.readouterr().err
    assert clean(*words, "--overwrite") == 0


def test_pairs_come_from_standard_input_and_go_to_standard_output(here, monkeypatch, capsysbinary):
    text = io.TextIOWrapper(io.BytesIO((GOOD + BAD).encode()))
    monkeypatch.setattr(sys, "stdin", text)
    assert clean("-", "--pair", "en", "es", "--output", "-") == 0
    assert capsysbinary.readouterr().out == GOOD.encode()


def test_files_of_each_language_and_columns(here, capsys):
    (here / "a.en").write_text("The house is old.\nOne\n")
    (here / "a.es").write_text("La casa es vieja.\n\n")
    assert clean("--moses", "a.en", "a.es", "--lang", "es") == 0
    assert capsys.readouterr().out == GOOD
    (here / "a.csv").write_text('es,en\n"La casa es vieja.","The house is old."\n')
    assert clean("a.csv", "--columns", "en", "es", "--lang", "es") == 0
    assert capsys.readouterr().out == GOOD


def test_pairs_with_the_lowest_cosines_are_listed(here):
    words = "pairs.tsv --lang es --output clean.tsv --score --lowest lowest.tsv --count 1"
    assert clean(*words.split()) == 0
    score, row, first, second = (here / "lowest.tsv").read_text().rstrip().split("\t")
    assert 0.5 < float(score) < 1 and (row, f"{first}\t{second}\n") == ("1", GOOD)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pairs.tsv --lang es --output pairs.tsv --overwrite", "are the same file"),
        ("pairs.tsv --lang es --output new.tmx.gz", "cannot be written; name a file .tmx or .tsv"),
        ("--lang es --output new.tsv", "give one text"),
        ("pairs.tsv --moses a b --lang es", "give one text"),
        ("pairs.tsv --lang es --output new.tsv --lowest low.tsv", "need --score"),
        ("pairs.tsv --lang es --min-score 0.5", "need --score"),
        ("pairs.tsv --lang es --score --min-score 2", "min_score is 2.0"),
        ("pairs.tsv pairs.tsv --lang es", "give one text"),
        ("pairs.tsv --lang es --output new.tsv --cleaning none", "list of filters cannot be read"),
        ("no.tsv --lang es --output new.tsv", "no.tsv"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(here, capsys, words, message):
    before = sorted(path.name for path in here.iterdir())
    assert clean(*words.split()) == 1
    errors = capsys.readouterr().err.splitlines()
    assert message in errors[-1] and errors[-1].startswith("st-paragram clean: ")
    assert sorted(path.name for path in here.iterdir()) == before


def test_pipes_of_memories_and_codes_with_regions(here, capsys):
    os.mkfifo("pipe.tmx")
    assert clean("pipe.tmx", "--lang", "es", "--output", "new.tmx") == 1
    assert "pipe.tmx: is a pipe, but is read twice" in capsys.readouterr().err
    assert clean("pairs.tsv", "--lang", "es-419", "--output", "new.tmx") == 0
    assert clean("pairs.tsv", "--pair", "en", "es-419", "--output", "pair.tmx") == 0
    assert clean("en-es_419:pairs.tsv", "--lang", "es-419", "--output", "prefix.tsv") == 0
    assert main(["score", "pairs.tsv", "--pair", "en", "es-419", "--output", "scored.tmx"]) == 0
    for name in ("new.tmx", "pair.tmx", "scored.tmx"):
        assert '<tuv xml:lang="es-419">' in (here / name).read_text()


@pytest.mark.parametrize(
    "words", ["mine --source a.en --target a.es", "align --source a.en --target a.es"]
)
def test_other_commands_write_memories(here, capsys, words):
    (here / "a.en").write_text("The house is old.\nA black cat\n")
    (here / "a.es").write_text("La casa es vieja.\nUn gato negro\n")
    assert main([*words.split(), "--output", "memory.tmx"]) == 1
    assert "give --pair CODE CODE" in capsys.readouterr().err
    assert main([*words.split(), "--output", "memory.tmx", "--pair", "en", "es_mx"]) == 0
    units = sorted(read_units("memory.tmx", ("en", "es")))
    assert units == [("A black cat", "Un gato negro"), ("The house is old.", "La casa es vieja.")]
    assert main([*words.split(), "--output", "pairs", "--overwrite"]) == 0
    assert (here / "memory.tmx").read_text().count('<tuv xml:lang="es-MX">') == 2
    assert main(["score", "en-es:memory.tmx", "--output", "scored.tsv"]) == 0
    assert (here / "scored.tsv").read_text().count("\n") == 2


def test_ids_are_not_written_to_a_memory(here, capsys):
    words = "mine --source pairs.tsv --target pairs.tsv --ids --pair en es --output memory.tmx"
    assert main(words.split()) == 1
    assert "TMX has texts instead of ids" in capsys.readouterr().err
