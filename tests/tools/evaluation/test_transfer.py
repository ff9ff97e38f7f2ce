"""Transfer tasks and inference on made data."""

import numpy as np
import pytest

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError, TextError
from st_paragram.families.muse.nli import NliRun, nli_files, read_nli, read_nli_sets, score_nli
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.benchmarks import benchmarks_in, report
from st_paragram.tools.evaluation.record import new_record, read_records, write_records
from st_paragram.tools.evaluation.transfer import LabelledTexts, TransferTask, read_transfer, transfer_tasks

PAIRS = "neutral\tda\tba\nentailment\tda lo\tda\ncontradiction\tda\tlo\nneutral\tba\tlo\n"


def labelled(count, labels=2, noise=0.0, seed=0):
    """Embeddings around a centre for each label, and labels; a share of these is wrong."""
    from st_paragram.tools.evaluation.linear_classifier import Examples

    generator = np.random.default_rng(seed)
    gold = np.arange(count) % labels
    centres = 3 * np.eye(labels, 6)
    vectors = (centres[gold] + generator.normal(size=(count, 6))).astype(np.float32)
    wrong = generator.random(count) < noise
    return Examples(vectors, np.where(wrong, (gold + 1) % labels, gold).astype(str))


def test_folds_have_each_row_once_and_equal_shares():
    pytest.importorskip("sklearn")
    from st_paragram.tools.evaluation.linear_classifier import folds

    labels = np.array(["a"] * 40 + ["b"] * 20)
    parts = folds(labels, 10, 0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(60))
    assert all((labels[part] == "a").sum() == 4 and len(part) == 6 for part in parts)
    assert [part.tolist() for part in parts] == [part.tolist() for part in folds(labels, 10, 0)]
    assert [part.tolist() for part in parts] != [part.tolist() for part in folds(labels, 10, 1)]


def test_the_strength_is_the_best_on_examples_held_out():
    linear = pytest.importorskip("sklearn.linear_model")
    from st_paragram.tools.evaluation.linear_classifier import best_classifier

    train, held_out = labelled(60, noise=0.3), labelled(200, seed=1)
    found = best_classifier(train, held_out, (1e-4, 1e-2, 1.0, 100.0))
    mean, deviation = train.embeddings.mean(0), train.embeddings.std(0)
    alone = {}
    for strength in (1e-4, 1e-2, 1.0, 100.0):
        regression = linear.LogisticRegression(C=strength, tol=1e-8, max_iter=5000)
        regression.fit((train.embeddings - mean) / deviation, train.labels)
        alone[strength] = regression.score((held_out.embeddings - mean) / deviation, held_out.labels)
    assert len(set(alone.values())) > 1  # or nothing was chosen
    assert found.strength == max(alone, key=alone.get) and found.held_out == pytest.approx(alone[found.strength])
    assert found.right(held_out) == round(found.held_out * 200)


def test_learning_on_leaves_what_it_came_from():
    pytest.importorskip("sklearn")
    from st_paragram.tools.evaluation.linear_classifier import best_classifier

    train, other = labelled(60, noise=0.3), labelled(90, seed=3)
    first = best_classifier(train, labelled(50, seed=1), (0.1, 1.0))
    weights = first.regression.coef_.copy()
    later = first.learn_on(other)
    assert np.array_equal(first.regression.coef_, weights) and later.strength == first.strength
    assert later.right(other) >= first.right(other) and not np.array_equal(later.regression.coef_, weights)


def test_tasks_are_scored_as_their_splits_allow():
    pytest.importorskip("sklearn")
    from st_paragram.tools.evaluation.transfer import STRENGTHS, score_task

    crossed = score_task({"": labelled(120)})
    assert crossed.sentences == 120 and crossed.accuracy > 0.9 and len(crossed.strengths) == 10
    assert crossed == score_task({"": labelled(120)})  # to the bit
    halves = {"train": labelled(120, 3), "test": labelled(60, 3, seed=1)}
    without = score_task(halves)
    assert without.sentences == 60 and without.accuracy > 0.9 and len(without.strengths) == 1
    chosen = score_task({**halves, "dev": labelled(60, 3, seed=2)})
    assert chosen.accuracy > 0.9 and chosen.strengths[0] in STRENGTHS


def test_labels_without_meaning_are_not_found():
    pytest.importorskip("sklearn")
    from st_paragram.tools.evaluation.linear_classifier import Examples
    from st_paragram.tools.evaluation.transfer import score_task

    generator = np.random.default_rng(5)
    noise = Examples(generator.normal(size=(400, 6)).astype(np.float32), generator.integers(0, 2, 400).astype(str))
    assert 0.4 < score_task({"": noise}).accuracy < 0.6


def test_the_majority_by_hand():
    from st_paragram.tools.evaluation.transfer import majority

    three, test = LabelledTexts(("a", "b", "c"), ("1", "0", "1")), LabelledTexts(("d", "e"), ("0", "1"))
    assert majority(TransferTask("MR", {"": three})) == pytest.approx(2 / 3)
    assert majority(TransferTask("TREC", {"train": three, "test": test})) == 0.5


def write(folder, rows=12, texts=("da", "lo")):
    folder.mkdir(parents=True, exist_ok=True)
    body = "".join(f"{label}\t{texts[label]} {texts[label]}\n" for _ in range(rows) for label in (0, 1))
    for name in ("MR", "TREC.train", "TREC.test", "SST2.train", "SST2.dev", "SST2.test"):
        (folder / f"{name}.tsv").write_text(body)
    return folder


def test_tasks_are_read(tmp_path):
    folder = write(tmp_path / "transfer")
    (folder / "SST2.dev.tsv").unlink()
    assert transfer_tasks(folder) == ["MR", "TREC"] and benchmarks_in(tmp_path) == ["transfer"]
    found = read_transfer(tmp_path)
    assert [(task.name, list(task.splits)) for task in found] == [("MR", [""]), ("TREC", ["train", "test"])]
    assert found[0].splits[""].texts[:2] == ("da da", "lo lo") and found[0].splits[""].labels[:3] == ("0", "1", "0")
    with pytest.raises(EvaluationError, match=r"no transfer tasks; files are named like MR.tsv"):
        read_transfer(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\tda\nlo\n", "MR.tsv: row 2 has 1 column, 'lo', where 2 are expected"),
        ("0\tda\n \tlo\n", "MR.tsv: row 2: an empty label; expected `label TAB text`"),
        ("0\tda\n" * 20, "MR.tsv: 20 of label 0; two labels with 10 sentences or more"),
        ("0\tda\n" * 20 + "1\tlo\n" * 9, "MR.tsv: 20 of label 0, 9 of label 1; two labels with 10"),
        ("", "MR.tsv: empty"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, message):
    (tmp_path / "MR.tsv").write_text(text)
    with pytest.raises(TextError, match=message):
        read_transfer(tmp_path)


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary):
    untrained = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    return model_directory.save(untrained, tmp_path_factory.mktemp("models") / "tiny")


@pytest.mark.slow
def test_the_command_prints_and_records(tmp_path, model, pairs, capsys):
    pytest.importorskip("sklearn")
    texts = list(dict.fromkeys(first for first, _ in pairs))[:2]
    write(tmp_path / "transfer", 30, texts)
    file = tmp_path / "record.json"
    arguments = [str(model), "--data", str(tmp_path), "--untrained"]
    assert main(["evaluate", *arguments, "--benchmarks", "transfer", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert f"| {model} | 100.0 | 100.0 | 100.0 | 100.0 |" in printed and "| majority | 50.0 | 50.0 | 50.0 |" in printed
    assert "USE_Trans (published" not in printed and "| untrained |" in printed
    assert "not the published test set: MR, " in printed
    (record,) = read_records(file)
    assert record.run.models[str(model)].tasks["MR"].accuracy == 1
    assert all(part in printed for part in report(record.run))


# --- inference


class Classifier:
    """Stands for a model with a classifier: the longer the premise, the more follows."""

    has_classifier = True

    def classify(self, premises, hypotheses):
        assert len(premises) == len(hypotheses)
        rows = [[0.8, 0.1, 0.1] if len(premise) > 2 else [0.1, 0.6, 0.3] for premise in premises]
        return np.array(rows, np.float32)


def test_sets_of_inference_are_found_by_name(tmp_path):
    for name in ("snli_test.en.tsv", "xnli_held.es.tsv", "other.tsv", "notes.txt"):
        (tmp_path / name).write_text(PAIRS)
    assert list(nli_files(tmp_path)) == ["snli_test.en", "xnli_held.es"] and benchmarks_in(tmp_path) == ["nli"]
    rows = [(1, "da", "ba"), (0, "da lo", "da"), (2, "da", "lo"), (1, "ba", "lo")]
    assert read_nli_sets(tmp_path, ["es"]) == {"xnli_held.es": rows}
    with pytest.raises(EvaluationError, match=r"no set of fr, only snli_test.en, xnli_held.es"):
        read_nli_sets(tmp_path, ["fr"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("neutral\tda\tba\nyes\tda\tlo\n", "row 2: label 'yes'; there are entailment, neutral, contradiction"),
        ("neutral\tda\n", "row 1 has 2 columns, where 3 are expected"),
        ("neutral\tda\t \n", "row 1: an empty sentence"),
    ],
)
def test_wrong_rows_of_inference_are_refused(tmp_path, text, message):
    (tmp_path / "snli.tsv").write_text(text)
    with pytest.raises(TextError, match=f"snli.tsv: {message}"):
        read_nli(tmp_path / "snli.tsv")


def test_accuracy_of_a_classifier_by_hand():
    sets = {"snli": [(1, "da", "ba"), (0, "da lo", "da"), (2, "da", "lo"), (1, "ba", "lo")]}
    assert score_nli(Classifier(), sets).sets == {"snli": 0.75}
    assert score_nli(object(), sets) is None


def test_models_without_a_classifier_are_left_out(tmp_path, model, capsys):
    (tmp_path / "snli_test.en.tsv").write_text(PAIRS)
    file = tmp_path / "record.json"
    assert main(["evaluate", str(model), "--data", str(tmp_path), "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "| majority | 50.0 | 50.0 |" in printed
    assert f"Models without a classifier, not trained on inference, were left out: {model}." in printed
    (record,) = read_records(file)
    assert record.run.models == {} and record.run.left_out == (str(model),)


def test_a_record_of_inference_is_read_as_it_was_written(tmp_path):
    run = NliRun({"m": score_nli(Classifier(), {"snli": [(1, "da", "ba")]})}, {"snli": 1}, {"snli": 1.0})
    write_records([new_record(run)], tmp_path / "r.json")
    (record,) = read_records(tmp_path / "r.json")
    assert record.run == run and "| m | 100.0 | 100.0 |" in "\n".join(report(run))
