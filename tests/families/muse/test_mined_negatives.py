"""Negatives mined among batches that were drawn together: which they are, what a step makes of them, resuming."""

from operator import eq

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.dual_encoder import ARCHITECTURES, new_trainer, only, tiny, write_data

from st_paragram.errors import SettingsError
from st_paragram.families.muse.dual_encoder_ranking import ranking_loss
from st_paragram.families.muse.mined_negatives import MinedNegatives, PoolTexts
from st_paragram.families.muse.task_sampler import Pool
from st_paragram.families.muse.trainer import task_batch
from st_paragram.learning.losses.hardest_negatives import Precision

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def data(tmp_path_factory, vocabulary):
    return write_data(tmp_path_factory.mktemp("tasks"), vocabulary, rows=40, few=3)


def random_texts(rows, seed, repeat=False):
    """Vectors, and labels of texts of which some are equal."""
    random = np.random.default_rng(seed)
    vectors = [torch.from_numpy(random.standard_normal((rows, 8)).astype(np.float32)) for _ in range(2)]
    labels = [torch.from_numpy(random.integers(0, rows // 2 if repeat else 10**9, rows)) for _ in range(2)]
    return PoolTexts(tuple(vectors), tuple(labels))


def plainly(texts, rows):
    """For each pair the row of its hardest second text and of its hardest first text, by a loop."""
    first, second = (F.normalize(each, dim=1).double().numpy() for each in texts.vectors)
    a, b = (each.tolist() for each in texts.labels)
    n, found = len(rows), ([], [])
    for own, other, chosen in ((first, second, found[0]), (second, first, found[1])):
        for i in range(n):
            allowed = [j for j in range(n) if j != i and a[i] != a[j] and b[i] != b[j]]
            allowed = [j for j in allowed if a[i] != b[j] and b[i] != a[j]]
            chosen.append(rows[max(allowed, key=lambda j, i=i, own=own, other=other: own[i] @ other[j])])
    return found


@pytest.mark.parametrize("repeat", [False, True])
def test_negatives_are_the_hardest_of_the_pool(repeat):
    """Pairs that share a text are never each other's; what is in the batch already is left out."""
    rows = np.random.default_rng(1).permutation(100)[:24]
    pool, texts, asked = Pool(2, 1, 3, np.split(rows, [8, 16])), random_texts(24, 4, repeat), []

    def read(source, given):
        asked.append((source, given.tolist()))
        return texts

    mined = MinedNegatives(read, Precision.FLOAT32)
    expected = plainly(texts, rows)
    for place, batch in enumerate(pool.batches):
        found = mined.of(pool, place)
        for which in range(2):
            of_batch = set(expected[which][8 * place : 8 * place + 8])
            assert found[which].tolist() == sorted(of_batch - set(batch.tolist()))
    assert asked == [(2, rows.tolist())]  # once a pool


def test_each_source_keeps_its_pool_until_the_next():
    asked = []

    def read(source, rows):
        asked.append(source)
        return random_texts(len(rows), source)

    mined = MinedNegatives(read)
    pools = [Pool(source, 0, number, [np.arange(6), np.arange(6, 12)]) for source in (0, 1) for number in (0, 1)]
    for pool, place in [(pools[0], 0), (pools[2], 0), (pools[0], 1), (pools[2], 1), (pools[1], 0), (pools[3], 1)]:
        mined.of(pool, place)
    assert asked == [0, 1, 0, 1]


def test_what_was_mined_is_read_back(tmp_path):
    def none(source, rows):
        raise AssertionError("nothing is to be mined again")

    mined = MinedNegatives(lambda source, rows: random_texts(len(rows), source))
    pools = [Pool(0, 2, 1, [np.arange(9)[::-1], np.arange(9, 18)]), Pool(3, 0, 0, [np.arange(5)])]
    expected = [[each.tolist() for each in mined.of(pool, 0)] for pool in pools]
    mined.save(tmp_path)
    read = MinedNegatives(none)
    read.load(tmp_path, [18, 1, 1, 5])
    assert [[each.tolist() for each in read.of(pool, 0)] for pool in pools] == expected
    for sizes, told in (([18, 1, 1], "of other sources"), ([17, 1, 1, 5], "rows that do not exist")):
        with pytest.raises((TypeError, ValueError), match=told):
            MinedNegatives(none).load(tmp_path, sizes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pools": np.zeros((2, 3), np.int64)}, "no table of pools"),
        ({"pools": np.array([[0, 0, -1, 3]])}, "no table of pools"),
        ({"pools": np.array([[0, 0, 0, 3], [0, 0, 1, 0]])}, "other sources"),
        ({"pools": np.array([[0, 0, 0, 4]])}, "not a negative for each pair"),
        ({"firsts": np.array([0, 1])}, "not a negative for each pair"),
        ({"seconds": np.array([0, -1, 1])}, "rows that do not exist"),
        ({"seconds": np.zeros(3)}, "Cannot cast"),
    ],
)
def test_files_that_were_not_written_here(tmp_path, changes, told):
    arrays = {"pools": np.array([[0, 0, 0, 3]]), "seconds": np.arange(3), "firsts": np.arange(3)}
    np.savez(tmp_path / "mined_negatives.npz", **(arrays | changes))
    with pytest.raises((TypeError, ValueError), match=told):
        MinedNegatives(random_texts).load(tmp_path, [9])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("task", ["translation", "qa", "response"])
def test_training_is_a_plain_loop(data, tmp_path, architecture, task):
    """The loss of a batch has the mined texts behind the batch's own, and none that shares a text with the pair."""
    run = {"negatives": "mined", "steps": 5, "dropout": 0.0, "schedule": "constant", "learning_rate": 1e-2}
    run = tiny(architecture, **only(task), **run, clip_norm=0.0, qa_margin=0.1)
    arguments = {"logging_steps": 1, "adam_epsilon": 1e-2, "mining_precision": "float32"}
    trainer, plain = (new_trainer(data, run, tmp_path / name, **arguments) for name in "ab")
    trainer.train()
    loss, losses, mined, counts = plain.loss, [], {}, 0
    optimizer = torch.optim.AdamW([p for p in loss.parameters() if p.requires_grad], 1e-2, eps=1e-2, weight_decay=0.0)
    for step in range(5):
        pool, place = plain._sampler.pool_at(step)
        of, rows = plain._rows[pool.source], pool.batches[place]
        if (key := (pool.source, pool.epoch, pool.number)) not in mined:
            mined[key] = mined_plainly(loss, of, np.concatenate(pool.batches))
        seconds, firsts = (
            np.array(sorted({chosen[row] for row in rows.tolist()} - set(rows.tolist())), int) for chosen in mined[key]
        )
        firsts = firsts if task == "translation" else firsts[:0]
        counts += len(seconds) + len(firsts)
        columns = np.concatenate([rows, firsts]), np.concatenate([rows, seconds])
        x, y = loss.train().sides(task_batch(of, *columns, torch.device("cpu")))
        total = one_way(of, x[: len(rows)], y, rows, columns[1], run.margin if task == "translation" else 0.1)
        if task == "translation":
            total = (total + one_way(of, y[: len(rows)], x, rows, columns[0], run.margin)) / 2
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        losses.append(total.item())
    assert counts > 0
    np.testing.assert_allclose(logged(trainer, "loss"), losses, rtol=1e-4, atol=1e-5)
    assert sum(logged(trainer, "mined_per_pair")) == pytest.approx(counts / run.batch_size)
    for name, tensor in trainer.loss.state_dict().items():
        torch.testing.assert_close(tensor, loss.state_dict()[name], atol=1e-4, rtol=0)


def logged(trainer, name):
    return [entry[name] for entry in trainer.state.log_history if name in entry]


@torch.no_grad()
def mined_plainly(loss, of, rows):
    """For each row that of its hardest second text, and that of its hardest first text."""
    vectors = loss.eval().sides(task_batch(of, rows, rows, torch.device("cpu")))
    texts = [list(of.store.texts(side, of.of_store(rows))) for side in "ab"]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts[0] + texts[1]))}
    labels = tuple(torch.tensor([numbers[text] for text in side]) for side in texts)
    return [dict(zip(rows.tolist(), found, strict=True)) for found in plainly(PoolTexts(vectors, labels), rows)]


def one_way(of, own, others, rows, other_rows, margin):
    """Cross-entropy of each row of `own` over `others`, one by one."""
    asked, among = (
        list(zip(*(of.store.texts(side, of.of_store(each)) for side in "ab"), strict=True))
        for each in (rows, other_rows)
    )
    losses = []
    for i, texts in enumerate(asked):
        allowed = [j for j, both in enumerate(among) if j == i or not any(map(eq, texts, both))]
        logits = torch.stack([20.0 * (own[i] @ others[j] - margin * (i == j)) for j in allowed])
        losses.append(-logits.log_softmax(0)[allowed.index(i)])
    return torch.stack(losses).mean()


def test_without_further_texts_it_is_the_loss_of_the_batch(data, tmp_path):
    """One batch a pool has nothing to mine beside itself."""
    runs = [
        tiny(**only("translation"), steps=3, length_buckets=1, similar_batches=1, dropout=0.0, negatives=negatives)
        for negatives in ("batch", "mined")
    ]
    trainers = [new_trainer(data, run, tmp_path / run.negatives, logging_steps=1) for run in runs]
    for trainer in trainers:
        trainer.train()
    first, second = (trainer.loss.state_dict() for trainer in trainers)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert logged(trainers[1], "mined_per_pair") == [0.0] * 3


def test_mined_texts_teach(data, tmp_path):
    """They make the loss harder, and a run meets some."""
    x, y = torch.eye(4)[:2], torch.eye(4)
    more = F.normalize(torch.tensor([[1.0, 0.2, 0.0, 0.0]]), dim=1)
    trainer = new_trainer(data, tiny(**only("translation")), tmp_path / "x")
    none = torch.zeros(2, 3, dtype=torch.bool)
    harder = trainer.loss.ranking("translation", x, torch.cat([y[:2], more]), none, none[:, :2])
    assert harder > ranking_loss(x, y[:2], 20.0, 0.3)
    trainer = new_trainer(
        data, tiny(**only("translation"), negatives="mined", steps=4), tmp_path / "y", logging_steps=1
    )
    trainer.train()
    assert max(logged(trainer, "mined_per_pair")) > 0.3


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_run_resumes_to_the_bit(data, tmp_path, architecture):
    """In the middle of a pool, whose negatives the weights of now would not give."""
    shares = {"translation_share": 0.5, "qa_share": 0.5, "response_share": 0.0, "nli_share": 0.0}
    run = tiny(architecture, **shares, negatives="mined", steps=8, dropout=0.3, learning_rate=3e-2)
    straight = new_trainer(data, run, tmp_path / "straight")
    straight.train()
    new_trainer(data, run, tmp_path / "run", save_strategy="steps", save_steps=3, save_total_limit=None).train()
    checkpoint = tmp_path / "run" / "checkpoint-3"
    resumed = new_trainer(data, run, tmp_path / "other")
    resumed.train(resume_from_checkpoint=str(checkpoint))
    first, second = (trainer.loss.state_dict() for trainer in (straight, resumed))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_run_without_mining_does_not_resume_as_one_with_it(data, tmp_path):
    run = tiny(**only("translation"), steps=4)
    new_trainer(data, run, tmp_path / "run", save_strategy="steps", save_steps=2).train()
    other = new_trainer(data, tiny(**only("translation"), steps=4, negatives="mined"), tmp_path / "run")
    with pytest.raises(SettingsError, match=r"checkpoint-.*mined_negatives.npz") as caught:
        other.train(resume_from_checkpoint=True)
    assert "\n" not in str(caught.value)
