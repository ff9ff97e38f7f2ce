"""Checkpoints of a run: which are complete, and which are refused in one line."""

import inspect
import shutil

import pytest
import torch
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from support.data import write_store
from torch import nn
from transformers import Trainer, trainer_utils

import st_paragram
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.psp.mega_batch_trainer import (
    MegaBatchTrainer,
    MegaBatchTrainingArguments,
)
from st_paragram.learning.training.checkpoints import newest_checkpoint
from st_paragram.learning.training.trainer import StoreTrainer, StoreTrainingArguments

STEPS = 9


def new_model(store):
    torch.manual_seed(0)
    return st_paragram.pipeline(
        st_paragram.SentencePieceEmbedding(store.tokenizer(), 8, dropout=0.2), device="cpu"
    )


def mega_batches(folder, store, evaluator=None, **settings):
    most = {
        "max_steps": STEPS,
        "use_cpu": True,
        "save_strategy": "no",
        "per_device_train_batch_size": 3,
    }
    arguments = MegaBatchTrainingArguments(
        str(folder), megabatch_size=3, anneal_interval=0, **most | settings
    )
    return MegaBatchTrainer(new_model(store), arguments, store, evaluator=evaluator)


@pytest.fixture(scope="module")
def small(tmp_path_factory, pairs, vocabulary):
    return write_store(tmp_path_factory.mktemp("small") / "x.h5", pairs[:30], vocabulary)


def saving(folder, store):
    mega_batches(folder, store, save_strategy="steps", save_steps=4, save_total_limit=9).train()
    shutil.rmtree(folder / f"checkpoint-{STEPS}")


def test_the_newest_complete_checkpoint_is_taken(tmp_path, small):
    saving(tmp_path, small)
    (tmp_path / "checkpoint-8" / "complete.json").unlink()
    assert newest_checkpoint(tmp_path) == tmp_path / "checkpoint-4"
    again = mega_batches(tmp_path, small, save_strategy="steps", save_steps=6, save_total_limit=1)
    again.train(resume_from_checkpoint=True)
    assert [path.name for path in tmp_path.iterdir()] == [f"checkpoint-{STEPS}"], (
        "the passed-over one goes, too"
    )
    (tmp_path / f"checkpoint-{STEPS}" / "complete.json").unlink()
    with pytest.raises(SettingsError, match="no complete checkpoint to resume from"):
        mega_batches(tmp_path, small).train(resume_from_checkpoint=True)


def test_a_damaged_checkpoint_is_refused_in_one_line(tmp_path, small):
    saving(tmp_path, small)
    for path in {*(tmp_path / "checkpoint-8").iterdir()} - {
        tmp_path / "checkpoint-8" / "training_args.bin"
    }:
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(SettingsError, match="checkpoint-8") as raised:
            mega_batches(tmp_path, small).train(resume_from_checkpoint=True)
        assert "\n" not in str(raised.value), path.name
        path.write_bytes(whole)


def test_a_run_is_resumed_with_the_data_and_settings_that_it_was_begun_with(
    tmp_path, small, pairs, vocabulary
):
    saving(tmp_path / "run", small)
    other = write_store(tmp_path / "other.h5", pairs[30:60], vocabulary)
    with pytest.raises(
        SettingsError, match=r"started with other data than .*other\.h5; resume with the same"
    ):
        mega_batches(tmp_path / "run", other).train(resume_from_checkpoint=True)
    trainer = mega_batches(tmp_path / "run", small)
    trainer.settings = {"dim": 9, "device": "cuda"}
    with pytest.raises(SettingsError, match="started with dim None, not 9; resume with the same"):
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


def test_the_best_model_is_loaded_at_the_end(tmp_path, small, monkeypatch):
    warnings = []  # of checkpoints that were written within a second
    monkeypatch.setattr(trainer_utils.logger, "warning_once", warnings.append)
    watched = Falling()
    best = {
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_score",
        "greater_is_better": True,
    }
    every = {"save_strategy": "steps", "save_steps": 3, "eval_strategy": "steps", "eval_steps": 3}
    trainer = mega_batches(tmp_path, small, evaluator=watched, save_total_limit=1, **best, **every)
    (tmp_path / "checkpoint-1").mkdir()  # not a checkpoint of ours
    trainer.train()
    assert len(watched.seen) == 3
    assert torch.equal(trainer.model[0].embedding.weight, watched.seen[0])
    folders = {path.name for path in tmp_path.glob("checkpoint-*")}
    assert folders == {"checkpoint-1", "checkpoint-3", "checkpoint-9"}  # best, and newest
    assert trainer.args.save_total_limit == 1
    assert not warnings


def test_a_model_that_cannot_be_saved_is_refused_before_it_is_trained(tmp_path, small):
    class Own(nn.Module):
        def forward(self, features):
            return features

    model = new_model(small)
    model.append(Own())
    with pytest.raises(ModelDirectoryError, match="Own is not a module of st_paragram"):
        MegaBatchTrainer(model, MegaBatchTrainingArguments(str(tmp_path), use_cpu=True), small)


def test_what_the_steps_of_a_store_do_not_do_is_refused(tmp_path, monkeypatch):
    with pytest.raises(
        SettingsError, match="prompts are 'query: ', but stored texts are used without prompts"
    ):
        StoreTrainingArguments(str(tmp_path), prompts="query: ")
    with pytest.raises(SettingsError, match="gradient_accumulation_steps is 2"):
        StoreTrainingArguments(str(tmp_path), gradient_accumulation_steps=2)
    monkeypatch.setattr(StoreTrainingArguments, "world_size", property(lambda self: 2))
    with pytest.raises(SettingsError, match="2 processes or devices, but training uses only one"):
        StoreTrainingArguments(str(tmp_path), use_cpu=True)


def test_each_private_method_of_transformers_is_as_its_override_expects():
    """They have no public counterpart, so a release of transformers may change them."""
    expected = {
        "_clip_grad_norm": (
            "(self, model)",
            "called before each optimizer step if max_grad_norm is positive, and returns the norm",
        ),
        "_get_grad_norm": (
            "(self, model, grad_norm=None)",
            "called before each optimizer step, with the result of _clip_grad_norm or None",
        ),
        "_load_from_checkpoint": (
            "(self, resume_from_checkpoint: str, model: torch.nn.modules.module.Module | None ="
            " None) -> None",
            "called by train before the optimizer is made, and by _load_best_model at the end",
        ),
    }
    own = {name for name in vars(StoreTrainer) if callable(getattr(Trainer, name, None))}
    private = {name for name in own if name.startswith("_") and not name.startswith("__")}
    assert private == set(expected), "StoreTrainer overrides other private methods: list them here"
    for name, (signature, use) in expected.items():
        found = str(inspect.signature(getattr(Trainer, name)))
        assert found == signature, f"transformers changed Trainer.{name}; check that it is {use}"
        calls = inspect.getsource(inspect.getmodule(Trainer)).count(f"self.{name}(")
        assert calls, f"transformers no longer calls Trainer.{name}; check what is {use}"
    assert "self.save_model(output_dir, _internal_call=True)" in (
        inspect.getsource(Trainer._save_checkpoint)
    ), "transformers saves a checkpoint's weights in another way; check StoreTrainer.save_model"
    begin, complete = "self._save_checkpoint(", "self.callback_handler.on_save("
    steps = inspect.getsource(Trainer._maybe_log_save_evaluate)
    assert 0 < steps.find(begin) < steps.find(complete), (
        "transformers no longer calls on_save after Trainer._save_checkpoint; check that"
        " StoreTrainer.complete_checkpoint runs after all other files of a checkpoint are written"
    )
