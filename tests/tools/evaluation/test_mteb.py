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


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary):
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("model") / "p-sp-xx"
    return model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 24), device="cpu"), folder)


def test_the_metadata_are_complete_and_load_the_model(model):
    meta = st_paragram.model_meta(str(model))
    assert meta.name == "st-paragram/p-sp-xx" and meta.embed_dim == 24 and meta.n_parameters % 24 == 0
    loaded = meta.load_model()
    assert loaded.mteb_model_meta.revision == meta.revision and len(meta.revision) == 12
    texts = ["ba ce di", "fo gu"]
    np.testing.assert_allclose(loaded.model.encode(texts), st_paragram.load(model).encode(texts), rtol=1e-6)


def test_other_weights_are_another_revision_and_models_of_others_not_ours(model, vocabulary, tmp_path):
    from sentence_transformers import SentenceTransformer

    torch.manual_seed(2)
    other = pipeline(SentencePieceEmbedding(vocabulary, 24), device="cpu")
    model_directory.save(other, tmp_path / "p-sp-xx")
    ours, again = st_paragram.model_meta(str(model)), st_paragram.model_meta(str(tmp_path / "p-sp-xx"))
    assert ours.name == again.name and ours.revision != again.revision
    SentenceTransformer(str(model), device="cpu").save_pretrained(str(tmp_path / "other"))
    foreign = st_paragram.model_meta(str(tmp_path / "other"))
    assert foreign.name == "local/other" and foreign.revision != ours.revision
