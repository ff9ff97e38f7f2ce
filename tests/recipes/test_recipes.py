import os
import runpy
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from support import forked, user_process
from support.data import make_pairs

import st_paragram
from st_paragram.core.settings import read
from st_paragram.errors import SettingsError
from st_paragram.families.psp import tune
from st_paragram.learning.training import training_data
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.learning.training.training_data import preparation

RECIPES = Path(__file__).parents[2] / "recipes"
QUICK = "--dim 8 --epochs 2 --batch-size 16 --megabatch-size 4 --anneal-interval 5 --device cpu".split()  # noqa: SIM905


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in make_pairs(400)), encoding="utf-8")
    return tmp_path


def recipe(name, *arguments):
    """Run a recipe as a user would, in this process; return its exit status."""
    sys.argv = [name, *map(str, arguments)]
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RECIPES / f"{name}.py"), run_name="__main__")
    return ended.value.code


def test_train_bitext_from_text(folder, capsys):
    assert recipe("train_bitext", "--lang", "es", "--data", "pairs.tsv", "--vocab-size", 200, *QUICK) == 0
    out = capsys.readouterr().out
    assert "Pearson x 100" in out and "model in p-sp-es" in out
    assert SentenceTransformer("p-sp-es", device="cpu").encode(["ba ce"]).shape == (1, 8)
    card = Path("p-sp-es/README.md").read_text()
    for text in (
        "pairs.tsv: 4",
        "| dim | 8 |",
        "| megabatch_size | 4 |",
        "| built-in-en-es (",
        "after training",
        "pairs/s",
    ):
        assert text in card
    assert not list(folder.glob("p-sp-es.*"))

    assert recipe("train_bitext", "--lang", "es", "--data", "pairs.tsv", *QUICK) == 1
    assert "p-sp-es exists; choose another name or give --overwrite" in capsys.readouterr().err


def test_the_same_text_is_prepared_once(folder, monkeypatch):
    first = training_data.find_training_data("es", ["pairs.tsv"], preparation("es", 200))
    monkeypatch.setattr("st_paragram.tools.preparation.prepare.prepare", lambda *a, **k: 1 / 0)
    again = training_data.find_training_data("es", ["pairs.tsv"], preparation("es", 200))
    assert again.store.path == first.store.path
    with pytest.raises(ZeroDivisionError):
        training_data.find_training_data("es", ["pairs.tsv"], preparation("es", 100))


def test_a_store_under_data_is_found(folder, capsys):
    from st_paragram.cli.main import main

    prepare = ["prepare", "--lang", "es", "--text", "pairs.tsv", "--vocab-size", "200", "--output", "data/en-es.h5"]
    assert main(prepare) == 0
    assert "stored" in capsys.readouterr().out
    assert recipe("train_bitext", "--lang", "es", *QUICK) == 0
    assert "training on en-es.h5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments", "model", "advice"),
    [
        ("train_bitext", ["--lang", "de"], "p-sp-de", "st-paragram bitext --lang de"),
        ("train_paraphrase", [], "p-sp-en", "st-paragram prepare --lang en"),
    ],
)
def test_without_data_the_built_in_bitext_serves_with_a_warning(
    folder, monkeypatch, caplog, capsys, name, arguments, model, advice
):
    monkeypatch.setattr(training_data, "BUILT_IN_PAIRS", 300)
    assert recipe(name, *arguments, *QUICK) == 0
    warnings = [m for m in caplog.messages if "built-in bitext: a demonstration" in m and advice in m]
    assert len(warnings) == 1
    assert capsys.readouterr().out.endswith("built-in bitext: a demonstration, not a usable model.\n")
    loaded = st_paragram.load(model)
    assert loaded.encode(["the woman"]).shape == (1, 8)
    assert "| negatives | opposite |" in Path(model, "README.md").read_text()


def test_a_language_without_data_is_an_error(folder, capsys):
    assert recipe("train_bitext", "--lang", "fi", *QUICK) == 1
    err = capsys.readouterr().err.splitlines()[-1]
    assert "no built-in bitext for 'fi'" in err and "st-paragram prepare --lang fi" in err


def test_tuning_keeps_the_best_on_the_development_pairs(folder, monkeypatch, capsys):
    monkeypatch.setattr(tune, "TUNED_DROPOUT", (0.0, 0.5))
    monkeypatch.setattr(tune, "TUNED_MEGABATCH_SIZE", (1, 3))
    assert recipe("train_bitext", "--lang", "es", "--data", "pairs.tsv", "--vocab-size", 200, "--tune", *QUICK) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("dropout")]
    scores = [float(line.split()[-1]) for line in lines]
    assert len(lines) == 4 and scores == sorted(scores, reverse=True)
    dropout, size = lines[0].split()[1], lines[0].split()[3]
    card = Path("p-sp-es/README.md").read_text()
    assert f"| dropout | {dropout} |" in card and f"| megabatch_size | {size} |" in card


@pytest.mark.slow
def test_ctrl_c_and_resume_give_the_same_model(folder, capsys, tmp_path_factory):
    arguments = ["--lang", "es", "--data", "pairs.tsv", "--vocab-size", "200", *QUICK, "--epochs", "12"]
    assert recipe("train_bitext", *arguments, "--output", "whole") == 0

    log = tmp_path_factory.mktemp("log")
    process = forked.start(user_process.run_script, RECIPES / "train_bitext.py", arguments, folder, folder=log)
    while "step 200" not in forked.said(process, log) and process.is_alive():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    process.join()
    assert process.exitcode == 130 and "Traceback" not in forked.said(process, log)
    assert "p-sp-es.checkpoints; continue with the same command and --resume\n" in forked.said(process, log)
    assert list(folder.glob("p-sp-es.checkpoints/checkpoint-*")) and not Path("p-sp-es").exists()

    assert recipe("train_bitext", *arguments) == 1
    assert "--resume" in capsys.readouterr().err.splitlines()[-1]
    assert recipe("train_bitext", *arguments, "--resume") == 0
    one, other = (load_file(f"{name}/model.safetensors")["embedding.weight"] for name in ("whole", "p-sp-es"))
    np.testing.assert_array_equal(one, other)


def test_resuming_wants_the_same_settings_and_data_and_a_whole_checkpoint(folder, capsys, monkeypatch):
    from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer

    data = ["--lang", "es", "--data", "pairs.tsv", "--vocab-size", 200, *QUICK]
    save = MegaBatchTrainer._save_checkpoint

    def stop_after_saving(self, *args):
        save(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(MegaBatchTrainer, "_save_checkpoint", stop_after_saving)
    assert recipe("train_bitext", *data) == 130
    monkeypatch.setattr(MegaBatchTrainer, "_save_checkpoint", save)
    (checkpoint,) = Path("p-sp-es.checkpoints").glob("checkpoint-*")
    assert recipe("train_bitext", *data, "--resume", "--margin", 0.5) == 1
    assert "begun with margin 0.6, not 0.5" in capsys.readouterr().err
    assert recipe("train_bitext", *data[:4], "--vocab-size", 150, *QUICK, "--resume") == 1
    assert "begun on other data" in capsys.readouterr().err
    (checkpoint / "mega_batch.npz").rename("away")
    assert recipe("train_bitext", *data, "--resume") == 1
    assert "checkpoint to resume from" in capsys.readouterr().err
    Path("away").rename(checkpoint / "mega_batch.npz")
    assert recipe("train_bitext", *data, "--resume") == 0


def test_resuming_with_a_store_of_other_pairs_and_with_damaged_checkpoints(folder, capsys, monkeypatch, vocabulary):
    """The other store has as many pairs and bytes, and states the same preparation."""
    from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer
    from support.data import write_store

    data = ["--lang", "xx", "--data", "x.h5", "--dev", "dev.tsv", *QUICK]
    Path("dev.tsv").write_text("1\tba ce\tdi fo\n4\tba ce\tba ce\n3\tba\tba ce\n")
    pairs = make_pairs(60)
    write_store("x.h5", pairs, vocabulary)
    save, saved = MegaBatchTrainer._save_checkpoint, []

    def stop_after_saving_twice(self, *args):
        self.args.save_total_limit = 2
        save(self, *args)
        saved.append(self.state.global_step)
        if len(saved) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(MegaBatchTrainer, "_save_checkpoint", stop_after_saving_twice)
    assert recipe("train_bitext", *data) == 130
    monkeypatch.setattr(MegaBatchTrainer, "_save_checkpoint", save)
    Path("x.h5").rename("kept.h5")
    write_store("x.h5", pairs[::-1], vocabulary)
    assert Path("x.h5").stat().st_size == Path("kept.h5").stat().st_size
    assert recipe("train_bitext", *data, "--resume") == 1
    assert "begun on other data than x.h5; resume with the same data" in capsys.readouterr().err
    Path("kept.h5").replace("x.h5")
    older, newest = (Path(f"p-sp-xx.checkpoints/checkpoint-{step}") for step in saved)
    whole = (older / "optimizer.pt").read_bytes()
    for checkpoint in (older, newest):
        (checkpoint / "optimizer.pt").write_bytes(b"")
    assert recipe("train_bitext", *data, "--resume") == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert "no complete checkpoint to resume from; remove this folder, and train without --resume" in last
    (older / "optimizer.pt").write_bytes(whole)
    assert recipe("train_bitext", *data, "--resume") == 0


def test_finished_points_of_a_grid_are_not_trained_again(folder, monkeypatch, capsys):
    monkeypatch.setattr(tune, "TUNED_DROPOUT", (0.0,))
    monkeypatch.setattr(tune, "TUNED_MEGABATCH_SIZE", (1, 2))
    trained = []
    train = tune.train

    def counted(store, settings, *args):
        trained.append(settings.megabatch_size)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return train(store, settings, *args)

    monkeypatch.setattr(tune, "train", counted)
    grid = ["--lang", "es", "--data", "pairs.tsv", "--vocab-size", 200, "--tune", *QUICK]
    assert recipe("train_bitext", *grid) == 130
    assert recipe("train_bitext", *grid, "--resume") == 0
    assert trained == [1, 2, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--dim", 4], "begun with dim 8, not 4; resume with the same settings"),
        (["--data", "others.tsv"], "begun on other data"),
    ],
)
def test_finished_points_of_other_settings_or_data_are_refused(folder, monkeypatch, capsys, change, message):
    monkeypatch.setattr(tune, "TUNED_DROPOUT", (0.0,))
    monkeypatch.setattr(tune, "TUNED_MEGABATCH_SIZE", (1, 2))
    (folder / "others.tsv").write_text((folder / "pairs.tsv").read_text().replace("ba", "du"))
    train, trained = tune.train, []

    def stopped(*args):
        trained.append(1)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return train(*args)

    monkeypatch.setattr(tune, "train", stopped)
    grid = ["--lang", "es", "--vocab-size", 200, "--tune", *QUICK]
    assert recipe("train_bitext", *grid, "--data", "pairs.tsv") == 130
    data = [] if "--data" in change else ["--data", "pairs.tsv"]
    assert recipe("train_bitext", *grid, *data, *change, "--resume") == 1
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_store_of_another_language_is_refused(folder, capsys):
    from st_paragram.cli.main import main

    main(["prepare", "--lang", "es", "--text", "pairs.tsv", "--vocab-size", "200", "--output", "x.h5"])
    assert recipe("train_bitext", "--lang", "de", "--data", "x.h5", *QUICK) == 1
    assert "pairs of en and es, not of de" in capsys.readouterr().err
    assert recipe("train_bitext", "--lang", "../es", *QUICK) == 1
    assert "unknown language code" in capsys.readouterr().err


def test_one_pair_leaves_nothing_behind(folder, vocabulary, capsys):
    from support.data import write_store

    write_store("one.h5", make_pairs(1), vocabulary)
    assert recipe("train_bitext", "--lang", "xx", "--data", "one.h5", *QUICK) == 1
    assert "1 pair; a negative needs at least two" in capsys.readouterr().err
    assert not list(folder.glob("p-sp-*"))


def test_resume_without_a_checkpoint_is_an_error(folder, capsys):
    assert recipe("train_bitext", "--lang", "es", "--data", "pairs.tsv", *QUICK, "--resume") == 1
    assert "checkpoint to resume from" in capsys.readouterr().err


def test_settings_come_from_yaml_and_the_command_line(tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text("dim: 10\nepochs: 3\n")
    settings = read(TrainingSettings, path, {"dim": 20}, {"seed": 3, "epochs": 9})
    assert (settings.dim, settings.epochs, settings.dropout, settings.seed) == (20, 3, 0.0, 3)
    for text, message in (("dims: 3", "unknown setting 'dims'"), ("[1]", "a mapping"), ("{", "not readable")):
        path.write_text(text)
        with pytest.raises(SettingsError, match=message):
            read(TrainingSettings, path)
    with pytest.raises(SettingsError, match="not readable"):
        read(TrainingSettings, tmp_path / "none.yaml")
    path.write_bytes(b"dim: \xff")
    with pytest.raises(SettingsError, match="not readable"):
        read(TrainingSettings, path)


@pytest.mark.parametrize(
    "bad", [{"dim": 0}, {"batch_size": 1}, {"epochs": 0}, {"negatives": "all"}, {"optimizer": "sgd"}]
)
def test_bad_settings_are_refused(bad):
    with pytest.raises(SettingsError, match=next(iter(bad))):
        TrainingSettings(**bad)


@pytest.mark.parametrize(
    "name", ["demo.yaml", "paper.yaml", "paper_paraphrase.yaml", "paraphrase.yaml", "short.yaml", "small.yaml"]
)
def test_shipped_configurations_are_valid(name):
    read(TrainingSettings, RECIPES / "configs" / name)


def test_the_papers_configuration_is_the_papers():
    settings = read(TrainingSettings, RECIPES / "configs" / "paper.yaml")
    assert (settings.dim, settings.margin, settings.learning_rate, settings.epochs) == (1024, 0.4, 1e-3, 25)
    assert (settings.batch_size, settings.anneal_interval, settings.megabatch_size) == (128, 150, 60)
    assert (tune.TUNED_DROPOUT, tune.TUNED_MEGABATCH_SIZE) == ((0.0, 0.1, 0.3), (60, 100, 140))
