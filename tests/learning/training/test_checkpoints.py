"""Checkpoints: which are whole, which is taken, and what is refused in one line, though its list of files be right."""

import json
import logging
import random
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from support.data import write_store
from torch import nn

from st_paragram.core.pair_store import PairStore
from st_paragram.errors import ModelDirectoryError, SettingsError, StoreError
from st_paragram.families.psp import tune
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.learning.training import checkpoint_state, checkpoints, progress
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.mega_batch.arguments import MegaBatchTrainingArguments
from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.learning.training.store_trainer import StoreTrainer

STEPS = 9
SETTINGS = {"max_steps": STEPS, "per_device_train_batch_size": 3, "use_cpu": True, "seed": 1, "logging_steps": 100}


class Scaled(nn.Module):
    """A loss with a parameter of its own."""

    def __init__(self, model):
        super().__init__()
        self.model, self.dense = model, nn.Linear(8, 3)

    def forward(self, features, labels=None):
        first, second = (self.dense(self.model(column)["sentence_embedding"]) for column in features)
        return (first - second).square().mean() + 1 / (1 + first.std())


def mega_batches(folder, store, **settings):
    arguments = MegaBatchTrainingArguments(
        str(folder), **{**SETTINGS, "megabatch_size": 3, "anneal_interval": 0, "save_strategy": "no", **settings}
    )
    return MegaBatchTrainer(new_model(store), arguments, store)


def dense(folder, store, **settings):
    model = new_model(store)
    arguments = StoreTrainingArguments(
        str(folder), **{**SETTINGS, "row_lazy_adam": False, "save_strategy": "no", **settings}
    )
    return StoreTrainer(model, arguments, store, Scaled(model))


def new_model(store):
    torch.manual_seed(0)
    return pipeline(SentencePieceEmbedding(store.tokenizer(), 8, dropout=0.2), device="cpu")


def weights(trainer):
    return trainer.model[0].embedding.weight.detach().clone()


MAKE = {"mega-batches": mega_batches, "dense": dense}


@pytest.fixture(scope="module")
def small(tmp_path_factory, pairs, vocabulary):
    return write_store(tmp_path_factory.mktemp("small") / "x.h5", pairs[:30], vocabulary)


@pytest.fixture(scope="module")
def made(tmp_path_factory, small):
    """Of each kind of run, its folder with checkpoints after 4 and 8 steps, and its weights at the end."""
    runs = {}
    for name, make in MAKE.items():
        folder = tmp_path_factory.mktemp(name)
        trainer = make(folder, small, save_strategy="steps", save_steps=4, save_total_limit=9)
        trainer.train()
        shutil.rmtree(folder / f"checkpoint-{STEPS}", ignore_errors=True)
        runs[name] = folder, weights(trainer)
    return runs


@pytest.fixture(scope="module")
def trainers(tmp_path_factory, small):
    """A trainer of each kind, to be refused again and again."""
    return {name: make(tmp_path_factory.mktemp("refused"), small) for name, make in MAKE.items()}


@pytest.fixture
def folder(made, tmp_path):
    """The checkpoints of the run with mega-batches."""
    return shutil.copytree(made["mega-batches"][0], tmp_path / "run")


@pytest.fixture
def dense_folder(made, tmp_path):
    """The checkpoints of the run with dense Adam."""
    return shutil.copytree(made["dense"][0], tmp_path / "dense")


def one_line(error, *texts):
    message = str(error.value)
    assert "\n" not in message and all(str(text) in message for text in texts), message
    return True


def test_what_is_written_down_of_a_checkpoint(folder, small):
    path, written = checkpoints.newest_whole(folder)
    assert path == folder / "checkpoint-8"
    assert written.stores == {"pairs": (small.digest, 30)}
    names = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    assert set(written.files) == names - {"files.json"}
    assert {"optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json", "mega_batch.npz"} < names


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-2]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
    "flipped": lambda path: path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:]),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link in a circle": lambda path: (path.unlink(), path.symlink_to(path)),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_any_damage_to_any_file_is_told_and_an_earlier_one_is_taken(folder, kind, caplog):
    newest, kept = folder / "checkpoint-8", folder.parent / "kept"
    names = [path.relative_to(newest) for path in sorted(newest.rglob("*")) if path.is_file()]
    assert len(names) > 8
    shutil.copytree(newest, kept)
    for name in names:
        caplog.clear()
        DAMAGES[kind](newest / name)
        with caplog.at_level(logging.WARNING, logger="st_paragram"):
            assert checkpoints.newest_whole(folder)[0] == folder / "checkpoint-4", name
        (line,) = caplog.messages
        assert line.startswith(f"WARNING: {newest}: not a whole checkpoint (") and line.endswith("skipped")
        with pytest.raises(SettingsError) as caught:
            checkpoints.whole(newest)
        assert one_line(caught, newest, "not a whole checkpoint", "resume from another")
        shutil.rmtree(newest)
        shutil.copytree(kept, newest)


@pytest.mark.parametrize("name", MAKE)
def test_an_earlier_checkpoint_gives_the_same_weights(made, tmp_path, small, name):
    folder = shutil.copytree(made[name][0], tmp_path / "run")
    (folder / "checkpoint-8" / "optimizer.pt").write_bytes(b"")
    trainer = MAKE[name](folder, small)
    trainer.train(resume_from_checkpoint=True)
    assert torch.equal(weights(trainer), made[name][1])


def test_folders_of_other_names_are_nobodys_business(folder):
    newest = folder / "checkpoint-8"
    for name in ("47-backup", "x", "", "-3", "08", "٣"):
        shutil.copytree(newest, folder / f"checkpoint-{name}")
    (folder / "checkpoint-99").write_text("no folder")
    assert checkpoints.numbered(folder) == [newest, folder / "checkpoint-4"]
    assert checkpoints.newest_whole(folder)[0] == newest
    checkpoints.forget_old(newest, 1, None)
    assert checkpoints.numbered(folder) == [newest] and (folder / "checkpoint-47-backup").is_dir()


def test_where_none_is_whole_one_line_says_so(folder, small):
    for path in checkpoints.numbered(folder):
        (path / "files.json").unlink()
    with pytest.raises(SettingsError) as caught:
        mega_batches(folder, small).train(resume_from_checkpoint=True)
    assert one_line(caught, folder, "no complete checkpoint to resume from", "train without --resume")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[" * 100_000, "not a whole checkpoint"),
        ("[]", "not a whole checkpoint"),
        ('{"stores": {}, "files": {}}', "does not name optimizer.pt"),
        ('{"stores": {}, "files": {"/etc/passwd": {"size": 1, "sha256": ""}}}', "files of other folders"),
        ('{"stores": {}, "files": {"../x": {"size": 1, "sha256": ""}}}', "files of other folders"),
        ('{"stores": {}, "files": {"x": {"size": "many"}}}', "not a whole checkpoint"),
    ],
)
def test_a_strange_list_of_files(folder, content, message):
    (folder / "checkpoint-8" / "files.json").write_text(content)
    with pytest.raises(SettingsError) as caught:
        checkpoints.whole(folder / "checkpoint-8")
    assert one_line(caught, "checkpoint-8", message)


def test_another_store_of_the_same_size_is_refused(folder, tmp_path, pairs, vocabulary, small):
    shuffled = write_store(tmp_path / "y.h5", pairs[29::-1], vocabulary)
    assert shuffled.path.stat().st_size == small.path.stat().st_size
    for checkpoint in (True, str(folder / "checkpoint-4")):
        with pytest.raises(SettingsError) as caught:
            mega_batches(folder, shuffled).train(resume_from_checkpoint=checkpoint)
        assert one_line(caught, f"of a run on other data than {shuffled.path}", "resume with the same data")
    with pytest.raises(SettingsError, match="other data"):
        mega_batches(folder, PairStore(small.path, limit=29)).train(resume_from_checkpoint=True)


def test_a_store_whose_ids_were_exchanged_is_refused_though_it_states_the_old_digest(folder, tmp_path, small):
    import h5py

    shutil.copy(small.path, tmp_path / "y.h5")
    with h5py.File(tmp_path / "y.h5", "r+") as file:
        file["a/ids"][:] = file["a/ids"][:][::-1]
    with pytest.raises(StoreError, match="damaged or edited"):
        mega_batches(folder, PairStore(tmp_path / "y.h5")).train(resume_from_checkpoint=True)


def test_the_progress_of_a_run_knows_its_stores(tmp_path, small, pairs, vocabulary):
    progress.begin(tmp_path, {"dim": 8}, small)
    (tmp_path / "checkpoint-1").mkdir()
    assert progress.resume(tmp_path, {"dim": 8}, small).contents == [[small.digest, 30]]
    shuffled = write_store(tmp_path / "y.h5", pairs[29::-1], vocabulary)
    with pytest.raises(SettingsError, match="begun on other data than"):
        progress.resume(tmp_path, {"dim": 8}, shuffled)
    for content in ("", "[1]", '{"settings": {}, "store": "of an earlier version"}', "[" * 100_000):
        (tmp_path / "progress.json").write_text(content)
        with pytest.raises(SettingsError) as caught:
            progress.resume(tmp_path, {"dim": 8}, small)
        assert one_line(caught, "progress.json: not readable, or written by another version")


@pytest.mark.parametrize("content", ["", "{}", '{"before": {"pearson": "x", "spearman": 1}}', "[" * 100_000])
def test_a_damaged_result_of_a_grid(tmp_path, content):
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(SettingsError) as caught:
        tune._kept(tmp_path, TrainingSettings())
    assert one_line(caught, "result.json: not the result of a training run", "remove it")


def test_older_checkpoints_go_when_the_new_one_is_whole(tmp_path, small, monkeypatch):
    seal, sealed = checkpoints.seal, []

    def interrupted(checkpoint, stores):
        sealed.append(checkpoint.name)
        if len(sealed) == 2:
            raise KeyboardInterrupt
        seal(checkpoint, stores)

    monkeypatch.setattr(checkpoints, "seal", interrupted)
    trainer = mega_batches(tmp_path, small, save_strategy="steps", save_steps=4, save_total_limit=1)
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert sealed == ["checkpoint-4", "checkpoint-8"]
    assert checkpoints.newest_whole(tmp_path)[0].name == "checkpoint-4"
    assert checkpoints.finished(tmp_path) == [tmp_path / "checkpoint-4"]
    trainer = mega_batches(tmp_path, small, save_strategy="steps", save_steps=4, save_total_limit=1)
    trainer.train(resume_from_checkpoint=True)
    assert len(checkpoints.numbered(tmp_path)) == 1 and checkpoints.newest_whole(tmp_path)[0].name != "checkpoint-4"


@pytest.mark.parametrize(
    ("newest", "keep", "best", "left"),
    [
        (30, 1, None, [30]),
        (30, 2, None, [30, 20]),
        (20, 2, None, [20, 10]),  # 30 was passed over
        (20, 1, None, [20]),
        (30, 1, 10, [30, 10]),
        (30, 2, 10, [30, 10]),
        (30, 9, None, [30, 20, 10]),
        (30, None, None, [30, 20, 10]),
        (30, 0, 10, [30, 20, 10]),
    ],
)
def test_which_checkpoints_stay(tmp_path, newest, keep, best, left):
    for step in (10, 20, 30):
        (tmp_path / f"checkpoint-{step}").mkdir()
    checkpoints.forget_old(
        tmp_path / f"checkpoint-{newest}", keep, None if best is None else str(tmp_path / f"checkpoint-{best}")
    )
    assert checkpoints.numbered(tmp_path) == [tmp_path / f"checkpoint-{step}" for step in left]


def test_random_generators_are_set_as_they_were(tmp_path):
    np.random.standard_normal()
    random.gauss(0, 1)
    checkpoint_state.save_generators(tmp_path / "x")
    draw = lambda: (random.gauss(0, 1), random.random(), np.random.standard_normal(2).tolist(), torch.rand(2).tolist())  # noqa: E731
    expected = draw()
    draw()
    checkpoint_state.load_generators(tmp_path / "x")
    assert draw() == expected


# A checkpoint whose list of files was written again after the damage.


def signed(checkpoint):
    checkpoints.seal(checkpoint, json.loads((checkpoint / "files.json").read_text())["stores"])


def edited_json(change):
    def edit(path):
        values = json.loads(path.read_text())
        change(values)
        path.write_text(json.dumps(values))

    return edit


def edited_state(change):
    def edit(path):
        values = torch.load(path, weights_only=True)
        change(values)
        torch.save(values, path)

    return edit


def edited_arrays(**changed):
    def edit(path):
        with np.load(path) as saved:
            values = dict(saved)
        np.savez(path, **(values | {name: change(values[name]) for name, change in changed.items()}))

    return edit


ATTACKS = {
    "cut optimizer": ("optimizer.pt", lambda path: path.write_bytes(path.read_bytes()[:-100])),
    "empty scheduler": ("scheduler.pt", lambda path: path.write_bytes(b"")),
    "other betas": ("optimizer.pt", edited_state(lambda state: state["param_groups"][0].update(betas=(2.0, 2.0)))),
    "empty random state": ("rng_state.pth", lambda path: path.write_bytes(b"")),
    "a generator beyond its words": ("rng_state.pth", edited_state(lambda state: state["numpy"].update(place=10**6))),
    "few words": (
        "rng_state.pth",
        edited_state(lambda state: state["numpy"].update(words=torch.zeros(3, dtype=torch.int64), place=1)),
    ),
    "state of text": ("trainer_state.json", lambda path: path.write_text("x")),
    "step of text": ("trainer_state.json", edited_json(lambda state: state.update(global_step="4"))),
    "step behind the last": ("trainer_state.json", edited_json(lambda state: state.update(global_step=10**15))),
    "weights": ("model.safetensors", lambda path: path.write_bytes(path.read_bytes()[:50])),
}
MEGA_ATTACKS = {
    "no archive": ("mega_batch.npz", lambda path: path.write_bytes(b"PK")),
    "negative places": ("mega_batch.npz", edited_arrays(columns=lambda columns: columns - 10**9)),
    "places too far": ("mega_batch.npz", edited_arrays(columns=lambda columns: columns + 10**9)),
    "fractions": ("mega_batch.npz", edited_arrays(columns=lambda columns: columns / 2)),
    "too few columns": ("mega_batch.npz", edited_arrays(columns=lambda columns: columns[:2])),
    "a mega-batch outside": ("mega_batch.npz", edited_arrays(mega=lambda mega: mega + 10**12)),
    "a negative epoch": ("mega_batch.npz", edited_arrays(mega=lambda mega: mega - np.array([5, 0, 0, 0]))),
    "three numbers": ("mega_batch.npz", edited_arrays(mega=lambda mega: mega[:3])),
}


def _wrong_shape(state):
    state["state"][0]["exp_avg"] = torch.zeros(3)


DENSE_ATTACKS = {
    "other options": ("optimizer.pt", edited_state(lambda state: state["param_groups"][0].update(amsgrad=True))),
    "moments of other shape": ("optimizer.pt", edited_state(_wrong_shape)),
    "parameters of the loss": ("loss.safetensors", lambda path: path.write_bytes(b"\xff" * 20)),
    "other parameters": (
        "loss.safetensors",
        lambda path: save_file({name: tensor[:1].clone() for name, tensor in load_file(path).items()}, path),
    ),
}


def refused(trainer, checkpoint, name, attack):
    attack(checkpoint / name)
    signed(checkpoint)
    with pytest.raises((SettingsError, StoreError, ModelDirectoryError)) as caught:
        trainer.train(resume_from_checkpoint=str(checkpoint))
    assert one_line(caught, checkpoint) and len(str(caught.value)) < 700


@pytest.mark.parametrize("kind", ATTACKS | MEGA_ATTACKS)
def test_a_signed_checkpoint_of_mega_batches_is_refused_in_one_line(folder, trainers, kind):
    refused(trainers["mega-batches"], folder / "checkpoint-8", *(ATTACKS | MEGA_ATTACKS)[kind])


@pytest.mark.parametrize("kind", DENSE_ATTACKS)
def test_a_signed_checkpoint_of_dense_adam_is_refused_in_one_line(dense_folder, trainers, kind):
    refused(trainers["dense"], dense_folder / "checkpoint-8", *DENSE_ATTACKS[kind])


class Harmful:
    """What pickle would call when it loads this."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", ["optimizer.pt", "scheduler.pt", "rng_state.pth"])
def test_nothing_is_unpickled(folder, trainers, tmp_path, name):
    harmful = {"state": Harmful(tmp_path / "harm")}
    refused(trainers["mega-batches"], folder / "checkpoint-8", name, lambda path: torch.save(harmful, path))
    assert not (tmp_path / "harm").exists()
