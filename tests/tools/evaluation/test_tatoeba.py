import json

import numpy as np
import pytest
from sentence_transformers.util import cos_sim

from st_paragram.cli.main import main
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import EvaluationError, SettingsError, TextError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.tatoeba import (
    RetrievalError,
    retrieval_error,
    retrieval_scores,
    tatoeba_sets,
    weighted_f1,
)
from st_paragram.tools.evaluation.translations import Translations, read_translations

FIRST = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0.9, 0.5, 0]}
SECOND = {"x": [1, 0.1, 0], "y": [0.2, 1, 0], "z": [0.1, 0.9, 0.9]}


def unit(vectors):
    vectors = np.array(list(vectors), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Fixed:
    """Stands for a model: texts are names of vectors."""

    def encode(self, texts, **kwargs):
        return unit({**FIRST, **SECOND}[text] for text in texts)


def test_retrieval_error_by_hand():
    got = retrieval_error(Fixed(), list(FIRST), list(SECOND), block=2)
    # a -> x, b -> y, c -> x (wrong); x -> a, y -> b, z -> b (wrong)
    assert (got.forward, got.backward, got.mean) == pytest.approx((1 / 3, 1 / 3, 1 / 3))


def test_retrieval_scores_by_hand():
    got = retrieval_scores(unit(FIRST.values()), unit(SECOND.values()))
    assert got.pairs == 3 and got.accuracy == pytest.approx(2 / 3)
    assert got.cosine == retrieval_error(Fixed(), list(FIRST), list(SECOND))
    # x was chosen twice: precision 1/2, F1 2/3; y once: F1 1; z never: 0
    assert got.f1 == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_margin_finds_what_a_hub_hides():
    # Target 3 is near to everything: cosine 0.58 with sources 0 .. 2, whose translations reach only 0.5.
    hub = [1, 1, 1, 0, 0, 0]
    first = unit([*np.eye(6)[:3], hub])
    second = unit([*(0.5 * np.eye(6)[:3] + 0.75**0.5 * np.eye(6)[3:]), hub])
    got = retrieval_scores(first, second)
    assert got.cosine == RetrievalError(0.75, 0)
    assert got.margin == RetrievalError(0, 0)


def test_two_sides_of_unequal_number_and_nothing_are_refused():
    with pytest.raises(EvaluationError, match="3 sentences and 2 translations"):
        retrieval_scores(unit(FIRST.values()), unit(SECOND.values())[:2])
    with pytest.raises(EvaluationError, match="at least one"):
        retrieval_scores(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32))


def test_error_is_the_mean_of_both_directions():
    assert RetrievalError(0.1, 0.3).mean == pytest.approx(0.2)


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
    got = retrieval_scores(first, second)
    assert 0.2 < got.accuracy < 0.9
    assert (got.accuracy, got.f1) == pytest.approx((expected["accuracy"], expected["f1"]), abs=1e-6)


def write(folder, **files):
    for name, text in files.items():
        (folder / name.replace("_", ".").replace("XX", "-eng")).write_text(text, encoding="utf-8", newline="\n")


def test_sets_are_found_by_language_in_either_form(tmp_path):
    write(tmp_path, spaXX_tsv="uno\tone\ndos\ttwo\n", deuXX_tsv="eins\tone\n", README_md="no data")
    write(tmp_path, tatoeba_araXX_ara="أ\nب\n", tatoeba_araXX_eng="a\u2028a\nb\n")
    assert list(tatoeba_sets(tmp_path)) == ["ara", "deu", "spa"]
    chosen = tatoeba_sets(tmp_path, ["es", "ara", "spa"])
    assert list(chosen) == ["spa", "ara"]
    assert read_translations(chosen["spa"], "spa") == Translations("spa", ["uno", "dos"], ["one", "two"])
    assert read_translations(chosen["ara"], "ara").second == ["a a", "b"]
    with pytest.raises(EvaluationError, match="no test set for tur, xyz; there are 3: ara deu spa"):
        tatoeba_sets(tmp_path, ["tr", "spa", "xyz"])


def test_a_folder_without_sets_is_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(EvaluationError, match="no Tatoeba test sets"):
            tatoeba_sets(folder)


def test_rows_that_are_no_pair_are_refused_by_number(tmp_path):
    path = tmp_path / "spa-eng.tsv"
    for text, message in (
        ("uno\tone\n\ttwo\n", "row 2: an empty sentence"),
        ("uno\tone\n\ndos\ttwo\n", "row 2: an empty sentence"),
        ("uno\tone\tx\n", "row 1 has 3 columns"),
        ("", "empty"),
    ):
        path.write_text(text)
        with pytest.raises(TextError, match=message):
            read_translations(TextSource((str(path),), ("spa", "eng")), "spa")
    write(tmp_path, tatoeba_araXX_ara="أ\nب\n", tatoeba_araXX_eng="a\n")
    with pytest.raises(TextError, match=r"has 2 rows and .* has 1 row;"):
        read_translations(tatoeba_sets(tmp_path, ["ar"])["ara"], "ara")


def test_k_below_one_is_refused():
    with pytest.raises(SettingsError, match="0 neighbors"):
        retrieval_scores(unit(FIRST.values()), unit(SECOND.values()), k=0)


def run(*arguments):
    return main(["evaluate", *map(str, arguments), "--benchmarks", "tatoeba"])


def test_the_benchmark_prints_tables_and_writes_a_record(tmp_path, capsys, vocabulary, pairs):
    model = model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu"), tmp_path / "tiny")
    texts = list(dict.fromkeys(first for first, _ in pairs))[:20]
    write(tmp_path, spaXX_tsv="".join(f"{text}\t{text}\n" for text in texts), xxxXX_tsv="da\tba\n")
    record = tmp_path / "out" / "tatoeba.json"
    data = ("--data", tmp_path)
    assert run(model, *data, "--languages", "es", "xxx", "--untrained", "--json", record) == 0
    printed = capsys.readouterr().out
    assert "| spa | 20 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 100.0 | 100.0 |" in printed
    assert "| mean of 2 | 21 |" in printed and "P-SP (published" not in printed
    assert "Published figures are left out where the data are not the published test set: spa." in printed
    results = json.loads(record.read_text())["run"]["models"]
    assert list(results) == [str(model), "untrained"] and list(results[str(model)]["languages"]) == ["spa", "xxx"]
    assert results[str(model)]["languages"]["spa"]["margin"] == {"forward": 0, "backward": 0}
    assert run(model, *data, "--languages", "de") == 1
    assert "no test set for deu; there are 2: spa xxx" in capsys.readouterr().err
