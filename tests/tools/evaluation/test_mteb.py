"""mteb evaluates a model by its metadata, offline, and files it under name and weights."""

import importlib.util

import numpy as np
import pytest
import torch

import st_paragram
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

if importlib.util.find_spec("mteb") is None:  # importing it takes seconds: the process does that has these tests
    pytest.skip("mteb is not installed", allow_module_level=True)


def test_the_metadata_are_complete_and_load_the_model():
    meta = st_paragram.model_meta("p-sp-mini", reference="https://example.org/p-sp-mini")
    assert meta.name == "st-paragram/p-sp-mini" and meta.embed_dim == 256 and len(meta.revision) == 12
    assert meta.languages == ["ara-Arab", "deu-Latn", "eng-Latn", "fra-Latn", "rus-Cyrl", "spa-Latn", "tur-Latn",
                              "zho-Hans"]  # fmt: skip
    assert (meta.license, meta.training_datasets) == ("cc-by-sa-4.0", {"Tatoeba"})
    assert meta.release_date.startswith("20") and meta.reference.endswith("p-sp-mini")
    loaded, texts = meta.load_model(), ["a cat", "ein Hund"]
    assert loaded.mteb_model_meta.revision == meta.revision
    np.testing.assert_allclose(loaded.model.encode(texts), st_paragram.load("p-sp-mini").encode(texts), rtol=1e-6)


def test_other_weights_are_another_revision_and_models_of_others_not_ours(vocabulary, tmp_path):
    from sentence_transformers import SentenceTransformer

    for seed in (1, 2):
        torch.manual_seed(seed)
        model = pipeline(SentencePieceEmbedding(vocabulary, 24), device="cpu")
        model_directory.save(model, tmp_path / str(seed) / "p-sp-xx")
    ours, again = (st_paragram.model_meta(str(tmp_path / seed / "p-sp-xx")) for seed in ("1", "2"))
    assert ours.name == again.name and ours.revision != again.revision
    stock = SentenceTransformer(str(tmp_path / "1" / "p-sp-xx"), device="cpu")
    stock.save_pretrained(str(tmp_path / "other"))
    foreign = st_paragram.model_meta(str(tmp_path / "other"))
    assert foreign.name == "local/other" and foreign.revision != ours.revision and foreign.training_datasets is None
