"""`st-paragram mix` from texts to a list that `prepare` reads: what is found, resumed and refused."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import yaml
from support.data import make_pairs

from st_paragram.cli.main import main
from st_paragram.core.pair_store import PairStore
from st_paragram.mixing.trainings import Trained, Trainings
from st_paragram.tools.corpora.mixture import read_mixture

QUICK = ["--vocab-size", "120", "--vocab-threads", "1", "--no-checks", "--seeds", "2"]
TEXTS = ["one.tsv", "two.tsv", "noise.tsv", "--lang", "es"]


def write(path, pairs):
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two texts, and one of shuffled pairs."""
    pairs = make_pairs(1200, repeat_every=10**9)
    write(tmp_path / "one.tsv", pairs[:400])
    write(tmp_path / "two.tsv", pairs[400:800])
    noise = pairs[:800]
    random.Random(1).shuffle(noise)
    write(tmp_path / "noise.tsv", [(a, b) for (a, _), (_, b) in zip(pairs[:800], noise, strict=True)])
    write(tmp_path / "dev.tsv", pairs[1000:])
    (tmp_path / "graded.tsv").write_text("".join(f"{n % 6}\t{a}\t{b}\n" for n, (a, b) in enumerate(pairs[800:900])))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def calls(monkeypatch):
    """Trainings that only count: a model loses 3 points by shuffled pairs, and gains 1 by each other text."""
    made = []

    def train(self, stores, rows, settings, path):
        made.append((sorted(map(len, rows)), settings.seed, settings.epochs))
        score = (
            50.0
            + len(stores)
            - 4
            * any(
                "noise" in sample.source.name
                for sample, store in zip(self.samples, self.stores, strict=True)
                if store in stores
            )
        )
        return Trained({"graded": {}, "translations": {"en-es": score}}, sum(map(len, rows)), 1.0)

    monkeypatch.setattr(Trainings, "_train", train)
    return made


def test_the_noise_is_found_and_prepare_leaves_it_out(folder, calls, capsys):
    assert main(["mix", *TEXTS, *QUICK, "--output", "mixture.yaml", "--json", "all.json"]) == 0
    out = capsys.readouterr().out
    assert "| noise | -3.00 | -3.00 |" in out and "of the mixture: 52.00 (+3.00)" in out
    assert "`st-paragram prepare --lang es --sources mixture.yaml --output FILE.h5`" in out
    assert [(each.name, each.weight) for each in read_mixture("mixture.yaml")] == [("one", 1), ("two", 1), ("noise", 0)]
    assert "# | noise | -3.00" in (folder / "mixture.yaml").read_text()
    found = json.loads((folder / "all.json").read_text())
    assert [each["weight"] for each in found["sources"]] == [1, 1, 0] and found["settings"]["seeds"] == 2
    assert not list(folder.glob(".*"))
    # all, without each of three, noise at 0.3; two seeds
    assert len(calls) == 10 and {seed for _, seed, _ in calls} == {0, 1}
    assert main(["prepare", "--lang", "es", "--sources", "mixture.yaml", "--output", "new.h5", *QUICK[:5]]) == 0
    assert len(PairStore("new.h5")) == 800


def test_all_trainings_take_as_many_steps(folder, calls):
    assert main(["mix", *TEXTS, *QUICK, "--output", "mixture.yaml", "--epochs", "3", "--held-out", "100"]) == 0
    steps = {round(sum(rows) * epochs) for rows, _, epochs in calls}
    assert len(calls) == 10 and max(steps) - min(steps) <= 1


def test_a_search_that_was_stopped_goes_on(folder, calls, monkeypatch, capsys):
    command = ["mix", *TEXTS, *QUICK, "--output", "mixture.yaml"]
    counted = Trainings._train

    def stopped(self, *arguments):
        if len(calls) == 5:
            raise KeyboardInterrupt
        return counted(self, *arguments)

    monkeypatch.setattr(Trainings, "_train", stopped)
    assert main(command) == 130
    assert "the same command resumes from there" in capsys.readouterr().err or (folder / ".mixture.yaml.work").is_dir()
    before = {path: path.stat().st_mtime_ns for path in (folder / ".mixture.yaml.work").rglob("*") if path.is_file()}
    assert (
        len([path for path in before if path.parent.name == "trainings"]) == 5
        and not (folder / "mixture.yaml").exists()
    )
    monkeypatch.setattr(Trainings, "_train", counted)
    assert main(command) == 0
    assert len(calls) == 10
    assert not (folder / ".mixture.yaml.work").exists()


def test_what_is_kept_is_not_done_again(folder, calls):
    command = ["mix", *TEXTS, *QUICK, "--output", "mixture.yaml", "--overwrite", "--work", "kept"]
    assert main(command) == 0 and len(calls) == 10
    first = (folder / "mixture.yaml").read_bytes()
    before = {path: path.stat().st_mtime_ns for path in (folder / "kept").rglob("*") if path.is_file()}
    left = folder / "kept" / "trainings" / ".0123456789abcdef.json.0123456789ab.part"
    left.mkdir()
    assert main(command) == 0 and len(calls) == 10
    assert not left.exists()
    assert {path: path.stat().st_mtime_ns for path in (folder / "kept").rglob("*") if path.is_file()} == before
    assert (folder / "mixture.yaml").read_bytes() == first
    assert main([*command, "--seeds", "3"]) == 0 and len(calls) == 15
    assert main([*command, "--dim", "20"]) == 0 and len(calls) == 25
    write(folder / "dev2.tsv", make_pairs(20, 5))
    assert main([*command, "--dev-bitext", "dev2.tsv"]) == 0 and len(calls) == 35


def test_a_damaged_result_is_refused_by_name(folder, calls, capsys):
    command = ["mix", *TEXTS, *QUICK, "--output", "mixture.yaml", "--overwrite", "--work", "kept"]
    assert main(command) == 0
    for path in (folder / "kept" / "trainings").glob("*.json"):
        path.write_text('{"figures": 3, "pairs":')
    capsys.readouterr()
    assert main(command) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "not the result of a training; remove it and start again" in error and "kept/trainings/" in error


def test_groups_languages_columns_and_temperatures(folder, calls, capsys):
    (folder / "faq.csv").write_text("es,en\n" + "".join(f"{b},{a}\n" for a, b in make_pairs(60, 3)))
    entries = {
        "one": {"path": "one.tsv", "languages": "en-es", "group": "clean"},
        "two": {"path": "two.tsv", "languages": "en-de", "group": "clean"},
        "faq": {"path": "faq.csv", "languages": "es-en", "columns": ["es", "en"], "cap": 50},
        "noise": {"path": "noise.tsv", "languages": "en-es", "weight": 0.5},
    }
    (folder / "texts.yaml").write_text(yaml.safe_dump({"sources": entries}, sort_keys=False))
    command = [
        "mix",
        "--sources",
        "texts.yaml",
        *QUICK,
        "--output",
        "m.yaml",
        "--temperatures",
        "2",
        "--held-out",
        "40",
    ]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "| clean |" in out and "temperature: 1: " in out and "--lang de-es" in out
    # all, without each of three groups, noise at 0.3, the temperature; two seeds
    assert len(calls) == 12
    made = {each.name: each for each in read_mixture("m.yaml")}
    assert made["one"].group == "clean" and made["faq"].source.columns == ("es", "en") and made["faq"].source.cap == 50
    assert made["noise"].weight == 0


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["one.tsv", "two.tsv"], "no language for one.tsv; add --lang"),
        (["one.tsv", "--lang", "es"], "1 sources; give at least two to compare"),
        (["one.tsv", "none.tsv", "--lang", "es"], "none.tsv: no such file"),
        (["one.tsv", "one.tsv", "--lang", "es"], "two sources are named one.en-es"),
        ([*TEXTS, "--seeds", "1"], "seeds is 1"),
        ([*TEXTS, "--held-out", "0"], "give --dev or --dev-bitext"),
        ([*TEXTS, "--temperatures", "0.5"], "temperatures has 0.5; give numbers of at least 1"),
        ([*TEXTS, "--dev", "none.tsv"], "none.tsv: no such file of graded pairs"),
        ([*TEXTS, "--dev", "dev.tsv"], "dev.tsv: row 1: expected `grade TAB sentence TAB sentence`"),
        ([*TEXTS, "--dev-bitext", "de-fr:dev.tsv"], "columns de-fr, but en-es is expected"),
        ([*TEXTS, "--sources", "none.yaml"], "none.yaml: not readable as YAML"),
        (["--sources", "none.yaml", "--columns", "a", "b"], "--columns is given, and no text as an argument"),
        ([*TEXTS, "--json", "one.tsv"], "one.tsv exists; choose another name or give --overwrite"),
    ],
)
def test_what_is_refused(folder, capsys, command, message):
    command = ["mix", *command, "--output", "mixture.yaml", "--no-checks"]
    assert main(command) == 1
    error = capsys.readouterr().err.strip().splitlines()
    assert message in error[-1] and len(error) == 1
    assert not list(folder.glob(".*"))


def test_a_text_that_is_too_small_is_named(folder, capsys):
    write(folder / "small.tsv", [("only one", "solo una")])
    assert main(["mix", "small.tsv", *TEXTS, *QUICK, "--output", "mixture.yaml"]) == 1
    assert "small.tsv: 1 different rows with two texts, at least 2 needed" in capsys.readouterr().err
    write(folder / "short.tsv", [("a", "b"), ("c", "d"), ("e", "f")])
    strict = ["--min-length", "3", "--output", "mixture.yaml"]
    assert main(["mix", "one.tsv", "short.tsv", "--lang", "es", *QUICK, *strict]) == 1
    assert "mix: short: " in capsys.readouterr().err


def test_a_real_training_is_scored(folder):
    command = ["mix", "one.tsv", "two.tsv", "--lang", "es", *QUICK, "--dim", "8", "--epochs", "0.1"]
    assert main([*command, "--dev", "graded.tsv", "--held-out", "20", "--json", "a.json", "--output", "a.yaml"]) == 0
    found = json.loads((folder / "a.json").read_text())
    one, other = (each["figures"] for each in found["all"])
    assert one != other and set(one["graded"]) == {"graded"} and set(one["translations"]) == {"en-es"}
    assert np.isfinite(found["standard_error"])
    assert found["all"][0]["score"] == pytest.approx((one["graded"]["graded"] + one["translations"]["en-es"]) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["leave-out", "add"])
def test_shuffled_pairs_are_found_harmful(folder, method):
    options = ["--dim", "32", "--epochs", "10", "--dev-bitext", "dev.tsv", "--method", method]
    assert main(["mix", *TEXTS, *QUICK, *options, "--output", "mixture.yaml"]) == 0
    assert {each.name: each.weight for each in read_mixture("mixture.yaml")} == {"one": 1, "two": 1, "noise": 0}
