import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sentence_transformers import SentenceTransformer
from support.data import make_pairs

import st_paragram
from st_paragram.cli.main import main
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
]

BGT = """\
dim: 16
ffn_dim: 16
heads: 2
latent_dim: 8
encoder_layers: 1
decoder_layers: 1
batch_tokens: 2000
min_pieces: 0
candidates: 20
epochs: 1
"""
MUSE = """\
architecture: transformer
layers: 1
heads: 2
ffn_dim: 16
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in make_pairs(1100)), encoding="utf-8"
    )
    return tmp_path


def recipe(name, *arguments):
    """Run a recipe as a user would, in this process; return its exit status."""
    sys.argv = [name, *map(str, arguments)]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RECIPES / f"{name}.py"), run_name="__main__")
    return ended.value.code


def weights(folder):
    return Path(folder, "model.safetensors").read_bytes()


def test_train_bitext_from_text(folder, capsys):
    arguments = ["--lang", "es", "--data", "pairs.tsv", "--vocab-size", 200, *QUICK]
    assert recipe("train_bitext", *arguments) == 0
    assert "model in p-sp-es" in capsys.readouterr().out
    assert SentenceTransformer("p-sp-es", device="cpu").encode(["ba ce"]).shape == (1, 8)
    card = Path("p-sp-es/README.md").read_text()
    for text in (
        "pairs.tsv: 1",
        "| dim | 8 |",
        "| built-in-en-es (",
        "| held-out (",
        "after training",
    ):
        assert text in card
    assert not list(folder.glob("p-sp-es.*"))

    assert recipe("train_bitext", *arguments) == 1
    assert "p-sp-es exists; choose another name or give --overwrite" in capsys.readouterr().err

    assert main(["train", "bitext", *map(str, arguments), "--output", "command"]) == 0
    assert weights("p-sp-es") == weights("command")


@pytest.mark.parametrize("config", ["paraphrase", "paper_paraphrase"])
def test_train_paraphrase_gives_the_weights_of_the_command(folder, config):
    arguments = ["--data", "pairs.tsv", "--vocab-size", "200", *QUICK, "--config", config]
    assert recipe("train_paraphrase", *arguments) == 0
    assert main(["train", "paraphrase", *arguments, "--output", "command"]) == 0
    assert weights("p-sp-en") == weights("command")


def test_without_data_the_built_in_bitext_serves_with_a_warning(folder, monkeypatch, caplog):
    monkeypatch.setattr(training_data, "BUILT_IN_PAIRS", 300)
    assert recipe("train_paraphrase", *QUICK) == 0
    assert sum("built-in bitext: a demonstration" in message for message in caplog.messages) == 1
    assert st_paragram.load("p-sp-en").encode(["the woman"]).shape == (1, 8)
    assert main(["train", "paraphrase", *QUICK, "--output", "command"]) == 0
    assert weights("p-sp-en") == weights("command")


def test_train_bgt(folder, capsys):
    Path("tiny.yaml").write_text(BGT)
    arguments = ["--lang", "es", "--data", "pairs.tsv", "--config", "tiny.yaml"]
    assert recipe("train_bgt", *arguments, "--objective", "bilingual-trans") == 0
    assert "model in bilingual-trans-es" in capsys.readouterr().out
    command = ["train", "bgt", *arguments, "--objective", "bilingual-trans", "--output", "command"]
    assert main(command) == 0
    assert weights("bilingual-trans-es") == weights("command")


def test_train_muse(folder, capsys):
    rows = Path("pairs.tsv").read_text().splitlines(keepends=True)[:100]
    Path("texts").mkdir()
    Path("texts/en-es.tsv").write_text("".join(rows))
    Path("qa").mkdir()
    Path("qa/en.tsv").write_text("".join(f"who is {a}?\t{b}\t{a}\n" for a, b in make_pairs(40)))
    Path("tiny.yaml").write_text(MUSE)
    arguments = ["--langs", "es", "--bitext", "texts", "--qa", "qa", "--config", "tiny.yaml"]
    arguments += ["--dim", "8", "--batch-size", "8", "--steps", "2"]
    assert recipe("train_muse", *arguments) == 0
    assert "model in muse-transformer" in capsys.readouterr().out
    assert main(["train", "muse", *arguments, "--output", "command"]) == 0
    assert weights("muse-transformer") == weights("command")


def test_mine_bitext(folder, capsys):
    pairs = make_pairs(60)
    Path("a.en").write_text("".join(f"{a}\n" for a, _ in pairs), encoding="utf-8")
    Path("a.es").write_text("".join(f"{b}\n" for _, b in pairs), encoding="utf-8")
    arguments = [
        "--source",
        "a.en",
        "--target",
        "a.es",
        "--model",
        "p-sp-mini",
        "--threshold",
        "-1",
    ]
    assert recipe("mine_bitext", *arguments, "--output", "pairs.tsv") == 1
    assert "pairs.tsv exists" in capsys.readouterr().err
    assert recipe("mine_bitext", *arguments, "--output", "mined.tsv") == 0
    assert main(["mine", *arguments, "--output", "command.tsv"]) == 0
    assert Path("mined.tsv").read_bytes() == Path("command.tsv").read_bytes()


@pytest.mark.slow
def test_mine_many_machines(folder, capsys):
    sides = zip(*make_pairs(60), strict=True)
    for name, texts in zip(("en", "es"), sides, strict=True):
        Path(name).mkdir()
        for part in range(2):
            table = pa.table({"text": texts[part::2]})
            pq.write_table(table, f"{name}/{part}.parquet")
        Path(f"a.{name}").write_text("\n".join(texts) + "\n", encoding="utf-8")
    arguments = ["--threshold", "-1", "--source", "en", "--target", "es", "--folder", "mining"]
    for _ in range(2):  # the second time, all tasks are complete
        assert recipe("mine_many_machines", *arguments, "--tasks", "2", "--workers", "1") == 0
    assert recipe("mine_many_machines", *arguments, "--tasks", "3") == 1  # other options
    os.utime("en/0.parquet", (0, 0))
    os.utime("en/1.parquet", (0, 0))
    assert recipe("mine_many_machines", *arguments, "--tasks", "2") == 1  # other texts
    assert "made with source files" in capsys.readouterr().err
    command = ["mine", *arguments[:2], "--source", "a.en", "--target", "a.es"]
    assert main([*command, "--model", "p-sp-mini", "--output", "command.tsv"]) == 0
    mined = [path.read_text(encoding="utf-8") for path in sorted(Path("mining/mined").iterdir())]
    pairs = [row.partition("\t")[2] for row in "".join(mined).splitlines()]
    expected = Path("command.tsv").read_text(encoding="utf-8").splitlines()
    assert len(mined) == 1
    assert sorted(pairs) == sorted(row.partition("\t")[2] for row in expected)


@pytest.mark.parametrize(
    "name",
    ["train_bitext", "train_paraphrase", "train_sp", "train_bgt", "train_muse", "mine_bitext"],
)
def test_help(name, capsys):
    assert recipe(name, "--help") == 0
    assert "--output" in capsys.readouterr().out


@pytest.mark.slow
def test_ctrl_c_and_resume_give_the_same_model(folder, capsys, tmp_path_factory):
    arguments = ["--lang", "es", "--data", "pairs.tsv", "--vocab-size", "200", *QUICK]
    arguments += ["--epochs", "12"]
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
    assert weights("whole") == weights("p-sp-es")


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
