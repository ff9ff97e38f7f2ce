"""Learning from a teacher: the term of the loss, both steps, checkpoints, and what is refused."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from support.data import write_store
from transformers import TrainerCallback

from st_paragram import SentencePieceEmbedding, pipeline
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.training.mega_batch_trainer import MegaBatchTrainer, MegaBatchTrainingArguments
from st_paragram.learning.training.teacher import Teacher

needs_kernels = pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")
ROWS = 60


@pytest.fixture(scope="module")
def taught(tmp_path_factory, pairs, vocabulary):
    return write_store(tmp_path_factory.mktemp("taught") / "x.h5", pairs[:ROWS], vocabulary)


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(3).standard_normal((2 * ROWS, 6)).astype(np.float16)


@pytest.fixture
def file(tmp_path, vectors):
    np.save(tmp_path / "teacher.npy", vectors)
    return tmp_path / "teacher.npy"


def teacher_of(folder, vectors, weight, dim, seed=0):
    """With vectors of both sides."""
    np.save(folder / "t.npy", vectors)
    pairs = range(len(vectors) // 2)  # of which a teacher asks how many there are
    return Teacher(folder / "t.npy", pairs, weight, dim, seed, torch.device("cpu"))


def test_the_term_and_its_gradient_by_hand(tmp_path):
    """Two sentences with v = (3, 4) and (0, 2), P = the identity, t = (1, 0) and (0, 5): cosines 0.6 and 1.

    d(1 - cos) / dv = -(t / |t| - cos v / |v|) / |v| = -((1, 0) - 0.6 (0.6, 0.8)) / 5 = (-0.128, 0.096).
    """
    teacher = teacher_of(tmp_path, np.array([[1, 0], [0, 5]], np.float32), 2.0, 2)
    with torch.no_grad():
        teacher.projection.copy_(torch.eye(2))
    loss, gradient = teacher.learn(torch.tensor([[3.0, 4.0], [0.0, 2.0]]), np.array([0]))
    assert loss == pytest.approx(2.0 * 0.2)
    np.testing.assert_allclose(gradient, [[-0.128, 0.096], [0, 0]], atol=1e-6)
    assert teacher.distances == pytest.approx([0.2])
    # The first step of Adam moves a number by its rate, against the sign of its gradient, d(1 - cos) / dP = du v^T.
    moved = teacher.projection.detach().numpy() - np.eye(2)
    np.testing.assert_allclose(moved, 1e-3 * np.array([[1, 1], [-1, -1]]), rtol=1e-3)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 7), st.integers(1, 6), st.floats(0.1, 10))
def test_any_batch_has_autograds_gradient(tmp_path_factory, seed, dim, teacher_dim, pairs, weight):
    random = np.random.default_rng(seed)
    v, t = (random.standard_normal((2 * pairs, width)).astype(np.float32) for width in (dim, teacher_dim))
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


class Losses(TrainerCallback):
    def __init__(self):
        self.values = []

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" in logs:
            self.values.append((logs["loss"], logs["teacher"]))


def make_trainer(folder, store, teacher="", dropout=0.0, callbacks=(), **settings):
    torch.manual_seed(0)
    model = pipeline(SentencePieceEmbedding(store.tokenizer(), 16, dropout=dropout), device="cpu")
    most = {"per_device_train_batch_size": 8, "megabatch_size": 3, "anneal_interval": 4, "learning_rate": 0.01}
    most |= {"mining_precision": "float32", "logging_steps": 1, "save_strategy": "no", "max_steps": 20, "seed": 1}
    arguments = MegaBatchTrainingArguments(str(folder), use_cpu=True, teacher=str(teacher), **most | settings)
    return MegaBatchTrainer(model, arguments, store, callbacks=list(callbacks))


def trained(trainer, **how):
    trainer.train(**how)
    return trainer.embedding.embedding.weight.detach().clone(), trainer._teacher.projection.detach().clone()


HOW = {"compiled": {}, "torch": {"compiled_step": False}}


@needs_kernels
def test_both_steps_learn_the_same_from_a_teacher(tmp_path, taught, file):
    logs = [Losses(), Losses()]
    results = [
        trained(make_trainer(tmp_path / name, taught, file, callbacks=[log], teacher_weight=0.7, **HOW[name]))
        for name, log in zip(HOW, logs, strict=True)
    ]
    np.testing.assert_allclose(logs[0].values, logs[1].values, atol=1e-4)
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second, atol=1e-3, rtol=0)


@needs_kernels
def test_the_whole_loss_has_autograds_gradient(tmp_path, taught, file, vectors):
    """One step: the first moment of Adam is a tenth of the gradient."""
    trainer = make_trainer(tmp_path / "run", taught, file, max_steps=1, teacher_weight=2.0)
    start = trainer.embedding.embedding.weight.detach().clone().double().requires_grad_()
    projection = trainer._teacher.projection.detach().clone().double()
    trainer.train()
    columns, texts = trainer._current.columns[:, :8], trainer._current
    means = [start[torch.from_numpy(texts.take(np.array([x]))[0]).long()].mean(0) for x in columns.ravel()]
    s, t, of_s, of_t = torch.stack(means).view(4, -1, 16)
    cos = F.cosine_similarity
    margin = F.relu(0.4 - cos(s, t) + cos(s, of_s)).mean() + F.relu(0.4 - cos(s, t) + cos(t, of_t)).mean()
    targets = np.concatenate([vectors[texts.rows[:8]], vectors[texts.rows[:8] + ROWS]])
    term = (1 - cos(torch.cat([s, t]) @ projection.T, torch.from_numpy(targets).double())).mean()
    (margin + 2.0 * term).backward()
    moment = trainer._compiled.state[trainer._compiled.table]["exp_avg"]
    torch.testing.assert_close(moment.double() * 10, start.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("how", [pytest.param("compiled", marks=needs_kernels), "torch"])
def test_resume_is_exact(tmp_path, taught, file, how):
    settings = {"save_strategy": "steps", "save_steps": 7, "save_total_limit": None, "dropout": 0.3} | HOW[how]
    whole = trained(make_trainer(tmp_path / "run", taught, file, **settings))
    for checkpoint in (7, 14):
        trainer = make_trainer(tmp_path / "again", taught, file, **settings)
        again = trained(trainer, resume_from_checkpoint=str(tmp_path / "run" / f"checkpoint-{checkpoint}"))
        assert all(torch.equal(*pair) for pair in zip(whole, again, strict=True))


def test_vectors_of_one_side_serve_for_both(tmp_path, taught, file, vectors):
    rows = np.array([59, 0, 7])
    np.save(tmp_path / "one.npy", vectors[:ROWS])
    for path, second in ((tmp_path / "one.npy", vectors[rows]), (file, vectors[rows + ROWS])):
        found = Teacher(path, taught, 1.0, 4, 0, torch.device("cpu")).targets(rows)
        np.testing.assert_array_equal(found, np.concatenate([vectors[rows], second]).astype(np.float32))


def test_vectors_that_are_not_of_the_store_are_refused(tmp_path, taught, vectors):
    np.save(tmp_path / "short.npy", vectors[:-1])
    with pytest.raises(SettingsError, match=r"float16 of shape \(119, 6\), where .*x\.h5 has 60 pairs"):
        make_trainer(tmp_path, taught, tmp_path / "short.npy")
    (tmp_path / "text.npy").write_text("0.1 0.2\n")
    with pytest.raises(SettingsError, match=r"not a \.npy file of a teacher's vectors"):
        make_trainer(tmp_path, taught, tmp_path / "text.npy")
    broken = vectors.copy()
    broken[67, 2] = np.nan
    with pytest.raises(SettingsError, match="the teacher's vector 67 is infinite or NaN"):
        teacher_of(tmp_path, broken, 1.0, 4).targets(np.array([7, 8]))


def test_another_loss_is_refused(tmp_path, taught, file):
    class Other(MarginHardNegativeLoss):
        pass

    model = pipeline(SentencePieceEmbedding(taught.tokenizer(), 8), device="cpu")
    arguments = MegaBatchTrainingArguments(str(tmp_path / "run"), use_cpu=True, teacher=str(file))
    with pytest.raises(SettingsError, match="a teacher goes with MarginHardNegativeLoss, not with Other"):
        MegaBatchTrainer(model, arguments, taught, Other(model))
