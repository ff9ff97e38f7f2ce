import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sentence_transformers.util import cos_sim

from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation.files import Translations
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.translations import (
    ERROR,
    mteb_measures,
    read,
    retrieval_errors,
    weighted_f1,
)

FIRST = {"a": [1, 0, 0], "b": [0, 1, 0], "c": [0.9, 0.5, 0]}
SECOND = {"x": [1, 0.1, 0], "y": [0.2, 1, 0], "z": [0.1, 0.9, 0.9]}


def unit(vectors):
    vectors = np.array(list(vectors), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_retrieval_errors_by_hand():
    got = retrieval_errors(unit(FIRST.values()), unit(SECOND.values()))
    # a -> x, b -> y, c -> x (wrong); x -> a, y -> b, z -> b (wrong)
    assert (
        got[f"{ERROR} to English"]
        == got[f"{ERROR} from English"]
        == got[ERROR]
        == pytest.approx(1 / 3)
    )
    assert got["accuracy"] == pytest.approx(2 / 3)
    # x was chosen twice: precision 1/2, F1 2/3; y once: F1 1; z never: 0. Back, b was chosen twice.
    assert got["F1"] == pytest.approx((2 / 3 + 1 + 0) / 3)
    both = {"F1": 5 / 9, "F1 back": 5 / 9, "accuracy": 2 / 3, "accuracy back": 2 / 3}
    assert mteb_measures(unit(FIRST.values()), unit(SECOND.values())) == pytest.approx(both)


def test_margin_finds_what_a_hub_hides():
    # Target 3 is near to everything: cosine 0.58 with sources 0 .. 2, whose translations reach only
    # 0.5.
    hub = [1, 1, 1, 0, 0, 0]
    first = unit([*np.eye(6)[:3], hub])
    second = unit([*(0.5 * np.eye(6)[:3] + 0.75**0.5 * np.eye(6)[3:]), hub])
    got = retrieval_errors(first, second)
    assert (got[f"{ERROR} to English"], got[f"{ERROR} from English"], got[ERROR]) == (
        0.75,
        0,
        0.375,
    )
    assert (got["margin error to English"], got["margin error from English"]) == (0, 0)


def noisy_translations(count):
    rng = np.random.default_rng(1)
    first = rng.normal(size=(count, 300))
    return first, first + 5 * rng.normal(size=first.shape)


@pytest.mark.filterwarnings("ignore:To copy construct")
def test_accuracy_and_f1_are_those_of_mteb():
    search = pytest.importorskip(
        "mteb._evaluators.text.bitext_mining_evaluator"
    ).BitextMiningEvaluator
    task = pytest.importorskip("mteb.abstasks.text.bitext_mining").AbsTaskBitextMining

    class Cosine:
        similarity = staticmethod(cos_sim)

    first, second = map(unit, noisy_translations(250))
    got = mteb_measures(first, second)
    for sides, back in (((first, second), ""), ((second, first), " back")):
        best, next_best = np.sort(sides[0] @ sides[1].T, axis=1)[:, :-3:-1].T
        assert (best - next_best).min() > 1e-6  # no rounding decides
        found = search._similarity_search(None, *sides, Cosine())
        expected = task._compute_metrics(None, found, [(row, row) for row in range(250)])
        figures = got[f"accuracy{back}"], got[f"F1{back}"]
        assert 0.2 < figures[0] < 0.9 and figures == pytest.approx(
            (expected["accuracy"], expected["f1"]), abs=1e-6
        )
    assert weighted_f1(np.array([0, 0, 0])) == pytest.approx((2 / 4 + 0 + 0) / 3)


@pytest.mark.parametrize("measures", [mteb_measures, retrieval_errors])
def test_of_equal_sentences_the_first_is_the_nearest(measures):
    first, second = noisy_translations(130)
    first, second = unit(first[:65].repeat(2, axis=0)), unit(second[:65].repeat(2, axis=0))
    cosines = first[::2].astype(float) @ second[::2].T.astype(float)
    nearest = 2 * cosines.argmax(axis=1).repeat(2)
    got = measures(first, second)
    assert got["F1"] == pytest.approx(weighted_f1(nearest))
    assert got["accuracy"] == pytest.approx((nearest == np.arange(130)).mean())
    assert measures(first[::-1].copy(), second[::-1].copy())["accuracy"] == pytest.approx(
        got["accuracy"]
    )


def test_texts_of_zeros_find_nothing_right():
    first, second = unit(FIRST.values()), unit(SECOND.values())
    first[1] = 0
    assert mteb_measures(first, second)["accuracy"] == pytest.approx(1 / 3)


def sets(name, data=None, *languages, hub=False):
    return read(Request([], name, data, hub, languages)).pairs


def test_pairs_of_tatoeba_are_found_by_language(tmp_path, write):
    for code, text in {
        "spa": "uno\tone\ndos\ttwo\n",
        "deu": "eins\tone\n",
        "ara": "a\u2028a\tb\n",
    }.items():
        write(tmp_path / "tatoeba" / f"{code}-eng.tsv", text)
    assert [each.name for each in sets("tatoeba", tmp_path)] == ["ara", "deu", "spa"]
    spanish, arabic = sets("tatoeba", tmp_path / "tatoeba", "es", "en", "ara", "spa")
    assert spanish == Translations("spa", ["uno", "dos"], ["one", "two"])
    assert (arabic.name, arabic.first) == ("ara", ["a a"])
    for language in ("tr", "xyz", "es-de"):
        with pytest.raises(
            EvaluationError, match=f"no test set for {language}; choose from these 3: ara deu spa"
        ):
            sets("tatoeba", tmp_path, "spa", language)
    with pytest.raises(
        EvaluationError, match=r"no ntrex data; files are named like newstest2019-ref\.spa"
    ):
        sets("ntrex", tmp_path)


def test_pairs_of_parallel_texts_are_found_by_language(tmp_path, write):
    texts = {
        "src.eng": "one\ntwo\n",
        "ref.spa": "uno\ndos\n",
        "ref.zho-CN": "一\n二\n",
        "ref.zho-TW": "壹\n贰\n",
    }
    for name, text in texts.items():
        write(tmp_path / "ntrex" / f"newstest2019-{name}.txt", text)
    for name, text in {"eng": "one\n", "deu": "eins\n", "fra": "un\n"}.items():
        write(tmp_path / "flores" / f"{name}_Latn.devtest", text)
    assert [each.name for each in sets("ntrex", tmp_path)] == ["spa", "zho-CN", "zho-TW"]
    assert sets("ntrex", tmp_path, "zh")[1] == Translations("zho-TW", ["壹", "贰"], ["one", "two"])
    assert sets("ntrex", tmp_path, "zh-es")[0] == Translations(
        "zho-CN-spa", ["一", "二"], ["uno", "dos"]
    )
    assert sets("flores", tmp_path, "fr-de") == [
        Translations("fra_Latn-deu_Latn", ["un"], ["eins"])
    ]
    with pytest.raises(
        EvaluationError, match="no test set for it; choose from these 4: spa zho-CN zho-TW eng"
    ):
        sets("ntrex", tmp_path, "it")
    write(tmp_path / "ntrex" / "newstest2019-ref.deu.txt", "eins\n")
    with pytest.raises(TextError, match="need the same number of rows"):
        sets("ntrex", tmp_path, "de")


def test_the_hub_has_the_sets_too(monkeypatch):
    from datasets import Dataset

    one_text = Dataset.from_dict(
        {"swa_Latn": ["moja"], "eng_Latn": ["one"], "spa_Latn": ["uno"], "zho_Hant": ["一"]}
    )

    def load_dataset(path, subset, split, revision):
        assert len(revision) == 40
        if path == "mteb/tatoeba-bitext-mining":
            assert split == "test"
            return {"sentence1": [f"uno {subset}", "dos"], "sentence2": ["one", "two"]}
        assert (subset, split) == (
            None,
            {"mteb/NTREXBitextMining": "test", "mteb/FloresBitextMining": "devtest"}[path],
        )
        return one_text

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    assert sets("tatoeba", None, "es", hub=True) == [
        Translations("spa", ["uno spa-eng", "dos"], ["one", "two"])
    ]
    all_of_it = ["ara", "deu", "spa", "fra", "rus", "tur", "cmn"]
    assert [each.name for each in sets("tatoeba", hub=True)] == all_of_it
    for name in ("ntrex", "flores"):
        assert [each.name for each in sets(name, hub=True)] == ["spa_Latn", "zho_Hant"]
        assert sets(name, None, "swa", hub=True) == [Translations("swa_Latn", ["moja"], ["one"])]


def test_the_benchmarks_print_tables_and_write_scores(tmp_path, tiny, texts, write, evaluate):
    write(tmp_path / "spa-eng.tsv", [(text, text) for text in texts[:20]])
    write(tmp_path / "xxx-eng.tsv", "da\tba\n")
    for code in ("eng", "spa"):
        write(tmp_path / f"{code}.devtest", [(text,) for text in texts[:20]])
    printed, scores = evaluate(tiny, "--data", tmp_path, "--languages", "es", "--untrained")
    assert "| spa (20) | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 0.0 | 100.0 | 100.0 |" in printed
    assert (
        "| spa (20) | 100.0 | 100.0 | 100.0 | 100.0 |" in printed
        and "### FLORES-200, untrained" in printed
    )
    assert (
        "Published figures are omitted because the data are not the published test set: spa."
        in printed
    )
    assert list(dict.fromkeys(s.model for s in scores)) == [tiny, "untrained"]
    assert {(s.benchmark, s.set) for s in scores} == {("tatoeba", "spa"), ("flores", "spa")}
    assert "| mean of 2 (21) |" in evaluate(tiny, "--benchmarks", "tatoeba", "--data", tmp_path)[0]
