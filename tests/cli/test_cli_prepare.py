"""The command `st-paragram prepare`, run in this process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from st_paragram.cli import prepare
from st_paragram.cli.main import build_parser, main
from st_paragram.core.pair_store import PairStore
from st_paragram.core.sample import held_out_pairs
from st_paragram.errors import SettingsError, StoreError
from st_paragram.tools.cleaning.config import only_length


def text(path: Path, count: int = 40) -> str:
    rows = (f"The number {i} is here\tEl número {i} está aquí\n" for i in range(count))
    path.write_text("".join(rows), encoding="utf-8", newline="\n")
    return str(path)


def command(*arguments: object) -> int:
    return prepare.run(build_parser("prepare").parse_args(["prepare", "--vocab-size", "80", *map(str, arguments)]))


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
    assert (store.languages, len(store), store.max_length) == (("en", "es"), 44, 100)
    assert store.tokenizer().options["lower_case"] is True
    lines = capsys.readouterr().out.split("\n")
    assert [line.split()[1:] for line in lines[1:2]] == [["40", "3", "2", "45"]]
    assert next(line for line in lines if line.startswith("- too short")).split()[3:] == ["0", "0", "1", "1"]
    assert next(line for line in lines if line.startswith("stored")).split()[1:] == ["40", "3", "1", "44"]
    assert lines[-3].startswith("seconds: read ") and "encode" in lines[-3]
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
    lengths = {"length_on": "english", "min_length": 2, "max_length": 90, "max_characters": 150}
    expected = {"lower_case": False, "cleaning": only_length(**lengths).as_json()}
    expected |= {"max_pieces": 50, "seed": 7, "sample_pairs": 30, "vocab_size": 80}
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
    proto = PairStore(tmp_path / "s.h5").tokenizer().content
    (tmp_path / "v.model").write_bytes(proto)
    arguments = ["--lang", "es", "--text", tmp_path / "a.tsv", "--output", tmp_path / "t.h5", "--vocab"]
    command(*arguments, tmp_path / "v.model")
    assert PairStore(tmp_path / "t.h5").tokenizer().content == proto
    with pytest.raises(SettingsError, match=r"none\.model: cannot be read"):
        command(*arguments, tmp_path / "none.model", "--overwrite")
    with pytest.raises(SettingsError, match="not a sentencepiece model"):
        command(*arguments, tmp_path / "a.tsv", "--overwrite")


def test_refusals(tmp_path: Path) -> None:
    path = text(tmp_path / "a.tsv")
    command("--lang", "es", "--text", path, "--output", tmp_path / "s.h5")
    with pytest.raises(StoreError, match="exists; choose another name or give --overwrite"):
        command("--lang", "es", "--text", path, "--output", tmp_path / "s.h5")
    command("--lang", "es", "--text", path, "--output", tmp_path / "s.h5", "--overwrite")
    with pytest.raises(SettingsError, match="no text"):
        command("--lang", "es", "--output", tmp_path / "t.h5")
    with pytest.raises(SettingsError, match="columns en-de"):
        command("--lang", "es", "--text", f"en-de:{path}", "--output", tmp_path / "t.h5")
    with pytest.raises(SettingsError, match="--min-length cannot be combined with --cleaning default"):
        command("--lang", "es", "--text", path, "--cleaning", "default", "--min-length", 2, "--output", "t.h5")


def test_filters_by_name_file_and_rejects(tmp_path: Path) -> None:
    path = Path(text(tmp_path / "a.tsv"))
    path.write_text(
        path.read_text() + "The same words here\tThe same words here\n" + "One <b>bold</b> word\tUna en negrita\n"
    )
    (tmp_path / "mine.yaml").write_text("- length\n- markup\n")
    for name, kept in (("default", 40), (tmp_path / "mine.yaml", 41), ("paper", 42)):
        more = ["--cleaning", name, "--rejects", tmp_path / f"{kept}"]
        command("--lang", "es", "--text", path, "--output", tmp_path / f"{kept}.h5", *more)
        assert len(PairStore(tmp_path / f"{kept}.h5")) == kept
    assert (tmp_path / "41" / "markup.tsv").read_text() == "One <b>bold</b> word\tUna en negrita\n"
    assert [file.name for file in (tmp_path / "42").iterdir()] == []


def test_work_is_kept_where_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--lang", "es", "--text", text(tmp_path / "a.tsv"), "--output", tmp_path / "s.h5"]
    arguments += ["--work", tmp_path / "work"]
    for expected in ("seconds: read", "seconds: none, all was done before", "seconds: encode"):
        command(*arguments, *(["--force", "encode"] if expected.endswith("encode") else []))
        assert expected in capsys.readouterr().out
        arguments.append("--overwrite")
    assert (tmp_path / "work" / "read").is_dir()


def test_suspicious_text_is_reported_and_the_store_is_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "swapped.tsv"
    rows = (f"{other}\t{one}\n" for one, other in held_out_pairs("en", "es"))
    path.write_text("".join(rows), encoding="utf-8", newline="\n")
    arguments = ["--lang", "es", "--text", path, "--output"]
    for more, lines in (([], 1), (["--no-checks"], 0)):
        caplog.clear()
        command(*arguments, tmp_path / f"{lines}.h5", "--overwrite", *more)
        seen = [line for line in caplog.messages if line.startswith("WARNING: ")]
        assert len(seen) == lines and all(f"{path}: the columns look swapped: Spanish" in line for line in seen)
        assert "swapped:" not in capsys.readouterr().out
    stores = [(tmp_path / name).read_bytes() for name in ("0.h5", "1.h5")]
    assert stores[0] == stores[1]


@pytest.mark.parametrize(
    "commanded",
    [
        "bitext --no-download --lang es --text pairs.tsv",
        "prepare --lang en --cleaning paranmt --text scored.tsv --output new.h5",
    ],
)
def test_other_preparations_report_it_too(
    commanded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{other}\t{one}" for one, other in held_out_pairs("en", "es")]
    Path("pairs.tsv").write_text("\n".join(rows), encoding="utf-8")
    Path("scored.tsv").write_text("\n".join(f"{row}\t0.7" for row in rows), encoding="utf-8")
    for more, lines in ([], 1), (["--no-checks"], 0):
        caplog.clear()
        assert main([*commanded.split(), "--vocab-size", "60", "--overwrite", *more]) == 0
        assert sum("Spanish where English" in line for line in caplog.messages) == lines
