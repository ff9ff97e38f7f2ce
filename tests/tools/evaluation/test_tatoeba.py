import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sentence_transformers.util import cos_sim

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.files import Translations
from st_paragram.tools.evaluation.scores import read_scores
from st_paragram.tools.evaluation.tatoeba import ERROR, read_tatoeba, retrieval_errors, weighted_f1

FIRST = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0.9, 0.5, 0]}
SECOND = {"x": [1, 0.1, 0], "y": [0.2, 1, 0], "z": [0.1, 0.9, 0.9]}


def unit(vectors):
    vectors = np.array(list(vectors), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_retrieval_errors_by_hand():
    got = retrieval_errors(unit(FIRST.values()), unit(SECOND.values()))
    # a -> x, b -> y, c -> x (wrong); x -> a, y -> b, z -> b (wrong)
    assert got[f"{ERROR} to English"] == got[f"{ERROR} from English"] == got[ERROR] == pytest.approx(1 / 3)
    assert got["accuracy"] == pytest.approx(2 / 3)
    # x was chosen twice: precision 1/2, F1 2/3; y once: F1 1; z never: 0
    assert got["F1"] == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_margin_finds_what_a_hub_hides():
    # Target 3 is near to everything: cosine 0.58 with sources 0 .. 2, whose translations reach only 0.5.
    hub = [1, 1, 1, 0, 0, 0]
    first = unit([*np.eye(6)[:3], hub])
    second = unit([*(0.5 * np.eye(6)[:3] + 0.75**0.5 * np.eye(6)[3:]), hub])
    got = retrieval_errors(first, second)
    assert (got[f"{ERROR} to English"], got[f"{ERROR} from English"], got[ERROR]) == (0.75, 0, 0.375)
    assert (got["margin error to English"], got["margin error from English"]) == (0, 0)


def test_two_sides_of_unequal_number_and_nothing_are_refused():
    with pytest.raises(EvaluationError, match="3 sentences and 2 translations"):
        retrieval_errors(unit(FIRST.values()), unit(SECOND.values())[:2])
    with pytest.raises(EvaluationError, match="at least one"):
        retrieval_errors(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))
    with pytest.raises(SettingsError, match="0 neighbors"):
        retrieval_errors(unit(FIRST.values()), unit(SECOND.values()), k=0)


def test_weighted_f1_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 50):
        found = np.where(rng.random(n) < 0.5, np.arange(n), rng.integers(0, n, n))
        expected = metrics.f1_score(np.arange(n), found, average="weighted", zero_division=0)
        assert weighted_f1(found) == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_accuracy_and_f1_are_those_of_mteb():
    search = pytest.importorskip("mteb._evaluators.text.bitext_mining_evaluator").BitextMiningEvaluator
    task = pytest.importorskip("mteb.abstasks.text.bitext_mining").AbsTaskBitextMining

    class Cosine:
        similarity = staticmethod(cos_sim)

    rng = np.random.default_rng(1)
    first = rng.normal(size=(250, 300))
    second = first + 4 * rng.normal(size=first.shape)
    second[::3] = second[1::3].repeat(2, axis=0)[: len(second[::3])]  # sentences that are there twice or more
    first, second = unit(first), unit(second)
    found = search._similarity_search(None, first, second, Cosine())
    expected = task._compute_metrics(None, found, [(row, row) for row in range(250)])
    got = retrieval_errors(first, second)
    assert 0.2 < got["accuracy"] < 0.9
    assert (got["accuracy"], got["F1"]) == pytest.approx((expected["accuracy"], expected["f1"]), abs=1e-6)


def write(folder, **texts):
    folder.mkdir(exist_ok=True)
    for code, text in texts.items():
        (folder / f"{code}-eng.tsv").write_text(text, encoding="utf-8", newline="\n")


def test_sets_are_found_by_language(tmp_path):
    write(tmp_path / "tatoeba", spa="uno\tone\ndos\ttwo\n", deu="eins\tone\n", ara="a\u2028a\tb\n")
    assert [each.name for each in read_tatoeba(tmp_path)] == ["ara", "deu", "spa"]
    spanish, arabic = read_tatoeba(tmp_path / "tatoeba", ["es", "en", "ara", "spa"])
    assert spanish == Translations("spa", ["uno", "dos"], ["one", "two"])
    assert (arabic.name, arabic.first) == ("ara", ["a a"])
    with pytest.raises(EvaluationError, match="no test set for tur, xyz; there are 3: ara deu spa"):
        read_tatoeba(tmp_path, ["tr", "spa", "xyz"])
    for folder in (tmp_path / "missing", None):
        with pytest.raises(EvaluationError, match="no Tatoeba test sets"):
            read_tatoeba(folder)


def test_the_hub_has_the_sets_too(monkeypatch):
    def load_dataset(path, subset, split, revision):
        assert (path, split, len(revision)) == ("mteb/tatoeba-bitext-mining", "test", 40)
        return {"sentence1": [f"uno {subset}", "dos"], "sentence2": ["one", "two"]}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    (found,) = read_tatoeba(None, ["es"], hub=True)
    assert found == Translations("spa", ["uno spa-eng", "dos"], ["one", "two"])
    assert [each.name for each in read_tatoeba(None, hub=True)] == ["ara", "deu", "spa", "fra", "rus", "tur", "cmn"]


def test_the_benchmark_prints_tables_and_writes_scores(tmp_path, capsys, vocabulary, pairs):
    model = model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu"), tmp_path / "tiny")
    texts = list(dict.fromkeys(first for first, _ in pairs))[:20]
    write(tmp_path / "data", spa="".join(f"{text}\t{text}\n" for text in texts), xxx="da\tba\n")
    file = tmp_path / "out" / "tatoeba.json"
    command = ["evaluate", str(model), "--benchmarks", "tatoeba", "--data", str(tmp_path / "data"), "--languages"]
    assert main([*command, "es", "xxx", "--untrained", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "| spa (20) | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 100.0 | 100.0 |" in printed
    assert "| mean of 2 (21) |" in printed and "P-SP (published" not in printed
    assert "Published figures are left out where the data are not the published test set: spa." in printed
    scores = read_scores(file)
    assert list(dict.fromkeys(s.model for s in scores)) == [str(model), "untrained"]
    assert {s.set for s in scores} == {"spa", "xxx"} and {s.value for s in scores if "margin" in s.measure} == {0}
    assert main([*command, "de"]) == 1
    assert "no test set for deu; there are 2: spa xxx" in capsys.readouterr().err
