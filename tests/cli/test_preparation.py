"""`st-paragram prepare`, `bitext` and `pivot`: their options, and the store and the table that they
make.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from st_paragram.cli.main import main, parse
from st_paragram.cli.store_options import cleaning_from
from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import held_out_pairs
from st_paragram.errors import SettingsError
from st_paragram.tools.cleaning.config import default_cleaning, only_length


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"The number {i} is here\tEl número {i} está aquí\n" for i in range(40)]
    Path("a.tsv").write_text("".join(rows), encoding="utf-8", newline="\n")
    Path("b.tsv").write_text("".join(rows[:3]), encoding="utf-8", newline="\n")
    return tmp_path


def command(options, *more):
    return main(["prepare", "--vocab-size", "80", *options.split(), *map(str, more)])


def test_filters_follow_the_lengths_or_a_list():
    def filters(words, otherwise=None):
        return cleaning_from(parse(["bitext", "--lang", "es", *words.split()]), otherwise)

    assert filters("") == only_length()
    assert filters("", "default") == filters("--cleaning default") == default_cleaning()
    assert filters("--min-length 5 --length-on english", "default") == only_length(
        5, length_on="english"
    )
    with pytest.raises(
        SettingsError,
        match="--max-length cannot be combined with --cleaning paper; set the lengths",
    ):
        filters("--max-length 5 --cleaning paper")


def test_a_store_and_a_table(capsys):
    Path("m.en").write_text("one more row\ntwo\n")
    Path("m.es").write_text("una fila más\ndos\n", encoding="utf-8")
    Path("p.tsv").write_text("they went home early\tthey left for home early\n")
    texts = "--text a.tsv --text es-en:b.tsv --moses m.en m.es --text en-en:p.tsv"
    assert command(f"--lang es --output new/en-es.h5 {texts}") == 0
    store = PairStore("new/en-es.h5")
    assert (store.languages, len(store), store.max_length) == (("en", "es"), 45, 100)
    assert store.tokenizer().options["lower_case"] and "they left for home early" in store.texts(
        "b", np.arange(45)
    )
    lines = capsys.readouterr().out.split("\n")
    assert lines[1].split()[1:] == ["40", "3", "1", "2", "46"]
    assert next(line for line in lines if line.startswith("- too short")).split()[3:] == [
        "0",
        "0",
        "0",
        "1",
        "1",
    ]
    assert next(line for line in lines if line.startswith("stored")).split()[1:] == [
        "40",
        "3",
        "1",
        "1",
        "45",
    ]
    assert lines[-2] == "new/en-es.h5: 45 pairs"
    assert command("--lang es --text a.tsv --output new/en-es.h5") == 1
    assert "exists; choose another name or give --overwrite" in capsys.readouterr().err
    assert command("--lang es --text a.tsv --text de-de:p.tsv --output n.h5") == 1
    assert "de-de" in capsys.readouterr().err


def test_filters_by_name_file_and_rejects():
    with Path("a.tsv").open("a") as file:
        file.write(
            "The same words here\tThe same words here\nOne <b>bold</b> word\tUna en negrita\n"
        )
    Path("mine.yaml").write_text("- length\n- markup\n")
    for name, kept in (("default", 40), ("mine.yaml", 41), ("paper", 42)):
        command(f"--lang es --text a.tsv --cleaning {name} --rejects {kept} --output {kept}.h5")
        assert len(PairStore(f"{kept}.h5")) == kept
    assert Path("41/markup.tsv").read_text() == "One <b>bold</b> word\tUna en negrita\n"
    assert not list(Path("42").iterdir())


@pytest.mark.parametrize(
    "commanded",
    [
        "prepare --lang es --text pairs.tsv --output new.h5",
        "prepare --lang en --cleaning paranmt --text scored.tsv --output new.h5",
    ],
)
def test_suspicious_text_is_reported_and_the_store_is_the_same(commanded, caplog, capsys):
    rows, stores = [f"{other}\t{one}" for one, other in held_out_pairs("en", "es")], set()
    Path("pairs.tsv").write_text("\n".join(rows), encoding="utf-8")
    Path("scored.tsv").write_text("\n".join(f"{row}\t0.7" for row in rows), encoding="utf-8")
    for more, lines in ([], 1), (["--no-checks"], 0):
        caplog.clear()
        assert main([*commanded.split(), "--vocab-size", "60", "--overwrite", *more]) == 0
        assert (
            sum("Spanish" in line for line in caplog.messages if line.startswith("WARNING: "))
            == lines
        )
        assert "Spanish" not in capsys.readouterr().out
        stores.add(Path("new.h5").read_bytes())
    assert len(stores) == 1
