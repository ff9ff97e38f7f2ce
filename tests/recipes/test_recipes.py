import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from support.data import make_pairs

import st_paragram
from st_paragram.runs import training_data, tune
from st_paragram.runs.families import family_named

RECIPES = Path(__file__).parents[2] / "recipes"
QUICK = [
    "--dim",
    "8",
    "--epochs",
    "2",
    "--batch-size",
    "16",
    "--megabatch-size",
    "4",
    "--anneal-interval",
    "5",
    "--device",
    "cpu",
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in make_pairs(400)), encoding="utf-8"
    )
    return tmp_path


def recipe(name, *arguments):
    """Run a recipe as a user would, in this process; return its exit status."""
    sys.argv = [name, *map(str, arguments)]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RECIPES / f"{name}.py"), run_name="__main__")
    return ended.value.code


def test_train_bitext_from_text(folder, capsys):
    assert (
        recipe("train_bitext", "--lang", "es", "--data", "pairs.tsv", "--vocab-size", 200, *QUICK)
        == 0
    )
    out = capsys.readouterr().out
    assert "Pearson x 100" in out and "model in p-sp-es" in out
    assert SentenceTransformer("p-sp-es", device="cpu").encode(["ba ce"]).shape == (1, 8)
    card = Path("p-sp-es/README.md").read_text()
    assert all(
        text in card
        for text in ("pairs.tsv: 4", "| dim | 8 |", "| built-in-en-es (", "after training")
    )
    assert not list(folder.glob("p-sp-es.*"))

    assert recipe("train_bitext", "--lang", "es", "--data", "pairs.tsv", *QUICK) == 1
    assert "p-sp-es exists; choose another name or give --overwrite" in capsys.readouterr().err


def test_without_data_the_built_in_bitext_serves_with_a_warning(
    folder, monkeypatch, caplog, capsys
):
    monkeypatch.setattr(training_data, "BUILT_IN_PAIRS", 300)
    assert recipe("train_paraphrase", *QUICK) == 0
    assert sum("built-in bitext: a demonstration" in message for message in caplog.messages) == 1
    assert capsys.readouterr().out.endswith(
        "built-in bitext: a demonstration, not a usable model.\n"
    )
    assert st_paragram.load("p-sp-en").encode(["the woman"]).shape == (1, 8)


@pytest.mark.slow
def test_ctrl_c_and_resume_give_the_same_model(folder, capsys, tmp_path_factory):
    arguments = [
        "--lang",
        "es",
        "--data",
        "pairs.tsv",
        "--vocab-size",
        "200",
        *QUICK,
        "--epochs",
        "12",
    ]
    assert recipe("train_bitext", *arguments, "--output", "whole") == 0

    command = [sys.executable, str(RECIPES / "train_bitext.py"), *arguments]
    with (tmp_path_factory.mktemp("log") / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        while "step 200" not in (said := Path(log.name).read_text()) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        status, said = process.wait(), Path(log.name).read_text()
    assert status == 130 and "Traceback" not in said
    assert "p-sp-es.checkpoints; to continue, repeat the command with --resume\n" in said
    assert list(folder.glob("p-sp-es.checkpoints/checkpoint-*")) and not Path("p-sp-es").exists()

    assert recipe("train_bitext", *arguments) == 1
    assert "--resume" in capsys.readouterr().err.splitlines()[-1]
    assert recipe("train_bitext", *arguments, "--resume") == 0
    one, other = (
        load_file(f"{name}/model.safetensors")["embedding.weight"] for name in ("whole", "p-sp-es")
    )
    np.testing.assert_array_equal(one, other)


def test_configurations_are_valid_and_the_papers_is_the_papers():
    family = family_named("psp")
    for name in family.configs:
        family.read_settings(name, {})
    settings = family.read_settings("paper", {})
    assert (settings.dim, settings.margin, settings.learning_rate, settings.epochs) == (
        1024,
        0.4,
        1e-3,
        25,
    )
    assert (settings.batch_size, settings.anneal_interval, settings.megabatch_size) == (
        128,
        150,
        60,
    )
    assert (tune.TUNED_DROPOUT, tune.TUNED_MEGABATCH_SIZE) == ((0.0, 0.1, 0.3), (60, 100, 140))
