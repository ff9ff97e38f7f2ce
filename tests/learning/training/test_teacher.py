"""Learning from a teacher: the term of the loss, both steps, checkpoints, and what is refused."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support.teacher import taught_store, write_vectors
from transformers import TrainerCallback

from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError, StoreError
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.learning.training.mega_batch.arguments import MegaBatchTrainingArguments
from st_paragram.learning.training.mega_batch.lesson import Lesson
from st_paragram.learning.training.mega_batch.teacher import TeacherVectors
from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer
from st_paragram.learning.training.settings import TrainingSettings

needs_kernels = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")
ROWS = 60


@pytest.fixture(scope="module")
def taught(tmp_path_factory, pairs, vocabulary):
    return taught_store(tmp_path_factory.mktemp("taught") / "x.h5", pairs[:ROWS], vocabulary)


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(3).standard_normal((2, ROWS, 6)).astype(np.float32)


@pytest.fixture
def folder(tmp_path, taught, vectors):
    return write_vectors(tmp_path / "vectors", texts(taught), vectors, shard_rows=25)


def texts(store, sides="ab"):
    return [store.settings["texts"][side] for side in sides]


def test_the_term_and_its_gradient_by_hand():
    """Two sentences with v = (3, 4) and (0, 2), P = the identity, t = (1, 0) and (0, 5): cosines 0.6 and 1.

    d(1 - cos) / dv = -(t / |t| - cos v / |v|) / |v| = -((1, 0) - 0.6 (0.6, 0.8)) / 5 = (-0.128, 0.096).
    """
    lesson = Lesson(2.0, 2, 2, seed=0)
    with torch.no_grad():
        lesson.projection.copy_(torch.eye(2))
    v, t = np.array([[3, 4], [0, 2]], np.float32), np.array([[1, 0], [0, 5]], np.float32)
    loss, gradient = lesson.learn(v, t)
    assert loss == pytest.approx(2.0 * 0.2)
    np.testing.assert_allclose(gradient, [[-0.128, 0.096], [0, 0]], atol=1e-6)
    assert lesson.mean_distance() == pytest.approx(0.2)
    assert math.isnan(lesson.mean_distance())
    # The first step of Adam moves a number by its rate, against the sign of its gradient, d(1 - cos) / dP = du v^T.
    moved = lesson.projection.detach().numpy() - np.eye(2)
    np.testing.assert_allclose(moved, 1e-3 * np.array([[1, 1], [-1, -1]]), rtol=1e-3)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 7), st.integers(1, 12), st.floats(0.1, 10))
def test_any_batch_has_autograds_gradient(seed, dim, teacher_dim, count, weight):
    random = np.random.default_rng(seed)
    lesson = Lesson(weight, dim, teacher_dim, seed)
    v, t = (random.standard_normal((count, width)).astype(np.float32) for width in (dim, teacher_dim))
    p = lesson.projection.detach().clone().double().requires_grad_()
    x = torch.from_numpy(v).double().requires_grad_()
    u, y = x @ p.T, torch.from_numpy(t).double()
    expected = weight * (1 - (F.normalize(u, dim=1) * F.normalize(y, dim=1)).sum(1)).mean()
    expected.backward()
    loss, gradient = lesson.learn(v, t)
    assert loss == pytest.approx(expected.item(), abs=1e-4)
    scale = 1 + x.grad.abs().max().item()
    np.testing.assert_allclose(gradient / scale, x.grad.numpy() / scale, atol=2e-4)


class Logs(TrainerCallback):
    def __init__(self):
        self.losses, self.distances = [], []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.losses.append(logs["loss"])
            self.distances.append(logs.get("teacher"))


def make_trainer(folder, store, teacher="", dropout=0.0, callbacks=(), dims=(), **settings):
    torch.manual_seed(0)
    model = pipeline(SentencePieceEmbedding(store.tokenizer(), 16, dropout=dropout), device="cpu")
    given = {
        "per_device_train_batch_size": 8,
        "megabatch_size": 3,
        "anneal_interval": 4,
        "mining_precision": "float32",
        "logging_steps": 1,
        "save_strategy": "no",
        "use_cpu": True,
        "seed": 1,
        "max_steps": 20,
        "learning_rate": 0.01,
        "teacher": str(teacher),
    }
    arguments = MegaBatchTrainingArguments(str(folder), **{**given, **settings})
    return MegaBatchTrainer(
        model, arguments, store, MarginHardNegativeLoss(model, matryoshka_dims=dims), callbacks=list(callbacks)
    )


def trained(trainer, **how):
    trainer.train(**how)
    lesson = trainer._lesson
    return trainer.embedding.embedding.weight.detach().clone(), None if lesson is None else lesson.projection.detach()


HOW = {"compiled": {}, "torch": {"compiled_step": False}, "dense": {"row_lazy_adam": False, "optim": "adamw_torch"}}


@needs_kernels
def test_both_steps_learn_the_same_from_a_teacher_and_the_first_components(tmp_path, taught, folder):
    results = []
    for name in ("compiled", "torch"):
        trainer = make_trainer(tmp_path / name, taught, folder, dims=(2, 5), max_steps=3, **HOW[name])
        results.append(trained(trainer))
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second, atol=1e-3, rtol=0)
    whole = trained(make_trainer(tmp_path / "whole", taught, folder, max_steps=3))
    assert (results[0][0] - whole[0]).abs().max() > 1e-2


@needs_kernels
@pytest.mark.parametrize(("margin_weight", "every"), [(1.0, 1), (0.3, 3), (0.0, 100)])
@pytest.mark.parametrize("how", ["torch", "dense"])
def test_both_steps_learn_the_same_from_a_teacher(tmp_path, taught, folder, how, margin_weight, every):
    results, logs = [], []
    for name in ("compiled", how):
        logs.append(Logs())
        settings = {"teacher_weight": 0.7, "margin_weight": margin_weight, "teacher_every": every} | HOW[name]
        results.append(trained(make_trainer(tmp_path / name, taught, folder, callbacks=logs[-1:], **settings)))
    np.testing.assert_allclose(logs[0].losses, logs[1].losses, atol=1e-4)
    np.testing.assert_allclose(logs[0].distances, logs[1].distances, atol=1e-4)
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second, atol=1e-3, rtol=0)


@needs_kernels
def test_the_whole_loss_has_autograds_gradient(tmp_path, taught, folder, vectors):
    """One step of each: the first moment of Adam is a tenth of the gradient."""
    trainer = make_trainer(tmp_path / "run", taught, folder, max_steps=1, margin_weight=0.5, teacher_weight=2.0)
    start = trainer.embedding.embedding.weight.detach().clone().double().requires_grad_()
    projection = trainer._lesson.projection.detach().clone().double()
    trainer.train()
    columns, texts_ = trainer._current.columns[:, :8], trainer._current.texts
    means = [start[torch.from_numpy(texts_.take(np.array([x]))[0]).long()].mean(0) for x in columns.ravel()]
    s, t, of_s, of_t = torch.stack(means).view(4, -1, 16)
    cos = F.cosine_similarity
    margin = F.relu(0.4 - cos(s, t) + cos(s, of_s)).mean() + F.relu(0.4 - cos(s, t) + cos(t, of_t)).mean()
    targets = vectors[:, texts_.rows].reshape(-1, 6)[columns[:2].ravel()].astype(np.float16)
    taught_ = (1 - cos(torch.cat([s, t]) @ projection.T, torch.from_numpy(targets).double())).mean()
    (0.5 * margin + 2.0 * taught_).backward()
    table = trainer.embedding.embedding.weight
    moment = trainer.row_lazy_adam().state[table]["exp_avg"]
    torch.testing.assert_close(moment.double() * 10, start.grad, atol=1e-6, rtol=1e-4)


def test_the_teacher_alone_needs_no_mining(tmp_path, taught, folder, monkeypatch):
    monkeypatch.setattr("st_paragram.learning.training.mega_batch.trainer.hardest_negatives", None)
    logs = Logs()
    trained(make_trainer(tmp_path / "run", taught, folder, callbacks=[logs], margin_weight=0, max_steps=200))
    assert logs.distances[-1] < 0.5 * logs.distances[0]
    np.testing.assert_allclose(logs.losses, logs.distances, atol=1e-4)


@needs_kernels
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_resume_is_exact(tmp_path, taught, folder, how, dropout):
    settings = {"save_strategy": "steps", "save_steps": 7, "save_total_limit": None} | HOW[how]
    whole = trained(make_trainer(tmp_path / "run", taught, folder, dropout, **settings))
    for checkpoint in (7, 14):
        trainer = make_trainer(tmp_path / "again", taught, folder, dropout, **settings)
        again = trained(trainer, resume_from_checkpoint=str(tmp_path / "run" / f"checkpoint-{checkpoint}"))
        assert all(torch.equal(*pair) for pair in zip(whole, again, strict=True))


def test_a_checkpoint_of_another_teacher_is_refused(tmp_path, taught, folder, vectors):
    settings = {"save_strategy": "steps", "save_steps": 7}
    make_trainer(tmp_path / "run", taught, folder, **settings).train()
    make_trainer(tmp_path / "plain", taught, **settings).train()
    other = write_vectors(tmp_path / "other", texts(taught), -vectors)
    wider = write_vectors(tmp_path / "wider", texts(taught), np.repeat(vectors, 2, axis=2))
    for teacher in (other, wider):
        with pytest.raises(SettingsError, match="a checkpoint of another teacher's vectors; resume with the same"):
            make_trainer(tmp_path / "run", taught, teacher, **settings).train(resume_from_checkpoint=True)
    with pytest.raises(SettingsError, match="a checkpoint without a teacher; resume with the same"):
        make_trainer(tmp_path / "plain", taught, folder, **settings).train(resume_from_checkpoint=True)


def test_the_rows_of_a_folder_are_those_of_the_store(folder, taught, vectors):
    teacher = TeacherVectors(folder, taught)
    rows = np.array([59, 0, 24, 25, 7])
    expected = np.concatenate([vectors[0][rows], vectors[1][rows]]).astype(np.float16)
    np.testing.assert_array_equal(teacher.take(rows), expected)
    assert (teacher.name, teacher.dim) == ("wise", 6)


def test_texts_in_another_order_and_of_one_side(tmp_path, taught, vectors):
    rows = np.arange(ROWS)
    turned = write_vectors(tmp_path / "ba", texts(taught, "ba"), vectors[::-1])
    np.testing.assert_array_equal(TeacherVectors(turned, taught).take(rows), vectors.reshape(-1, 6).astype(np.float16))
    for number, side in enumerate("ab"):
        one = TeacherVectors(write_vectors(tmp_path / side, texts(taught, side), vectors[number : number + 1]), taught)
        expected = np.concatenate([vectors[number]] * 2).astype(np.float16)
        np.testing.assert_array_equal(one.take(rows), expected)


def test_a_folder_of_another_store_is_refused(tmp_path, taught, store, pairs, vocabulary, folder, vectors):
    other = taught_store(tmp_path / "other.h5", pairs[1 : ROWS + 1], vocabulary)
    with pytest.raises(StoreError, match=r"vectors of 0.txt of 60 lines, .* which is not the text of .*other.h5"):
        TeacherVectors(folder, other)
    with pytest.raises(StoreError, match=r"en-xx.h5: its text was not kept, .* prepare it again with .*--keep-text"):
        TeacherVectors(folder, store)
    short = write_vectors(tmp_path / "short", texts(taught), vectors[:, :-1])
    with pytest.raises(StoreError, match="59 lines, which is not the text of"):
        TeacherVectors(short, taught)
    fewer = write_vectors(tmp_path / "fewer", texts(taught), vectors[:, :-1], lines=ROWS)
    with pytest.raises(StoreError, match=r"118 vectors of 120 lines; make the embeddings again"):
        TeacherVectors(fewer, taught)
    with pytest.raises(StoreError, match=r"give a folder from st-paragram embed --sharded"):
        TeacherVectors(tmp_path, taught)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_without_numbers_is_refused(tmp_path, taught, vectors, value):
    broken = vectors.copy()
    broken[1, 8, 2] = value
    teacher = TeacherVectors(write_vectors(tmp_path / "broken", texts(taught), broken), taught)
    assert len(teacher.take(np.array([7]))) == 2
    with pytest.raises(StoreError, match="broken: vector 68 has infinite components or NaN; make the embeddings again"):
        teacher.take(np.array([7, 8]))


def test_another_loss_is_refused(tmp_path, taught, folder):
    class Other(MarginHardNegativeLoss):
        pass

    model = pipeline(SentencePieceEmbedding(taught.tokenizer(), 8), device="cpu")
    for settings in ({"teacher": str(folder)}, {"margin_weight": 2.0}):
        arguments = MegaBatchTrainingArguments(str(tmp_path / "run"), use_cpu=True, **settings)
        with pytest.raises(SettingsError, match="the loss is Other, and a teacher or a margin_weight is given"):
            MegaBatchTrainer(model, arguments, taught, Other(model))


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(SettingsError, match="margin_weight is 0, and there is no teacher"):
        TrainingSettings(margin_weight=0)
    with pytest.raises(SettingsError, match="teacher_weight"):
        TrainingSettings(teacher="x", teacher_weight=0)
