"""mteb evaluates a model by its metadata, offline, and files it under name and weights.

The tests import mteb, which takes seconds, so that only processes with these tests do it.
"""

import json
import math
import os
import shutil
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict

import st_paragram
from st_paragram.core.model_directory.find import shipped_folder
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.mteb_model import mteb_language

pytestmark = pytest.mark.skipif(find_spec("mteb") is None, reason="needs mteb")


def test_the_metadata_are_complete_and_load_the_model():
    meta = st_paragram.model_meta("p-sp-mini", reference="https://example.org/p-sp-mini")
    assert (
        meta.name == "st-paragram/p-sp-mini" and meta.embed_dim == 256 and len(meta.revision) == 12
    )
    assert meta.languages == [
        "ara-Arab",
        "deu-Latn",
        "eng-Latn",
        "fra-Latn",
        "rus-Cyrl",
        "spa-Latn",
        "tur-Latn",
        "zho-Hans",
    ]
    assert (meta.license, meta.training_datasets) == ("cc-by-sa-4.0", {"Tatoeba"})
    assert meta.release_date.startswith("20") and meta.reference.endswith("p-sp-mini")
    loaded, texts = meta.load_model(), ["a cat", "ein Hund"]
    assert loaded.mteb_model_meta.revision == meta.revision and meta.max_tokens == math.inf
    np.testing.assert_allclose(
        loaded.model.encode(texts), st_paragram.load("p-sp-mini").encode(texts), rtol=1e-6
    )


def test_other_weights_are_another_revision_and_models_of_others_not_ours(vocabulary, tmp_path):
    from sentence_transformers import SentenceTransformer

    for seed in (1, 2):
        torch.manual_seed(seed)
        model = pipeline(SentencePieceEmbedding(vocabulary, 24), device="cpu")
        load_save.save(model, tmp_path / str(seed) / "p-sp-xx")
    ours, again = (st_paragram.model_meta(str(tmp_path / seed / "p-sp-xx")) for seed in ("1", "2"))
    assert ours.name == again.name and ours.revision != again.revision
    stock = SentenceTransformer(str(tmp_path / "1" / "p-sp-xx"), device="cpu")
    stock.save_pretrained(str(tmp_path / "other"))
    foreign = st_paragram.model_meta(str(tmp_path / "other"))
    shutil.copytree(tmp_path / "other", tmp_path / "copy" / "renamed")
    os.utime(tmp_path / "copy" / "renamed" / "model.safetensors", (1, 1))
    assert st_paragram.model_meta(str(tmp_path / "copy" / "renamed")).revision == foreign.revision
    assert (
        foreign.name == "local/other"
        and foreign.revision != ours.revision
        and foreign.training_datasets is None
    )


def test_any_language_of_a_card_is_named_as_mteb_names_it(tmp_path):
    from mteb.languages import check_language_code

    names = {
        "hi": "hin-Deva",
        "fa": "fas-Arab",
        "no": "nor-Latn",
        "nb": "nob-Latn",
        False: "nor-Latn",
        "sr": "srp-Cyrl",
        "sr_Latn": "srp-Latn",
        "zh": "zho-Hans",
        "zh_tw": "zho-Hant",
        "zh-Hant": "zho-Hant",
        "cmn": "cmn-Hans",
        "arb": "arb-Arab",
        "yue": "yue-Hant",
        "pt-BR": "por-Latn",
        "ja": "jpn-Jpan",
        "ko": "kor-Kore",
        "iw": "heb-Hebr",
        "spa": "spa-Latn",
        "ang": "ang",
        "und": None,
        "mul": None,
        "qaa": None,
        "xx": None,
        "x-private": None,
        "": None,
        "multilingual": None,
        None: None,
        3: None,
    }
    assert {code: mteb_language(code) for code in names} == names
    for name in filter(None, names.values()):
        check_language_code(name)
    shutil.copytree(shipped_folder(), tmp_path / "m")
    for language, license, expected in (
        ("[en, no, hi, xx, en]", "other", ["eng-Latn", "hin-Deva", "nor-Latn"]),
        ("sw", "[mit]", ["swa-Latn"]),
        ("[x-ours]", "mit", None),
    ):
        (tmp_path / "m" / "README.md").write_text(
            f"---\nlanguage: {language}\nlicense: {license}\n---\n"
        )
        meta = st_paragram.model_meta(str(tmp_path / "m"))
        assert (meta.languages, meta.license) == (expected, "mit" if license == "mit" else None)


# --- tasks


@pytest.fixture
def data(tmp_path, texts, write):
    """STS 2016 and one track of 2017, in folders with the layout's names, and a bit of Tatoeba."""
    rows = [(number % 6, texts[number], texts[number + 1]) for number in range(20)]
    for name in ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"):
        write(tmp_path / "data" / "sts2016" / f"{name}.tsv", rows)
    write(tmp_path / "data" / "sts2017" / "track4a.es-en.tsv", rows)
    write(tmp_path / "data" / "tatoeba" / "spa-eng.tsv", [(text, text) for text in texts[:20]])
    return tmp_path / "data"


def test_tasks_on_local_data_end_in_files_that_mteb_loads(
    data, tiny, tmp_path, evaluate, monkeypatch
):
    import mteb
    from mteb.abstasks.sts import AbsTaskSTS

    words = [tiny, "--data", data, "--results", tmp_path / "r", "--benchmarks", "mteb", "--tasks"]
    words += ["STS16", "STS17", "Tatoeba"]
    printed, scores = evaluate(*words)
    values = {score.set: score.value for score in scores}
    assert list(values) == ["STS16", "STS17", "Tatoeba"] and values["Tatoeba"] == 1
    assert "| STS17 (cosine_spearman) |" in printed and str(tmp_path / "r" / "local") in printed
    meta = st_paragram.model_meta(tiny)
    cache = mteb.ResultCache(tmp_path / "r" / "local")
    (model,) = cache.load_results().model_results
    assert (model.model_name, model.model_revision) == (meta.name, meta.revision)
    for result in model.task_results:
        assert result.dataset_revision == "local"
        assert result.get_score() == pytest.approx(values[result.task_name], abs=1e-5)
        assert list(result.scores) == ["test"]
    (stored,) = (tmp_path / "r").rglob("model_meta.json")
    stored = mteb.models.ModelMeta.model_validate_json_resolved(stored.read_text())
    assert stored.embed_dim == meta.embed_dim == 16
    assert stored.n_embedding_parameters == meta.n_embedding_parameters > 0
    # finished tasks are not repeated
    monkeypatch.setattr(AbsTaskSTS, "evaluate", lambda *_, **__: pytest.fail("evaluated again"))
    again = {score.set: score.value for score in evaluate(*words)[1]}
    assert again == pytest.approx(values, abs=1e-5)  # mteb's files have five decimals
    assert len(list((tmp_path / "r").rglob("STS1*.json"))) == 2


def test_results_on_data_of_the_hub_are_ready_for_submission(
    data, tiny, tmp_path, texts, evaluate, monkeypatch
):
    import mteb
    from mteb.abstasks import abstask

    columns = {"sentence1": texts[:9], "sentence2": texts[1:10], "score": [*range(5), *range(4)]}
    loaded = []

    def load_dataset(path, revision, **_):
        loaded.append((path, revision))
        return DatasetDict(test=Dataset.from_dict(columns))

    monkeypatch.setattr(abstask, "load_dataset", load_dataset)
    words = ["--benchmarks", "mteb", "--tasks", "STSBenchmark", "--results", tmp_path / "r"]
    printed, _ = evaluate(tiny, "--hub", *words)
    assert f"`mteb submit-results --output-folder {tmp_path / 'r'}`" in printed
    source = mteb.get_task("STSBenchmark").metadata.dataset
    assert loaded == [(source["path"], source["revision"])]
    meta = st_paragram.model_meta(tiny)
    folder = tmp_path / "r" / "results" / meta.model_name_as_path() / meta.revision
    assert json.loads((folder / "model_meta.json").read_text())["name"] == meta.name
    assert (
        json.loads((folder / "STSBenchmark.json").read_text())["dataset_revision"]
        == source["revision"]
    )
    refusal = "no data of mteb's task STSBenchmark; give --hub, or another folder"
    assert refusal in evaluate(tiny, "--data", data, *words, refused=True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tasks", "STS16"], "--tasks and the benchmark mteb belong together; give both"),
        (["--benchmarks", "mteb"], "--tasks and the benchmark mteb belong together; give both"),
        (["--benchmarks", "mteb", "--tasks", "STS16", "--untrained"], "leave out --untrained"),
        (["--benchmarks", "mteb", "--tasks", "STS99"], "`mteb available-tasks` lists the tasks"),
        (
            ["--benchmarks", "mteb", "--tasks", "STS17", "--languages", "zzzz"],
            "'zzzz' is not a language code",
        ),
        (
            ["--benchmarks", "mteb", "--tasks", "STS17", "--languages", "fr"],
            "STS17: the data have none of the languages; they have es-en",
        ),
    ],
)
def test_requests_that_contradict_themselves_are_refused(words, message, data, tiny, evaluate):
    assert message in evaluate(tiny, "--data", data, *words, refused=True)
