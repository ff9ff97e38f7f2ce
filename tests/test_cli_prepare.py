"""The command `st-paragram prepare`, run in this process."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from st_paragram.cli import prepare
from st_paragram.data.pair_store import PairStore
from st_paragram.errors import SettingsError, StoreError


def text(path: Path, count: int = 40) -> str:
    rows = (f"The number {i} is here\tEl número {i} está aquí\n" for i in range(count))
    path.write_text("".join(rows), encoding="utf-8", newline="\n")
    return str(path)


def command(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    prepare.add_parser(parser.add_subparsers(dest="command"))
    return prepare.run(parser.parse_args(["prepare", "--vocab-size", "80", *map(str, arguments)]))


def test_a_store_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new" / "en-es.h5"
    moses = [tmp_path / "m.en", tmp_path / "m.es"]
    moses[0].write_text("one more row\ntwo\n")
    moses[1].write_text("una fila más\ndos\n", encoding="utf-8")
    texts = [
        "--text",
        text(tmp_path / "a.tsv"),
        "--text",
        f"es-en:{text(tmp_path / 'b.tsv', 3)}",
        "--moses",
        *moses,
    ]
    assert command("--lang", "es", "--output", output, *texts) == 0
    store = PairStore(output)
    assert (store.languages, len(store), store.lower_case, store.max_length) == (("en", "es"), 44, True, 100)
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].split()[:2] == ["rows", "kept"]
    assert [line.split()[:2] for line in lines[1:5]] == [["40", "40"], ["3", "3"], ["2", "1"], ["45", "44"]]
    assert lines[-2] == f"{output}: 44 pairs"


def test_english_paraphrases_mix_into_bitext(tmp_path: Path) -> None:
    paraphrases = tmp_path / "p.tsv"
    paraphrases.write_text("they went home early\tthey left for home early\n")
    bitext = text(tmp_path / "a.tsv", 9)
    command("--lang", "es", "--text", bitext, "--text", f"en-en:{paraphrases}", "--output", tmp_path / "m.h5")
    store = PairStore(tmp_path / "m.h5")
    assert len(store) == 10 and "they left for home early" in store.texts("b", np.arange(10))
    with pytest.raises(SettingsError, match="de-de"):
        command("--lang", "es", "--text", f"de-de:{paraphrases}", "--output", tmp_path / "n.h5")


def test_options_reach_the_settings(tmp_path: Path) -> None:
    output = tmp_path / "s.h5"
    options = "--keep-case --length-on english --min-length 2 --max-length 90 --max-characters 150 --max-pieces 50"
    more = "--seed 7 --sample-pairs 30 --character-coverage 0.99 --drop-invalid"
    command(
        "--lang",
        "en",
        "--text",
        text(tmp_path / "a.tsv"),
        "--output",
        output,
        *options.split(),
        *more.split(),
    )
    settings = PairStore(output).settings
    expected = {"lower_case": False, "length_on": "english", "min_length": 2, "max_length": 90}
    expected |= {"max_characters": 150, "max_pieces": 50, "seed": 7, "sample_pairs": 30, "vocab_size": 80}
    expected |= {
        "character_coverage": 0.99,
        "drop_invalid": True,
        "segmentation": "none",
        "languages": ["en", "en"],
    }
    assert {name: settings[name] for name in expected} == expected


def test_a_vocabulary_file(tmp_path: Path) -> None:
    text(tmp_path / "a.tsv")
    command("--lang", "es", "--text", tmp_path / "a.tsv", "--output", tmp_path / "s.h5")
    proto = PairStore(tmp_path / "s.h5").vocabulary().model_proto
    (tmp_path / "v.model").write_bytes(proto)
    arguments = ["--lang", "es", "--text", tmp_path / "a.tsv", "--output", tmp_path / "t.h5", "--vocab"]
    command(*arguments, tmp_path / "v.model")
    assert PairStore(tmp_path / "t.h5").vocabulary().model_proto == proto
    with pytest.raises(SettingsError, match=r"none\.model: cannot be read"):
        command(*arguments, tmp_path / "none.model", "--overwrite")
    with pytest.raises(SettingsError, match="not a sentencepiece model"):
        command(*arguments, tmp_path / "a.tsv", "--overwrite")


def test_refusals(tmp_path: Path) -> None:
    path = text(tmp_path / "a.tsv")
    command("--lang", "es", "--text", path, "--output", tmp_path / "s.h5")
    with pytest.raises(StoreError, match="exists already"):
        command("--lang", "es", "--text", path, "--output", tmp_path / "s.h5")
    command("--lang", "es", "--text", path, "--output", tmp_path / "s.h5", "--overwrite")
    with pytest.raises(SettingsError, match="no text given"):
        command("--lang", "es", "--output", tmp_path / "t.h5")
    with pytest.raises(SettingsError, match="columns en-de"):
        command("--lang", "es", "--text", f"en-de:{path}", "--output", tmp_path / "t.h5")
