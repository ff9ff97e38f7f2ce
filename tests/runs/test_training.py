"""`MegaBatchTrainer` against a plain reference: its steps, what resumes it, what it learns from a
teacher.
"""

import itertools
import math
import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support import reference
from support.data import make_pairs, write_store
from transformers import TrainerCallback

from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.sentencepiece import train_vocabulary
from st_paragram.errors import SettingsError, StoreError
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.families.psp.mega_batch_trainer import (
    MegaBatchTrainer,
    MegaBatchTrainingArguments,
)
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.families.psp.teacher import Teacher
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.learning.training.batch_order import EpochPermutation
from st_paragram.learning.training.trainer import arguments_of
from st_paragram.runs.development import built_in_pairs, development_evaluator

SETTINGS = {
    "per_device_train_batch_size": 8,
    "megabatch_size": 5,
    "anneal_interval": 20,
    "logging_steps": 1,
}
SETTINGS |= {"mining_precision": "float32", "save_strategy": "no", "use_cpu": True}
needs_kernels = pytest.mark.skipif(
    kernels() is None, reason="the compiled kernels are not installed"
)


def make_trainer(folder, store, dropout=0.0, loss=MarginHardNegativeLoss, **settings):
    torch.manual_seed(0)
    model = pipeline(SentencePieceEmbedding(store.tokenizer(), 16, dropout=dropout), device="cpu")
    return MegaBatchTrainer(
        model, MegaBatchTrainingArguments(str(folder), **SETTINGS | settings), store, loss(model)
    )


def table_of(trainer):
    return trainer.embedding.embedding.weight.detach().clone()


def logged(trainer, name):
    return [entry[name] for entry in trainer.state.log_history if "loss" in entry]


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
def few(tmp_path_factory, pairs, vocabulary):
    """155 pairs: 20 batches of 8, the last one smaller."""
    return write_store(tmp_path_factory.mktemp("few") / "x.h5", pairs[:155], vocabulary)


@pytest.fixture(scope="module")
def plainly(half):
    """Losses, M's and table of the plain reference; once for all ways that are compared with it."""
    made = {}

    def train(name, start, epochs, interval, **options):
        if name not in made:
            table, result = (
                start,
                reference.train(start, epochs_of(half, epochs, seed=1), 8, 5, interval, **options),
            )
            made[name] = table, result
        assert torch.equal(made[name][0], start)
        return made[name][1]

    return train


HOW = {"compiled": {"compiled_step": True}, "torch": {"compiled_step": False}}
BOTH = pytest.mark.parametrize("how", [pytest.param("compiled", marks=needs_kernels), "torch"])


@BOTH
@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize("mask_duplicates", [True, False])
def test_training_equals_the_plain_reference(
    tmp_path, half, plainly, how, both_sides, mask_duplicates
):
    """Two epochs of 44 mini-batches with M from 1 to 5, remainder batches included."""
    trainer = make_trainer(
        tmp_path,
        half,
        num_train_epochs=2,
        anneal_interval=10,
        seed=1,  # with 42 two candidates tie to the last bit, and either choice is right
        negatives="both" if both_sides else "opposite",
        mask_duplicates=mask_duplicates,
        **HOW[how],
    )
    start = table_of(trainer)
    trainer.train()
    assert (trainer._compiled is not None) == (how == "compiled")
    ways = {"both_sides": both_sides, "mask_duplicates": mask_duplicates}
    losses, sizes, table = plainly(str(ways), start, 2, 10, **ways)
    assert len(losses) == 88 and set(sizes) == {1, 2, 3, 4, 5}
    assert logged(trainer, "megabatch_size") == sizes
    np.testing.assert_allclose(logged(trainer, "loss"), losses, atol=1e-5, rtol=0)
    assert (table_of(trainer) - table).abs().max() < 1e-4
    assert (table - start).abs().max() > 1e-2


@BOTH
def test_schedules_of_the_rate_equal_the_plain_reference(tmp_path, half, plainly, how):
    """Up from 0 for a tenth of 44 steps, then down to 0."""
    schedule = {
        "lr_scheduler_type": "linear",
        "warmup_steps": 0.1,
        "learning_rate": 0.02,
        "anneal_interval": 10,
    }
    trainer = make_trainer(tmp_path, half, num_train_epochs=1, seed=1, **schedule, **HOW[how])
    start = table_of(trainer)
    trainer.train()
    _, _, table = plainly(
        "rate", start, 1, 10, rate=lambda step: 0.02 * min(step / 5, (44 - step) / 39)
    )
    assert (table_of(trainer) - table).abs().max() < 1e-3
    assert (table - start).abs().max() > 0.1


@BOTH
@pytest.mark.parametrize(
    ("dropout", "precision", "negatives", "taught"),
    [
        (0.0, "float32", "opposite", True),
        (0.2, "auto", "opposite", False),
        (0.0, "float32", "random", False),
    ],
)
def test_resume_in_the_middle_of_a_mega_batch_is_exact(
    tmp_path, few, teacher_of_few, how, dropout, precision, negatives, taught
):
    """In the second epoch, of 20 mini-batches."""
    settings = {"dropout": dropout, "max_steps": 40, "mining_precision": precision, **HOW[how]}
    settings["negatives"] = negatives
    settings |= {"lr_scheduler_type": "linear", "warmup_steps": 0.1, "anneal_interval": 4}
    settings |= {"teacher": str(teacher_of_few) if taught else ""}
    whole = make_trainer(tmp_path / "whole", few, **settings)
    whole.train()
    assert (whole._compiled is not None) == (how == "compiled")

    saving = {"save_strategy": "steps", "save_steps": 32, "save_total_limit": 2}
    first = make_trainer(tmp_path / "parts", few, **settings | saving)
    first.train()
    assert torch.equal(table_of(first), table_of(whole))  # saving changes nothing

    with np.load(tmp_path / "parts" / "checkpoint-32" / "mega_batch.npz") as mined:
        epoch, begin, stop, _ = mined["mega"].tolist()
    assert epoch == 1 and begin < 32 - 20 < stop
    second = make_trainer(tmp_path / "parts", few, **settings | saving)
    second.embedding.embedding.weight.data.zero_()
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-32"))
    assert torch.equal(table_of(second), table_of(whole))
    assert not taught or torch.equal(second._teacher.projection, whole._teacher.projection)


@needs_kernels
def test_the_compiled_step_has_the_models_dropout(tmp_path, store):
    tables = []
    for dropout in (0.0, 0.2):
        trainer = make_trainer(tmp_path, store, dropout=dropout, max_steps=1, **HOW["compiled"])
        trainer.train()
        tables.append(table_of(trainer))
    assert not torch.equal(*tables)


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
    interrupted = make_trainer(tmp_path, store, max_steps=60)
    interrupted.add_callback(Interrupt())
    with pytest.raises(KeyboardInterrupt):
        interrupted.train()
    assert signal.getsignal(signal.SIGINT) is before
    (checkpoint,) = tmp_path.glob("checkpoint-*")
    resumed, whole = (make_trainer(tmp_path, store, max_steps=60) for _ in range(2))
    resumed.train(resume_from_checkpoint=str(checkpoint))
    whole.train()
    assert torch.equal(table_of(resumed), table_of(whole))


def test_two_pairs_can_be_trained_and_one_is_refused(tmp_path, vocabulary):
    with pytest.raises(StoreError, match="1 pair"):
        make_trainer(tmp_path, write_store(tmp_path / "one.h5", make_pairs(1), vocabulary))
    trainer = make_trainer(
        tmp_path, write_store(tmp_path / "two.h5", make_pairs(2), vocabulary), max_steps=3
    )
    trainer.train()
    assert torch.isfinite(table_of(trainer)).all()


def test_foreign_models_are_refused(tmp_path, store, vocabulary):
    other = train_vocabulary((text for pair in make_pairs(300, seed=9) for text in pair), 200)
    model = pipeline(SentencePieceEmbedding(type(vocabulary)(other), 8), device="cpu")
    arguments = MegaBatchTrainingArguments(str(tmp_path), use_cpu=True)
    with pytest.raises(SettingsError, match="tokenizer differs from the store's"):
        MegaBatchTrainer(model, arguments, store)


def test_a_diverging_loss_is_an_error(tmp_path, store):
    trainer = make_trainer(tmp_path, store, max_steps=5)
    trainer.embedding.embedding.weight.data[5:] = float("nan")
    with pytest.raises(SettingsError, match="loss is nan at step 0"):
        trainer.train()


def test_a_custom_loss_is_used(tmp_path, store):
    losses = []
    for margin in (0.4, 1.4):
        trainer = make_trainer(
            tmp_path, store, max_steps=1, loss=partial(MarginHardNegativeLoss, margin=margin)
        )
        trainer.train()
        losses += logged(trainer, "loss")
    assert losses[1] > losses[0] + 1.5


def test_a_setting_reaches_the_argument_of_its_name(tmp_path):
    settings = TrainingSettings(
        megabatch_size=7, mask_duplicates=False, seed=3, warmup=0.1, evaluate_steps=5
    )
    made = arguments_of(
        MegaBatchTrainingArguments, settings, tmp_path, settings.warmup, True, anneal_interval=2
    )
    assert (made.megabatch_size, made.mask_duplicates, made.seed, made.anneal_interval) == (
        7,
        False,
        3,
        2,
    )
    assert (made.lr_scheduler_type, made.eval_strategy, made.eval_steps) == (
        "constant_with_warmup",
        "steps",
        5,
    )


# A teacher.


def write_teacher(path, store):
    """Write a file of vectors of both sides."""
    np.save(path, np.random.default_rng(3).standard_normal((2 * len(store), 6)).astype(np.float16))
    return path


@pytest.fixture(scope="module")
def teacher(tmp_path_factory, half):
    return write_teacher(tmp_path_factory.mktemp("teacher") / "teacher.npy", half)


@pytest.fixture(scope="module")
def teacher_of_few(tmp_path_factory, few):
    return write_teacher(tmp_path_factory.mktemp("few") / "teacher.npy", few)


def teacher_of(folder, vectors, weight, dim, seed=0):
    """With vectors of both sides."""
    np.save(folder / "t.npy", vectors)
    pairs = range(len(vectors) // 2)  # of which a teacher asks how many there are
    return Teacher(folder / "t.npy", pairs, weight, dim, seed, torch.device("cpu"))


def test_the_term_and_its_gradient_by_hand(tmp_path):
    """Two sentences with v = (3, 4) and (0, 2), P = the identity, t = (1, 0) and (0, 5): cosines
    0.6 and 1.

    d(1 - cos) / dv = -(t / |t| - cos v / |v|) / |v| = -((1, 0) - 0.6 (0.6, 0.8)) / 5 = (-0.128,
    0.096).
    """
    teacher = teacher_of(tmp_path, np.array([[1, 0], [0, 5]], np.float32), 2.0, 2)
    with torch.no_grad():
        teacher.projection.copy_(torch.eye(2))
    loss, gradient = teacher.learn(torch.tensor([[3.0, 4.0], [0.0, 2.0]]), np.array([0]))
    assert loss == pytest.approx(2.0 * 0.2)
    np.testing.assert_allclose(gradient, [[-0.128, 0.096], [0, 0]], atol=1e-6)
    assert teacher.distances == pytest.approx([0.2])
    # The first step of Adam moves a number by its rate, against the sign of its gradient, d(1 -
    # cos) / dP = du v^T.
    moved = teacher.projection.detach().numpy() - np.eye(2)
    np.testing.assert_allclose(moved, 1e-3 * np.array([[1, 1], [-1, -1]]), rtol=1e-3)


@given(
    st.integers(0, 10**6),
    st.integers(1, 9),
    st.integers(1, 7),
    st.integers(1, 6),
    st.floats(0.1, 10),
)
def test_any_batch_has_autograds_gradient(tmp_path_factory, seed, dim, teacher_dim, pairs, weight):
    random = np.random.default_rng(seed)
    v, t = (
        random.standard_normal((2 * pairs, width)).astype(np.float32)
        for width in (dim, teacher_dim)
    )
    teacher = teacher_of(tmp_path_factory.getbasetemp(), t, weight, dim, seed)
    p = teacher.projection.detach().clone().double().requires_grad_()
    x = torch.from_numpy(v).double().requires_grad_()
    u, y = x @ p.T, torch.from_numpy(t).double()
    expected = weight * (1 - (F.normalize(u, dim=1) * F.normalize(y, dim=1)).sum(1)).mean()
    expected.backward()
    loss, gradient = teacher.learn(torch.from_numpy(v), np.arange(pairs))
    assert loss == pytest.approx(expected.item(), abs=1e-4)
    scale = 1 + x.grad.abs().max().item()
    torch.testing.assert_close(gradient.double() / scale, x.grad / scale, atol=2e-4, rtol=0)


@needs_kernels
def test_both_steps_learn_the_same_from_a_teacher(tmp_path, half, teacher):
    trainers = []
    for how in HOW.values():
        settings = {"max_steps": 20, "learning_rate": 0.01, "seed": 1, **how}
        trainers.append(
            make_trainer(tmp_path, half, teacher=str(teacher), teacher_weight=0.7, **settings)
        )
        trainers[-1].train()
    for name in ("loss", "teacher"):
        np.testing.assert_allclose(*(logged(trainer, name) for trainer in trainers), atol=1e-4)
    torch.testing.assert_close(*map(table_of, trainers), atol=1e-3, rtol=0)
    torch.testing.assert_close(
        *(trainer._teacher.projection for trainer in trainers), atol=1e-3, rtol=0
    )


def test_vectors_of_one_side_serve_for_both(tmp_path, half, teacher):
    vectors, rows = np.load(teacher), np.array([59, 0, 7])
    np.save(tmp_path / "one.npy", vectors[: len(half)])
    for path, second in (
        (tmp_path / "one.npy", vectors[rows]),
        (teacher, vectors[rows + len(half)]),
    ):
        found = Teacher(path, half, 1.0, 4, 0, torch.device("cpu")).targets(rows)
        np.testing.assert_array_equal(
            found, np.concatenate([vectors[rows], second]).astype(np.float32)
        )


def test_a_teacher_of_other_data_or_for_another_loss_is_refused(tmp_path, half, teacher):
    class Other(MarginHardNegativeLoss):
        pass

    np.save(tmp_path / "short.npy", np.load(teacher)[:-1])
    (tmp_path / "text.npy").write_text("0.1 0.2\n")
    for path, loss, message in (
        (
            tmp_path / "short.npy",
            MarginHardNegativeLoss,
            r"float16 of shape \(699, 6\), but .*x\.h5 has 350 pairs",
        ),
        (tmp_path / "text.npy", MarginHardNegativeLoss, r"not a \.npy file of teacher vectors"),
        (teacher, Other, "a teacher needs MarginHardNegativeLoss, not Other"),
    ):
        with pytest.raises(SettingsError, match=message):
            make_trainer(tmp_path, half, teacher=str(path), loss=loss)
    broken = np.zeros((8, 6), np.float32)
    broken[7, 2] = np.nan
    with pytest.raises(SettingsError, match="the teacher's vector 7 is infinite or NaN"):
        teacher_of(tmp_path, broken, 1.0, 4).targets(np.array([2, 3]))


@pytest.fixture(scope="module")
def with_unknown(tmp_path_factory, pairs, vocabulary):
    """Pairs of which every fifth has a first side without a known token, and every seventh a second
    side.
    """
    rows = []
    for number, (first, second) in enumerate(pairs[:120]):
        rows.append(("" if number % 5 == 0 else first, "\u200b" if number % 7 == 0 else second))
    return write_store(tmp_path_factory.mktemp("unknown") / "x.h5", rows, vocabulary)


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_kernels), False])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_the_row_of_the_unknown_id_stays_zeros(with_unknown, tmp_path, compiled, dropout):
    trainer = make_trainer(
        tmp_path, with_unknown, dropout, compiled_step=compiled, num_train_epochs=3
    )
    before = table_of(trainer)
    trainer.train()
    after = table_of(trainer)
    row = with_unknown.tokenizer().unknown_id
    assert not before[row].any() and not after[row].any()
    assert all(map(math.isfinite, logged(trainer, "loss")))
    assert 0 < (after - before).abs().max() < 1
    assert not trainer.model.encode(["", "\u200b"]).any()


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_kernels), False])
def test_an_earlier_row_of_the_unknown_id_is_trained(with_unknown, tmp_path, compiled):
    trainer = make_trainer(tmp_path, with_unknown, compiled_step=compiled, num_train_epochs=1)
    row = with_unknown.tokenizer().unknown_id
    trainer.embedding.embedding.weight.data[row] = 1.0
    trainer.train()
    change = (table_of(trainer)[row] - 1).abs().max()
    assert 0 < change < 1
