"""mteb scores our models on local files, offline, and agrees with a direct computation."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import st_paragram
from st_paragram.errors import EvaluationError, MissingExtraError, ParagramError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.mteb import model as mteb_model
from st_paragram.tools.evaluation.mteb.data import read_local_data
from st_paragram.tools.evaluation.mteb.model import register
from st_paragram.tools.evaluation.mteb.tasks import evaluate, make_tasks
from st_paragram.tools.evaluation.results import MtebScores
from st_paragram.tools.evaluation.tatoeba import weighted_f1

if importlib.util.find_spec("mteb") is None:  # importing it takes seconds: the process does that has these tests
    pytest.skip("mteb is not installed", allow_module_level=True)

SETS_2012 = ("MSRpar", "MSRvid", "SMTeuroparl", "OnWN", "SMTnews")


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("MTEB_CACHE", str(tmp_path / "mteb"))


def write_rows(path: Path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")


def graded_rows(pairs, seed: int):
    """The first sentence and a part of it; the grade follows the part's size, with noise."""
    rng = random.Random(seed)
    for first, _ in pairs:
        words = first.split()
        kept = rng.randint(1, len(words) - 1)  # not all: equal bags of words would make ties that rounding breaks
        yield round(min(5, 5 * kept / len(words) * rng.uniform(0.7, 1.2)), 2), first, " ".join(rng.sample(words, kept))


@pytest.fixture(scope="module")
def parts(pairs) -> list[tuple[str, str]]:
    """Sentences and two of their words, no two words twice, so that a random model finds some and none are tied."""
    rng = random.Random(5)
    found: dict[frozenset[str], tuple[str, str]] = {}
    for first in dict.fromkeys(first for first, _ in pairs):
        words = rng.sample(first.split(), 2)
        found.setdefault(frozenset(words), (first, " ".join(words)))
    return list(found.values())[:180]


@pytest.fixture(scope="module")
def data(tmp_path_factory, pairs, parts) -> Path:
    folder = tmp_path_factory.mktemp("eval")
    for number, name in enumerate(SETS_2012):
        write_rows(folder / "sts2012" / f"{name}.tsv", graded_rows(pairs[40 * number : 40 * number + 40], number))
    for number, track in enumerate(("track3.es-es", "track4a.es-en", "track4b.es-en")):
        write_rows(folder / "sts2017" / f"{track}.tsv", graded_rows(pairs[50 * number : 50 * number + 50], 7 + number))
    for number, code in enumerate(("spa", "tur")):
        write_rows(folder / "tatoeba" / f"{code}-eng.tsv", parts[90 * number : 90 * number + 90])
    for side, language in enumerate(("zh", "en")):
        rows = [(f"{language}-{number:03}", pair[side]) for number, pair in enumerate(parts[:60])]
        write_rows(folder / "bucc2018" / f"zh-en.sample.{language}", rows)
    gold = [(f"zh-{number:03}", f"en-{number:03}") for number in range(0, 60, 3)]
    write_rows(folder / "bucc2018" / "zh-en.sample.gold", gold)
    return folder


def save_model(path: Path, vocabulary, seed: int) -> Path:
    torch.manual_seed(seed)
    return model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 24), device="cpu"), path)


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary) -> Path:
    return save_model(tmp_path_factory.mktemp("model") / "p-sp-xx", vocabulary, 1)


def cosines(model: Path, first: list[str], second: list[str]) -> np.ndarray:
    a, b = (st_paragram.load(model).encode(texts, normalize_embeddings=True) for texts in (first, second))
    return a @ b.T


def rows_of(path: Path) -> list[list[str]]:
    return [row.split("\t") for row in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")]


def correlations(model: Path, rows) -> tuple[float, float]:
    grades, first, second = zip(*rows, strict=True)
    scores, grades = cosines(model, list(first), list(second)).diagonal(), np.array(grades, float)
    return stats.spearmanr(scores, grades).statistic, stats.pearsonr(scores, grades).statistic


def test_sts_of_a_year_is_that_of_all_its_pairs(model, data):
    scores = evaluate(str(model), make_tasks(["STS12"], data)).tasks["STS12"]["default"]
    rows = [row for name in SETS_2012 for row in rows_of(data / "sts2012" / f"{name}.tsv")]
    spearman, pearson = correlations(model, rows)
    assert scores.main_score == pytest.approx(spearman, abs=1e-4)
    assert scores.metrics["cosine_pearson"] == pytest.approx(pearson, abs=1e-4)


def test_tracks_of_2017_are_subsets(model, data):
    scores = evaluate(str(model), make_tasks(["STS17"], data)).tasks["STS17"]
    assert list(scores) == ["es-en", "es-es"]  # mteb has no track 4b
    for subset, track in (("es-en", "track4a.es-en"), ("es-es", "track3.es-es")):
        spearman, _ = correlations(model, rows_of(data / "sts2017" / f"{track}.tsv"))
        assert scores[subset].main_score == pytest.approx(spearman, abs=1e-4)


def check_retrieval(scores: MtebScores, model: Path, chosen) -> None:
    found = cosines(model, *map(list, zip(*chosen, strict=True))).argmax(1)
    accuracy = np.mean(found == np.arange(len(chosen)))
    assert 0.1 < accuracy < 0.9  # or this would show nothing
    assert scores.metrics["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    assert scores.main_score == pytest.approx(weighted_f1(found), abs=1e-6)


def test_translations(model, data, parts):
    scores = evaluate(str(model), make_tasks(["Tatoeba", "BUCC.v2"], data)).tasks
    assert list(scores["Tatoeba"]) == ["spa-eng", "tur-eng"]
    check_retrieval(scores["Tatoeba"]["spa-eng"], model, parts[:90])
    check_retrieval(scores["Tatoeba"]["tur-eng"], model, parts[90:])
    check_retrieval(scores["BUCC.v2"]["zh-en"], model, parts[:60:3])  # the gold alone


def f1(tasks: dict[str, dict[str, MtebScores]], subset: str) -> float | None:
    return tasks["Tatoeba"][subset].metrics["f1"]


def test_results_are_filed_under_name_and_weights_and_reused(model, data, tmp_path, monkeypatch):
    meta = register(str(model))
    assert (meta.name, meta.embed_dim) == ("st-paragram/p-sp-xx", 24)
    output = tmp_path / "out"
    first = evaluate(str(model), make_tasks(["Tatoeba"], data, ["es"]), output).tasks
    path = output / "results" / "st-paragram__p-sp-xx" / meta.revision / "Tatoeba.json"
    filed = json.loads(path.read_text())
    assert filed["dataset_revision"].startswith("local-")
    assert filed["scores"]["test"][0]["main_score"] == pytest.approx(f1(first, "spa-eng"), abs=1e-6)
    assert str(model) not in path.with_name("model_meta.json").read_text()  # no path of this machine

    both = evaluate(str(model), make_tasks(["Tatoeba"], data, ["tur", "spa-eng"]), output).tasks  # gathers in one file
    assert len(json.loads(path.read_text())["scores"]["test"]) == len(both["Tatoeba"]) == 2
    assert list(evaluate(str(model), make_tasks(["Tatoeba"], data, ["es"]), output).tasks["Tatoeba"]) == ["spa-eng"]

    task = make_tasks(["Tatoeba"], data)[0]
    monkeypatch.setattr(task, "evaluate", lambda *args, **kwargs: pytest.fail("computed again"))
    kept = evaluate(str(model), [task], output).tasks
    assert f1(kept, "tur-eng") == pytest.approx(f1(both, "tur-eng"), abs=1e-6)
    path.write_text("{")
    with pytest.raises(EvaluationError, match=r"Tatoeba: its file Tatoeba\.json under .* is damaged; remove it"):
        evaluate(str(model), make_tasks(["Tatoeba"], data), output)
    path.unlink()
    again = evaluate(str(model), make_tasks(["Tatoeba"], data), output).tasks
    assert asdict(again["Tatoeba"]["tur-eng"])["metrics"] == pytest.approx(both["Tatoeba"]["tur-eng"].metrics, abs=1e-6)


def test_other_weights_are_another_revision(model, vocabulary, tmp_path):
    same = save_model(tmp_path / "same" / "p-sp-xx", vocabulary, 1)
    other = save_model(tmp_path / "other" / "p-sp-xx", vocabulary, 2)
    metas = [mteb_model.model_meta(str(path)) for path in (model, same, other)]
    assert len({meta.name for meta in metas}) == 1
    assert metas[0].revision == metas[1].revision != metas[2].revision


def test_mteb_loads_a_registered_model(model):
    name = register(str(model)).name
    embeddings = mteb_model.import_mteb().get_model(name).model.encode(["ba ce di", "fo gu"])
    np.testing.assert_allclose(embeddings, st_paragram.load(model).encode(["ba ce di", "fo gu"]), rtol=1e-6)


def test_a_model_of_others_is_not_filed_as_ours(model, tmp_path):
    """A stock SentenceTransformer directory is scored as well."""
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(model), device="cpu").save_pretrained(str(tmp_path / "other"))
    meta = register(str(tmp_path / "other"))
    assert meta.name == "local/other" and meta.revision != register(str(model)).revision
    assert mteb_model.import_mteb().get_model(meta.name).model.encode(["ba ce di"]).shape == (1, 24)


def test_revision_of_data_follows_their_content(data, tmp_path):
    before = read_local_data("Tatoeba", data).revision
    assert before == read_local_data("Tatoeba", data).revision
    for path in (data / "tatoeba").iterdir():
        write_rows(tmp_path / "tatoeba" / path.name, rows_of(path))
    assert read_local_data("Tatoeba", tmp_path).revision == before
    write_rows(tmp_path / "tatoeba" / "tur-eng.tsv", [("ba", "ce"), ("di", "fo")])
    assert read_local_data("Tatoeba", tmp_path).revision != before
    assert read_local_data("BUCC.v2", data).revision.startswith("local-sample-")


@pytest.mark.parametrize(
    ("names", "languages", "message"),
    [
        (["STS99"], [], "no task 'STS99'"),
        (["STS22.v2"], [], "STS22.v2 cannot be fed from local files"),
        (["STS13"], [], "2013"),
        (["STSBenchmark"], [], "stsb"),
        (["Tatoeba", "STS17"], ["xx"], "nothing of xx in Tatoeba STS17"),
        (["Tatoeba"], ["spa", "deu"], "nothing of deu in Tatoeba"),
        (["Tatoeba"], ["en"], "nothing of en in Tatoeba"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(data, names, languages, message):
    with pytest.raises(ParagramError, match=message) as caught:
        make_tasks(names, data, languages)
    assert "\n" not in str(caught.value)


def test_languages_choose_subsets(data):
    subsets = [make_tasks(["STS17"], data, languages)[0].hf_subsets for languages in ([], ["es"], ["es", "es-en"])]
    assert [sorted(chosen) for chosen in subsets] == [["es-en", "es-es"]] * 3
    assert make_tasks(["STS17"], data, ["es-es"])[0].hf_subsets == ["es-es"]
    both = make_tasks(["STS12", "STS17", "Tatoeba"], data, ["tur"])  # one language goes with all tasks of English
    assert [task.metadata.name for task in both] == ["STS12", "Tatoeba"]


def test_a_language_that_only_a_task_of_one_language_has_is_not_absent(data):
    tasks = make_tasks(["STS12", "Tatoeba"], data, ["es", "en"])
    assert [(task.metadata.name, list(task.hf_subsets)) for task in tasks] == [
        ("STS12", ["default"]),
        ("Tatoeba", ["spa-eng"]),
    ]
    assert [task.metadata.name for task in make_tasks(["STS12", "Tatoeba"], data, ["en"])] == ["STS12"]
    with pytest.raises(EvaluationError, match="nothing of de in STS12 Tatoeba"):
        make_tasks(["STS12", "Tatoeba"], data, ["de", "en"])


def test_a_folder_of_other_languages_is_refused(tmp_path, parts):
    write_rows(tmp_path / "tatoeba" / "qqq-eng.tsv", parts[:5])
    with pytest.raises(EvaluationError, match="no subset of Tatoeba"):
        make_tasks(["Tatoeba"], tmp_path)


def test_a_year_with_a_set_missing_is_refused(data, tmp_path):
    for name in SETS_2012[1:]:
        write_rows(tmp_path / "sts2012" / f"{name}.tsv", rows_of(data / "sts2012" / f"{name}.tsv"))
    with pytest.raises(EvaluationError, match="MSRpar"):
        make_tasks(["STS12"], tmp_path)


def test_smt_is_no_part_of_2013_and_the_development_part_is_a_split(tmp_path, pairs):
    for name in ("FNWN", "headlines", "OnWN", "SMT"):
        write_rows(tmp_path / "sts2013" / f"{name}.tsv", graded_rows(pairs[:10], 1))
    for part in ("train", "dev", "test"):
        write_rows(tmp_path / "stsb" / f"en-{part}.tsv", graded_rows(pairs[:10], 1))
    assert len(read_local_data("STS13", tmp_path).subsets["default"]["test"]["score"]) == 30
    assert set(read_local_data("STSBenchmark", tmp_path).subsets["default"]) == {"validation", "test"}


def test_development_scores_are_labelled(model, tmp_path, pairs):
    for part, chosen in (("dev", pairs[:20]), ("test", pairs[20:50])):
        write_rows(tmp_path / "stsb" / f"en-{part}.tsv", graded_rows(chosen, 1))
    (task,) = make_tasks(["STSBenchmark"], tmp_path)
    scores = evaluate(str(model), [task.filter_eval_splits(["validation", "test"])]).tasks["STSBenchmark"]
    for label, part in (("default", "test"), ("default (validation)", "dev")):
        spearman, _ = correlations(model, rows_of(tmp_path / "stsb" / f"en-{part}.tsv"))
        assert scores[label].main_score == pytest.approx(spearman, abs=1e-4)


def test_without_data_the_task_is_mtebs_own(model):
    (task,) = make_tasks(["STS17"], languages=["es-en"])
    assert task.hf_subsets == ["es-en"] and not task.data_loaded
    assert task.metadata.revision == mteb_model.import_mteb().get_task("STS17").metadata.revision


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(MissingExtraError, match=r"st_paragram\[eval\]"):
        mteb_model.import_mteb()
