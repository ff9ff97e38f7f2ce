"""Held-out rows of the tasks of a dual encoder: the split, the accuracy by hand, the record."""

import itertools

import numpy as np
import pytest
import torch
from support.data import make_pairs
from support.dual_encoder import TASKS, new_model, new_trainer, tiny, unlike_new, write_data

from st_paragram.cli.train import _task_outcomes
from st_paragram.core.model_directory.record import read_training_record
from st_paragram.errors import SettingsError
from st_paragram.families.muse import development
from st_paragram.families.muse.development import TaskAccuracy, hold_out
from st_paragram.families.muse.losses import DualEncoderTasks
from st_paragram.families.muse.task_rows import all_rows, file_rows
from st_paragram.runs.run import TrainingRun, run_training


@pytest.fixture(scope="module")
def data(tmp_path_factory, vocabulary):
    return write_data(tmp_path_factory.mktemp("tasks"), vocabulary, rows=400, few=90)


@pytest.fixture(scope="module")
def rows(data):
    return all_rows(data.bitext, data.more.tasks, (), tiny())


def texts_of(parts):
    """Task, side and ids of all texts of rows."""
    found = set()
    for part in parts:
        batch = part.batch(np.arange(len(part)))
        for side, (ids, offsets) in enumerate((batch.first, batch.second)):
            texts = [tuple(ids[begin:end].tolist()) for begin, end in itertools.pairwise(offsets)]
            found |= {(part.task, side, text) for text in texts}
    return found


def test_no_text_of_a_held_out_row_is_trained_on(rows):
    train, held_out = hold_out(rows, 0.1)
    assert [part.name for part in train] == [part.name for part in rows]
    # 90 rows are too few to hold out any
    assert [part.name for part in held_out] == [
        "translation xx",
        "translation yy",
        "qa en",
        "response en",
        "nli en",
    ]
    for part in held_out:
        before = next(len(other) for other in rows if other.name == part.name)
        assert 0.04 * before < len(part) < 0.18 * before
    assert not texts_of(train) & texts_of(held_out)
    # only rows that share a text are lost, too
    for part, kept in zip(rows, train, strict=True):
        held = next((len(other) for other in held_out if other.name == part.name), 0)
        assert len(kept) <= len(part) - held
    assert texts_of(rows) >= texts_of(train) | texts_of(held_out)


def test_the_split_does_not_depend_on_the_order_and_the_size_can_be_changed(
    tmp_path, vocabulary, rows, monkeypatch
):
    pairs = [f"{one}\t{other}\n" for one, other in make_pairs(300, seed=5)]
    (tmp_path / "en.tsv").write_text("".join(pairs))
    (tmp_path / "xx.tsv").write_text("".join(pairs[::-1]))
    parts = [
        file_rows(tmp_path / f"{name}.tsv", "response", name, vocabulary, tiny())
        for name in ("en", "xx")
    ]
    held_out = [hold_out([part], 0.1)[1] for part in parts]
    assert texts_of(held_out[0]) == texts_of(held_out[1])
    more = hold_out(parts[:1], 0.3)[1]
    assert texts_of(more) > texts_of(held_out[0]) and len(more[0]) > 60
    assert hold_out(rows, 0) == (rows, [])
    monkeypatch.setattr(development, "_MOST", 10)
    assert 3 <= len(hold_out(parts[:1], 0.3)[1][0]) <= 20
    utterance = pairs[0].split("\t")[0]
    same = [f"{utterance}\t{pair.replace(chr(9), ' ')}" for pair in pairs]
    (tmp_path / "en.tsv").write_text("".join(same))
    alike = file_rows(tmp_path / "en.tsv", "response", "en", vocabulary, tiny())
    with pytest.raises(SettingsError, match="response en: all rows share a text with held-out"):
        hold_out([alike], 0.3)


@pytest.mark.parametrize("architecture", ["cnn", "transformer"])
def test_accuracy_is_what_the_model_finds(data, rows, architecture):
    model = unlike_new(new_model(data.bitext, architecture))
    loss = DualEncoderTasks(model, tiny())
    held_out = hold_out(rows, 0.1)[1]
    evaluator = TaskAccuracy(loss, held_out, 7)
    shares = evaluator(model)
    assert list(shares) == [f"held-out_{task}_accuracy" for task in TASKS]
    for part in held_out:
        batch = part.batch(np.arange(len(part)))
        with torch.no_grad():
            first, second = loss.sides(batch)
            if part.task == "nli":
                right = model.heads.logits(first, second).argmax(1).numpy() == batch.labels
                assert evaluator.accuracy(part) == right.mean()
                continue
        texts = [np.split(ids, offsets[1:-1]) for ids, offsets in (batch.first, batch.second)]
        hits = []
        for queries, answers, side in ((first, second, 1), (second, first, 0)):
            if side == 1 or part.task == "translation":
                nearest = (queries @ answers.T).argmax(1).tolist()
                for row, found in enumerate(nearest):
                    hits.append(np.array_equal(texts[side][row], texts[side][found]))
        assert evaluator.accuracy(part) == pytest.approx(np.mean(hits))
    evaluator.measure("now")
    assert [score.task for score in evaluator.scores] == [part.name for part in held_out]
    translations = [score.accuracy for score in evaluator.scores[:2]]
    assert shares["held-out_translation_accuracy"] == pytest.approx(np.mean(translations))


def test_equal_candidates_are_equally_right():
    vectors = torch.eye(3)
    candidates = vectors[[1, 1, 2]]
    assert development._share_found(vectors, candidates, np.array([7, 7, 9])) == 1
    assert development._share_found(vectors, candidates, np.array([7, 8, 9])) == 2 / 3


def test_runs_record_the_accuracy_before_and_after(data, tmp_path, capsys):
    changes = {"dim": 16, "filters": 4, "max_length": 30, "batch_size": 32, "steps": 2}
    run = TrainingRun(
        "xx-yy",
        tmp_path / "muse",
        [str(data.bitext.path)],
        family="muse",
        more=data.more,
        overrides=changes | {"device": "cpu", "evaluate_steps": 1},
    )
    run_training(run)
    record = read_training_record(tmp_path / "muse")
    sources = ["translation xx", "translation yy", "qa en", "response en", "nli en"]
    assert [score.task for score in record.task_scores] == sources * 2
    assert [score.model for score in record.task_scores[::5]] == [
        "before training",
        "after training",
    ]
    assert record.tasks["qa en"] + record.task_scores[2].rows <= 400
    logged = [line for line in record.history if "eval_held-out_nli_accuracy" in line]
    assert len(logged) == 2
    card = (tmp_path / "muse/README.md").read_text("utf-8")
    score = record.task_scores[-1]
    row = f"| nli en ({score.rows}) | after training | {100 * score.accuracy:.1f} |"
    assert row in card
    lines = list(_task_outcomes(record))
    assert lines[3].startswith("held-out rows of nli, right: ")
    assert lines[3].endswith(f"{100 * score.accuracy:.1f} % after training")


def test_held_out_rows_of_a_resumed_run_are_scored_before_its_first_step(data, tmp_path):
    run = tiny(steps=2)
    straight = new_trainer(data, run, tmp_path / "a", save_strategy="steps", save_steps=1)
    straight.args.save_total_limit = None
    straight.train()
    resumed = new_trainer(data, run, tmp_path / "b")
    resumed.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-1"))
    assert resumed.task_scores == straight.task_scores and len(straight.task_scores) == 10
