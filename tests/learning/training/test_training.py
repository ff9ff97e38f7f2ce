import itertools
import os
import signal
import threading
import time

import numpy as np
import pytest
import torch
from support import reference
from support.data import make_pairs, write_store
from transformers import TrainerCallback

from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.sentencepiece import train_vocabulary
from st_paragram.errors import SettingsError, StoreError
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.learning.training.batch_order import EpochPermutation
from st_paragram.learning.training.development import built_in_pairs, development_evaluator
from st_paragram.learning.training.mega_batch import MegaBatchTexts
from st_paragram.learning.training.mega_batch_trainer import MegaBatchTrainer, MegaBatchTrainingArguments
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.learning.training.trainer import arguments_of

SETTINGS = {"per_device_train_batch_size": 8, "megabatch_size": 5, "anneal_interval": 20, "logging_steps": 1}
SETTINGS |= {"mining_precision": "float32", "save_strategy": "no", "use_cpu": True}
needs_kernels = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")


class Losses(TrainerCallback):
    def __init__(self):
        self.values = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.values.append((logs["loss"], logs["megabatch_size"]))


def make_trainer(folder, store, dropout=0.0, callbacks=(), evaluator=None, **settings):
    torch.manual_seed(0)
    model = pipeline(SentencePieceEmbedding(store.tokenizer(), 16, dropout=dropout), device="cpu")
    arguments = MegaBatchTrainingArguments(str(folder), **SETTINGS | settings)
    return MegaBatchTrainer(model, arguments, store, callbacks=list(callbacks), evaluator=evaluator)


def table_of(trainer):
    return trainer.embedding.embedding.weight.detach().clone()


def epochs_of(store, count, seed):
    sides = []
    for side in "ab":
        ids, offsets = store.take(side, np.arange(len(store)))
        sides.append([ids[a:b].tolist() for a, b in itertools.pairwise(offsets)])
    orders = [EpochPermutation(len(store), seed, epoch)[0 : len(store)] for epoch in range(count)]
    return [[(sides[0][i], sides[1][i]) for i in order] for order in orders]


@pytest.fixture(scope="module")
def half(tmp_path_factory, pairs, vocabulary):
    """350 pairs: 44 batches of 8, the last one smaller."""
    return write_store(tmp_path_factory.mktemp("half") / "x.h5", pairs[:350], vocabulary)


@pytest.fixture(scope="module")
def plainly(half):
    """Losses, M's and table of the plain reference; once for all ways that are compared with it."""
    made = {}

    def train(name, start, epochs, interval, **options):
        if name not in made:
            table, result = start, reference.train(start, epochs_of(half, epochs, seed=1), 8, 5, interval, **options)
            made[name] = table, result
        assert torch.equal(made[name][0], start)
        return made[name][1]

    return train


HOW = {"compiled": {"compiled_step": True}, "torch": {"compiled_step": False}}
BOTH = pytest.mark.parametrize("how", [pytest.param("compiled", marks=needs_kernels), "torch"])


@BOTH
@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize("mask_duplicates", [True, False])
def test_training_equals_the_plain_reference(tmp_path, half, plainly, how, both_sides, mask_duplicates):
    """Two epochs of 44 mini-batches with M from 1 to 5, remainder batches included."""
    log = Losses()
    trainer = make_trainer(
        tmp_path,
        half,
        callbacks=[log],
        num_train_epochs=2,
        anneal_interval=10,
        seed=1,  # with 42 two candidates tie to the last bit, and either choice is right
        negatives_from_both_sides=both_sides,
        mask_duplicates=mask_duplicates,
        **HOW[how],
    )
    start = table_of(trainer)
    trainer.train()
    assert (trainer._compiled is not None) == (how == "compiled")
    ways = {"both_sides": both_sides, "mask_duplicates": mask_duplicates}
    losses, sizes, table = plainly(str(ways), start, 2, 10, **ways)
    assert len(losses) == 88 and set(sizes) == {1, 2, 3, 4, 5}
    assert [m for _, m in log.values] == sizes
    assert np.abs(np.array([loss for loss, _ in log.values]) - losses).max() < 1e-5
    assert (table_of(trainer) - table).abs().max() < 1e-4
    assert (table - start).abs().max() > 1e-2


@BOTH
def test_schedules_of_the_rate_equal_the_plain_reference(tmp_path, half, plainly, how):
    """Up from 0 for a tenth of 44 steps, then down to 0."""
    schedule = {"lr_scheduler_type": "linear", "warmup_steps": 0.1, "learning_rate": 0.02, "anneal_interval": 10}
    trainer = make_trainer(tmp_path, half, num_train_epochs=1, seed=1, **schedule, **HOW[how])
    start = table_of(trainer)
    trainer.train()
    _, _, table = plainly("rate", start, 1, 10, rate=lambda step: 0.02 * min(step / 5, (44 - step) / 39))
    assert (table_of(trainer) - table).abs().max() < 1e-3
    assert (table - start).abs().max() > 0.1


def test_masking_duplicates_matters_where_there_are_some(tmp_path, vocabulary):
    store = write_store(tmp_path / "twice.h5", make_pairs(60, repeat_every=2) * 3, vocabulary)
    tables = []
    for mask in (True, False):
        trainer = make_trainer(tmp_path, store, max_steps=30, anneal_interval=0, mask_duplicates=mask)
        trainer.train()
        tables.append(table_of(trainer))
    assert (tables[0] - tables[1]).abs().max() > 1e-3


@BOTH
@pytest.mark.parametrize(("dropout", "precision"), [(0.0, "float32"), (0.2, "auto")])
def test_resume_in_the_middle_of_a_mega_batch_is_exact(tmp_path, store, how, dropout, precision):
    settings = {"dropout": dropout, "max_steps": 60, "mining_precision": precision, **HOW[how]}
    settings |= {"lr_scheduler_type": "linear", "warmup_steps": 0.1, "anneal_interval": 10}
    whole = make_trainer(tmp_path / "whole", store, **settings)
    whole.train()
    assert (whole._compiled is not None) == (how == "compiled")

    saving = {"save_strategy": "steps", "save_steps": 37, "save_total_limit": 2}
    first = make_trainer(tmp_path / "parts", store, **settings, **saving)
    first.train()
    assert torch.equal(table_of(first), table_of(whole))  # saving changes nothing

    with np.load(tmp_path / "parts" / "checkpoint-37" / "mega_batch.npz") as mined:
        epoch, begin, stop, _ = mined["mega"].tolist()
    assert epoch == 0 and begin < 37 < stop
    second = make_trainer(tmp_path / "parts", store, **settings, **saving)
    second.embedding.embedding.weight.data.zero_()
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-37"))
    assert torch.equal(table_of(second), table_of(whole))


@needs_kernels
def test_compiled_dropout_follows_the_models_probability_and_the_seed(tmp_path, store):
    """The shuffling seed is set to one value: only dropout is left to tell the trainings apart."""
    first = {}
    for dropout, seed in ((0.0, 1), (0.2, 1), (0.2, 2)):
        trainer = make_trainer(tmp_path, store, dropout=dropout, max_steps=1, **HOW["compiled"])
        trainer._read = lambda mega, store=trainer.store: MegaBatchTexts.read(store, mega, 8, 0)
        trainer.args.seed = seed
        trainer.train()
        first[dropout, seed] = table_of(trainer)
    assert not torch.equal(first[0.0, 1], first[0.2, 1])
    assert not torch.equal(first[0.2, 1], first[0.2, 2])


def test_resume_in_a_later_epoch_is_exact(tmp_path, store):
    settings = {"num_train_epochs": 3, "save_strategy": "steps", "save_steps": 200, "save_total_limit": 2}
    whole = make_trainer(tmp_path, store, **settings)
    whole.train()
    again = make_trainer(tmp_path, store, **settings)
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-200"))
    assert torch.equal(table_of(again), table_of(whole))


def test_evaluating_changes_nothing(tmp_path, store):
    tables = []
    for strategy in ("no", "steps"):
        trainer = make_trainer(tmp_path, store, max_steps=90, eval_strategy="no")
        if strategy == "steps":
            trainer.args.eval_strategy, trainer.args.eval_steps = strategy, 7
            trainer.evaluator = development_evaluator(built_in_pairs("es"))
        trainer.train()
        tables.append(table_of(trainer))
    assert torch.equal(*tables)


def test_ctrl_c_saves_a_checkpoint_that_resumes_exactly(tmp_path, store):
    class Interrupt(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 33:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)

    assert threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    interrupted = make_trainer(tmp_path, store, max_steps=60, callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        interrupted.train()
    assert signal.getsignal(signal.SIGINT) is before
    (checkpoint,) = tmp_path.glob("checkpoint-*")
    resumed, whole = (make_trainer(tmp_path, store, max_steps=60) for _ in range(2))
    resumed.train(resume_from_checkpoint=str(checkpoint))
    whole.train()
    assert torch.equal(table_of(resumed), table_of(whole))


def test_the_log_states_the_rate(tmp_path, store, caplog):
    before = signal.getsignal(signal.SIGINT)
    with caplog.at_level("INFO", logger="st_paragram"):
        make_trainer(tmp_path, store, max_steps=10, logging_steps=5).train()
    assert signal.getsignal(signal.SIGINT) is before
    assert any("M 1" in line and " pairs/s" in line for line in caplog.messages)
    assert "trained on 80 pairs" in caplog.messages[-1]


def test_one_pair_is_refused(tmp_path, vocabulary):
    store = write_store(tmp_path / "one.h5", make_pairs(1), vocabulary)
    with pytest.raises(StoreError, match="1 pair"):
        make_trainer(tmp_path, store)


def test_two_pairs_can_be_trained(tmp_path, vocabulary):
    store = write_store(tmp_path / "two.h5", make_pairs(2), vocabulary)
    trainer = make_trainer(tmp_path, store, max_steps=3)
    trainer.train()
    assert torch.isfinite(table_of(trainer)).all()


def test_foreign_models_are_refused(tmp_path, store, vocabulary):
    other = train_vocabulary((text for pair in make_pairs(300, seed=9) for text in pair), 200)
    model = pipeline(SentencePieceEmbedding(type(vocabulary)(other), 8), device="cpu")
    arguments = MegaBatchTrainingArguments(str(tmp_path), use_cpu=True)
    with pytest.raises(SettingsError, match="tokenizer is not the store's"):
        MegaBatchTrainer(model, arguments, store)


def test_a_diverging_loss_is_an_error(tmp_path, store):
    trainer = make_trainer(tmp_path, store, max_steps=5)
    trainer.embedding.embedding.weight.data[5:] = float("nan")
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SettingsError, match="loss is nan at step 0"):
        trainer.train()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_custom_loss_is_used(tmp_path, store):
    log = Losses()
    trainer = make_trainer(tmp_path, store, max_steps=1, callbacks=[log])
    wide = make_trainer(tmp_path, store, max_steps=1)
    wide.loss = MarginHardNegativeLoss(wide.model, margin=1.4)
    wide_log = Losses()
    wide.add_callback(wide_log)
    trainer.train()
    wide.train()
    assert wide_log.values[0][0] > log.values[0][0] + 1.5


def test_a_setting_reaches_the_argument_of_its_name(tmp_path):
    settings = TrainingSettings(megabatch_size=7, mask_duplicates=False, seed=3, warmup=0.1, evaluate_steps=5)
    made = arguments_of(MegaBatchTrainingArguments, settings, tmp_path, settings.warmup, True, anneal_interval=2)
    assert (made.megabatch_size, made.mask_duplicates, made.seed, made.anneal_interval) == (7, False, 3, 2)
    assert (made.lr_scheduler_type, made.eval_strategy, made.eval_steps) == ("constant_with_warmup", "steps", 5)
