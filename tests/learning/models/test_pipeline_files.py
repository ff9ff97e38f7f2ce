"""Model directories of pipelines: sentence-transformers' modules, ours, or both, as
`save_pretrained` writes them.
"""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Normalize, Pooling
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.core.model_directory.record import TrainingRecord, read_training_record
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.untrained import random_model
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

TEXTS = ["ba ce di", "", "Ω", "fo gu ha je"]


def of(modules, similarity="cosine"):
    return SentenceTransformer(modules=modules, device="cpu", similarity_fn_name=similarity)


def pipelines(vocabulary, pairs):
    first = SentencePieceEmbedding(vocabulary, 12)
    return {
        "stock": lstm_pipeline([text for pair in pairs for text in pair]),
        "ours and theirs": of([first, Pooling(12, pooling_mode="max")], "dot"),
        "recurrent": of([first, LSTM(12, 8), Pooling(16, pooling_mode="mean")]),
        "averaging": of([first, MeanPool(12)]),
        "unit vectors": of([first, MeanPool(12), Normalize()]),
    }


KINDS = ["stock", "ours and theirs", "recurrent", "averaging", "unit vectors"]


@pytest.fixture
def model(request, vocabulary, pairs):
    torch.manual_seed(1)
    made = pipelines(vocabulary, pairs)[getattr(request, "param", "stock")]
    made.prompts["query"] = "ba "
    return made


@pytest.fixture
def saved(model, tmp_path):
    return load_save.save(model, tmp_path / "x", card="# x\n")


def test_the_card_of_a_loaded_pipeline_names_the_model_on_the_hub(model, tmp_path):
    saved = load_save.save(model, tmp_path / "x", card="")
    loaded = st_paragram.load(saved, device="cpu")
    loaded.model_card_data.model_id = "owner/x"
    loaded.save_pretrained(str(tmp_path / "again"))
    card = (tmp_path / "again" / "README.md").read_text(encoding="utf-8")
    assert 'SentenceTransformer("owner/x")' in card


@pytest.mark.parametrize("model", KINDS, indirect=True)
def test_a_pipeline_comes_back_with_its_settings(model, saved, pairs):
    texts = [*(a for a, _ in pairs[:40]), *TEXTS]
    loaded = st_paragram.load(saved, device="cpu")
    assert [type(each) for each in loaded] == [type(each) for each in model]
    np.testing.assert_allclose(loaded.encode(texts), model.encode(texts), rtol=1e-5, atol=1e-7)
    for options in ({}, {"convert_to_tensor": True}, {"precision": "int8"}, {"truncate_dim": 5}):
        no_rows = loaded.encode([], **options)
        some_rows = model.encode(texts[:2], **options)
        assert no_rows.shape == (0, some_rows.shape[1]) and no_rows.dtype == some_rows.dtype
    assert (loaded.similarity_fn_name, loaded.prompts["query"]) == (model.similarity_fn_name, "ba ")
    part = st_paragram.load(saved, device="cpu", truncate_dim=3)
    assert part.encode(texts).shape[1] == 3


@pytest.mark.parametrize("model", KINDS, indirect=True)
@pytest.mark.parametrize("way", ["save", "save_pretrained"])
def test_what_sentence_transformers_has_written_opens_with_the_same_vectors(model, tmp_path, way):
    getattr(model, way)(str(tmp_path / "plain"))
    assert not (tmp_path / "plain" / "st_paragram.json").exists()
    loaded = st_paragram.load(tmp_path / "plain", device="cpu")
    np.testing.assert_allclose(loaded.encode(TEXTS), model.encode(TEXTS), rtol=1e-5, atol=1e-7)
    assert loaded.prompts["query"] == "ba " and loaded._model_card_text
    averages = isinstance(model[1], MeanPool)
    assert isinstance(loaded, st_paragram.ParagramEncoder) == averages
    with pytest.raises(ModelDirectoryError, match=r"needs torch; open it with st_paragram\.load"):
        st_paragram.Encoder(tmp_path / "plain")
    again = load_save.save(loaded, tmp_path / "ours")
    np.testing.assert_allclose(
        st_paragram.load(again).encode(TEXTS), model.encode(TEXTS), rtol=1e-5, atol=1e-7
    )
    if averages:
        np.testing.assert_allclose(
            st_paragram.Encoder(again).encode(TEXTS), model.encode(TEXTS), rtol=1e-5, atol=1e-7
        )


def test_the_fingerprint_follows_the_weights_alone(model, saved, tmp_path):
    record = TrainingRecord(
        "x", ("en", "xx"), "x", 1, {}, "none", {"dim": 1}, 1.0, 1.0, [], translations=[]
    )
    same = load_save.save(model, tmp_path / "same", card="# other\n", training=record)
    assert read_training_record(same) == record and fingerprint(same) == fingerprint(saved)
    with torch.no_grad():
        model[1].encoder.bias_hh_l0[0] += 1
    assert fingerprint(load_save.save(model, tmp_path / "other")) != fingerprint(saved)


@pytest.mark.parametrize("arguments", [{"dtype": "int8"}, {"truncate_dim": 3}])
def test_there_is_no_table_to_make_smaller(model, tmp_path, arguments):
    with pytest.raises(SettingsError, match="only averaging models"):
        load_save.save(model, tmp_path / "y", **arguments)
    assert not (tmp_path / "y").exists()


@pytest.mark.parametrize("model", ["stock", "recurrent", "averaging"], indirect=True)
def test_an_untrained_model_has_the_architecture_and_other_weights(model, saved):
    found = [random_model(str(saved)).encode(TEXTS) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    assert np.isfinite(found[0]).all() and found[0].shape == model.encode(TEXTS).shape
    assert np.abs(found[0] - model.encode(TEXTS)).max() > 0.01
