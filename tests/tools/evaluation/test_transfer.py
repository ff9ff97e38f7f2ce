"""Transfer tasks and inference on made data."""

import numpy as np
import pytest

from st_paragram.errors import TextError
from st_paragram.tools.evaluation import nli, transfer
from st_paragram.tools.evaluation.benchmarks import benchmarks_in
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.transfer import (
    Examples,
    Sentences,
    Task,
    best_classifier,
    cross_validated_accuracy,
    find,
    held_out_accuracy,
    read,
    reference,
)

PAIRS = "neutral\tda\tba\nentailment\tda lo\tda\ncontradiction\tda\tlo\nneutral\tba\tlo\n"

INFERENCE = nli.InferenceSet([1, 0, 2, 1], ["da", "da lo", "da", "ba"], ["ba", "da", "lo", "lo"])


def labelled(count, labels=2, noise=0.0, seed=0):
    """Embeddings around a center for each label, and labels; a share of these is wrong."""
    generator = np.random.default_rng(seed)
    gold = np.arange(count) % labels
    vectors = (3 * np.eye(labels, 6)[gold] + generator.normal(size=(count, 6))).astype(np.float32)
    wrong = generator.random(count) < noise
    return vectors, np.where(wrong, (gold + 1) % labels, gold).astype(str)


def test_the_strength_is_the_best_on_examples_held_out(monkeypatch):
    linear = pytest.importorskip("sklearn.linear_model")
    (train, labels), (other, gold) = labelled(60, noise=0.3), labelled(200, seed=1)
    alone = {}
    monkeypatch.setattr(transfer, "STRENGTHS", [1e-4, 1e-2, 1.0, 100.0])
    for strength in transfer.STRENGTHS:
        regression = linear.LogisticRegression(C=strength, tol=1e-8, max_iter=5000)
        regression.fit((train - train.mean(0)) / train.std(0), labels)
        alone[strength] = regression.score((other - train.mean(0)) / train.std(0), gold)
    assert len(set(alone.values())) > 1  # or nothing was chosen
    vectors, both = np.concatenate([train, other]), np.concatenate([labels, gold])
    held_out = np.arange(260) >= 60
    for refit, learned_from in ((False, 60), (True, 260)):
        found = best_classifier(Examples(vectors, both), held_out, refit)
        assert max(alone, key=alone.get) == found[-1].C
        assert found[0].n_samples_seen_ == learned_from


def test_tasks_are_scored_as_their_splits_allow():
    pytest.importorskip("sklearn")
    examples = Examples(*labelled(120))
    assert cross_validated_accuracy(examples) == cross_validated_accuracy(examples) > 0.9
    train, dev, test = [
        Examples(*labelled(count, 3, seed=seed)) for seed, count in enumerate((120, 60, 60))
    ]
    assert held_out_accuracy(train, None, test) > 0.9
    assert held_out_accuracy(train, dev, test) > 0.9
    generator = np.random.default_rng(5)  # labels without meaning are not found
    noise = Examples(
        generator.normal(size=(400, 6)).astype(np.float32),
        generator.integers(0, 2, 400).astype(str),
    )
    assert 0.4 < cross_validated_accuracy(noise) < 0.6


def test_the_majority_by_hand():
    three = Sentences(["a", "b", "c"], ["1", "0", "1"])
    test = Sentences(["d", "e"], ["0", "1"])
    scores = reference({"MR": Task(three), "TREC": Task(three, test=test)})
    assert [score.value for score in scores] == [pytest.approx(2 / 3), 0.5]


@pytest.fixture
def folder(tmp_path, texts, write):
    """Three tasks that one word decides."""
    rows = [(label, f"{texts[label]} {texts[label]}") for _ in range(30) for label in (0, 1)]
    for name in ("MR", "TREC.train", "TREC.test", "SST2.train", "SST2.dev", "SST2.test"):
        write(tmp_path / "transfer" / f"{name}.tsv", rows)
    return tmp_path


def test_tasks_are_read(folder, texts):
    (folder / "transfer" / "SST2.dev.tsv").unlink()
    assert list(find(folder, "transfer")) == ["MR", "TREC"] and benchmarks_in(folder) == [
        "transfer"
    ]
    tasks = read(Request([], data=folder))
    assert tasks["MR"].test is None and tasks["TREC"].dev is None and tasks["TREC"].test
    assert tasks["MR"].train.texts[:2] == [f"{text} {text}" for text in texts[:2]]
    assert tasks["MR"].train.labels[:3] == ["0", "1", "0"]


@pytest.mark.parametrize(
    ("benchmark", "text", "message"),
    [
        (transfer, "0\tda\nlo\n", "row 2 has 1 column \\('lo'\\), not 2; separate"),
        (transfer, "0\tda\n \tlo\n", "row 2: an empty label; write `label TAB text`"),
        (
            transfer,
            "0\tda\n" * 20 + "1\tlo\n" * 9,
            "20 of label 0, 9 of label 1; give two or more labels",
        ),
        (
            nli,
            "neutral\tda\tba\nyes\tda\tlo\n",
            "row 2: unknown label 'yes'; use entailment, neutral, contradiction",
        ),
        (nli, "neutral\tda\t \n", "row 1: an empty sentence"),
    ],
)
def test_wrong_files_are_refused(tmp_path, write, benchmark, text, message):
    path = write(tmp_path / ("MR.tsv" if benchmark is transfer else "snli.tsv"), text)
    with pytest.raises(TextError, match=f"{path}: {message}"):
        benchmark.read(Request([], data=tmp_path))


@pytest.mark.slow
def test_the_command_prints_and_records(folder, tiny, evaluate):
    pytest.importorskip("sklearn")
    printed, scores = evaluate(tiny, "--data", folder, "--untrained")
    assert (
        f"| {tiny} | 100.0 | 100.0 | 100.0 |" in printed
        and "| majority | 50.0 | 50.0 | 50.0 |" in printed
    )
    assert "USE_Trans (published" not in printed and "| untrained |" in printed
    assert "not the published test set: MR, " in printed
    assert {score.value for score in scores if score.model == tiny} == {1}


# --- inference


class Classifier:
    """Stands for a model with a classifier: the longer the premise, the more follows."""

    has_classifier = True

    def classify(self, premises, hypotheses):
        assert len(premises) == len(hypotheses)
        rows = [[0.8, 0.1, 0.1] if len(premise) > 2 else [0.1, 0.6, 0.3] for premise in premises]
        return np.array(rows, np.float32)


def test_sets_of_inference_are_found_by_name(tmp_path, write):
    for name in ("snli_test.en.tsv", "xnli_held.es.tsv", "other.tsv", "notes.txt"):
        write(tmp_path / name, PAIRS)
    assert list(nli.find(tmp_path, "nli")) == ["snli_test.en", "xnli_held.es"] and benchmarks_in(
        tmp_path
    ) == ["nli"]
    assert nli.read(Request([], data=tmp_path, languages=["es"])) == {"xnli_held.es": INFERENCE}


def test_accuracy_of_a_classifier_by_hand():
    scores = nli.score("m", Classifier(), {"snli": INFERENCE})
    assert [score.value for score in scores] == [0.75]


def test_models_without_a_classifier_are_left_out(tmp_path, tiny, write, evaluate, caplog):
    write(tmp_path / "snli_test.en.tsv", PAIRS)
    printed, scores = evaluate(tiny, "--data", tmp_path)
    assert "| majority | 50.0 |" in printed and [score.model for score in scores] == ["majority"]
    assert (
        f"{tiny}: has no classifier, since it was not trained on inference; left out" in caplog.text
    )
