"""Checkpoints of a run: complete or not, resumed to the bit, refused in one line where they are of another run."""

import itertools
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from support.data import write_store
from torch import nn

import st_paragram
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.modules.flat_features import flat_features
from st_paragram.learning.training.checkpoints import newest_checkpoint
from st_paragram.learning.training.mega_batch_trainer import MegaBatchTrainer, MegaBatchTrainingArguments
from st_paragram.learning.training.trainer import StoreTrainer, StoreTrainingArguments

STEPS = 9


class Scaled(nn.Module):
    """A loss with its own parameter and buffer."""

    def __init__(self, model):
        super().__init__()
        self.model, self.dense = model, nn.Linear(8, 3)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, columns):
        self.steps += 1
        first, second = (self.dense(self.model(column)["sentence_embedding"]) for column in columns)
        return (first - second).square().mean() + 1 / (1 + first.std())


class Plain(StoreTrainer):
    """Three pairs a step, with the noise of torch's generator."""

    batches_per_epoch = 10

    def make_step(self, step):
        rows = np.arange(3 * step, 3 * step + 3) % len(self.store)
        self.model.train()
        loss = self.loss([dict(flat_features(*self.store.take(side, rows))) for side in "ab"])
        loss.backward()
        return loss.detach(), 3


def new_model(store, dropout=0.2):
    torch.manual_seed(0)
    return st_paragram.pipeline(st_paragram.SentencePieceEmbedding(store.tokenizer(), 8, dropout=dropout), device="cpu")


def plain(folder, store, evaluator=None, **settings):
    model, most = new_model(store), {"max_steps": STEPS, "use_cpu": True, "save_strategy": "no"}
    arguments = StoreTrainingArguments(str(folder), **most | settings)
    return Plain(model, arguments, store, Scaled(model), evaluator=evaluator)


def mega_batches(folder, store, evaluator=None, **settings):
    most = {"max_steps": STEPS, "use_cpu": True, "save_strategy": "no", "per_device_train_batch_size": 3}
    arguments = MegaBatchTrainingArguments(str(folder), megabatch_size=3, anneal_interval=0, **most | settings)
    return MegaBatchTrainer(new_model(store), arguments, store, evaluator=evaluator)


KINDS = pytest.mark.parametrize("make", [plain, mega_batches])


@pytest.fixture(scope="module")
def small(tmp_path_factory, pairs, vocabulary):
    return write_store(tmp_path_factory.mktemp("small") / "x.h5", pairs[:30], vocabulary)


def saving(folder, make, store, **settings):
    trainer = make(folder, store, save_strategy="steps", save_steps=4, save_total_limit=9, **settings)
    trainer.train()
    shutil.rmtree(folder / f"checkpoint-{STEPS}", ignore_errors=True)
    return trainer


@KINDS
def test_a_resumed_run_ends_with_the_same_bytes(tmp_path, small, make):
    """Losses' own weights, too; `pairs` counts on."""
    whole = saving(tmp_path, make, small)
    again = make(tmp_path, small)
    with torch.no_grad():
        for parameter in itertools.chain(again.model.parameters(), again.loss.parameters()):
            parameter.zero_()
    again.train(resume_from_checkpoint=True)
    first, second = whole.loss.state_dict(), again.loss.state_dict()
    assert first.keys() == second.keys() and all(torch.equal(tensor, second[name]) for name, tensor in first.items())
    assert again.rate.pairs == whole.rate.pairs == 3 * STEPS


def test_a_plain_loop_gives_the_same_losses(tmp_path, small):
    """Clipping counts the loss's own parameters."""
    trainer = plain(tmp_path, small, logging_steps=1, max_grad_norm=0.05, learning_rate=1e-2)
    trainer.model[0].dropout = 0.0
    loss = Scaled(new_model(small, dropout=0.0))
    loss.load_state_dict(trainer.loss.state_dict())
    trainer.train()
    optimizer, values = torch.optim.Adam(loss.parameters(), lr=1e-2), []
    for step in range(STEPS):
        rows = np.arange(3 * step, 3 * step + 3) % 30
        value = loss([dict(flat_features(*small.take(side, rows))) for side in "ab"])
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(loss.parameters(), 0.05)
        optimizer.step()
        values.append(value.item())
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    np.testing.assert_allclose(logged, values, atol=1e-4)


def test_the_newest_complete_checkpoint_is_taken(tmp_path, small):
    saving(tmp_path, mega_batches, small)
    (tmp_path / "checkpoint-8" / "complete.json").unlink()
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-4"
    again = mega_batches(tmp_path, small, save_strategy="steps", save_steps=6, save_total_limit=1)
    again.train(resume_from_checkpoint=True)
    assert [path.name for path in tmp_path.iterdir()] == [f"checkpoint-{STEPS}"], "the passed-over one goes, too"
    (tmp_path / f"checkpoint-{STEPS}" / "complete.json").unlink()
    with pytest.raises(SettingsError, match="no complete checkpoint to resume from"):
        mega_batches(tmp_path, small).train(resume_from_checkpoint=True)


@KINDS
def test_a_damaged_checkpoint_is_refused_in_one_line(tmp_path, small, make):
    saving(tmp_path, make, small)
    for path in {*(tmp_path / "checkpoint-8").iterdir()} - {tmp_path / "checkpoint-8" / "training_args.bin"}:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(SettingsError, match="checkpoint-8") as raised:
            make(tmp_path, small).train(resume_from_checkpoint=True)
        assert "\n" not in str(raised.value), path.name
        path.write_bytes(whole)


def test_a_run_is_resumed_with_the_data_and_settings_that_it_was_begun_with(tmp_path, small, pairs, vocabulary):
    saving(tmp_path / "run", mega_batches, small)
    other = write_store(tmp_path / "other.h5", pairs[30:60], vocabulary)
    with pytest.raises(SettingsError, match=r"begun on other data than .*other\.h5; resume with the same data"):
        mega_batches(tmp_path / "run", other).train(resume_from_checkpoint=True)
    trainer = mega_batches(tmp_path / "run", small)
    trainer.settings = {"dim": 9, "device": "cuda"}
    with pytest.raises(SettingsError, match="begun with dim None, not 9; resume with the same settings"):
        trainer.train(resume_from_checkpoint=True)
    trainer.settings = {"device": "cuda"}
    trainer.train(resume_from_checkpoint=True)


class Falling(SentenceEvaluator):
    """Likes the first evaluation best."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __call__(self, model, *args, **kwargs):
        self.seen.append(model[0].embedding.weight.detach().clone())
        return {"score": -len(self.seen)}


@KINDS
def test_the_best_model_is_loaded_at_the_end(tmp_path, small, make):
    watched = Falling()
    best = {"load_best_model_at_end": True, "metric_for_best_model": "eval_score", "greater_is_better": True}
    every = {"save_strategy": "steps", "save_steps": 3, "eval_strategy": "steps", "eval_steps": 3}
    trainer = make(tmp_path, small, evaluator=watched, save_total_limit=1, **best, **every)
    trainer.train()
    assert len(watched.seen) == 3
    assert torch.equal(trainer.model[0].embedding.weight, watched.seen[0])
    assert (tmp_path / "checkpoint-3").is_dir()


def test_a_model_that_cannot_be_saved_is_refused_before_it_is_trained(tmp_path, small):
    class Own(nn.Module):
        def forward(self, features):
            return features

    model = new_model(small)
    model.append(Own())
    with pytest.raises(ModelDirectoryError, match="Own is not a module of st_paragram"):
        MegaBatchTrainer(model, MegaBatchTrainingArguments(str(tmp_path), use_cpu=True), small)


def test_what_the_steps_of_a_store_do_not_do_is_refused(tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match="prompts are 'query: ', but stored texts are trained on as they are"):
        StoreTrainingArguments(str(tmp_path), prompts="query: ")
    with pytest.raises(SettingsError, match="gradient_accumulation_steps is 2"):
        StoreTrainingArguments(str(tmp_path), gradient_accumulation_steps=2)
    monkeypatch.setattr(StoreTrainingArguments, "world_size", property(lambda self: 2))
    with pytest.raises(SettingsError, match="2 processes or devices: training takes one"):
        StoreTrainingArguments(str(tmp_path), use_cpu=True)
