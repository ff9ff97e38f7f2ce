"""mteb evaluates a model by its metadata, offline, and files it under name and weights."""

import importlib.util
import math
import os
import shutil

import numpy as np
import pytest
import torch

import st_paragram
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

# importing it takes seconds: the process does that has these tests
if importlib.util.find_spec("mteb") is None:
    pytest.skip("mteb is not installed", allow_module_level=True)

from mteb.languages import check_language_code

from st_paragram.core.model_directory.find import shipped_folder
from st_paragram.tools.evaluation.mteb_model import mteb_language


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
