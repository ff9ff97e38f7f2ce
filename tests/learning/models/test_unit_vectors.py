"""Averaging models that end with `Normalize`: unit vectors in every reader, by the fast path, in
equal directories.
"""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import st_paragram
from st_paragram.core.embedding_table import TableType
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.learning.models import load_save
from st_paragram.learning.models.averaging import gives_unit_vectors
from st_paragram.learning.models.sentence_transformers_encoder import pipeline, with_unit_vectors
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

TEXTS = ["ba ce di", "Ha JE ki lo mu na", "ba Ω ce", "fo", "zu" * 40]
ARGUMENTS = [
    {},
    {"normalize_embeddings": True},
    {"truncate_dim": 5},
    {"batch_size": 2, "convert_to_tensor": True},
]


@pytest.fixture
def model(vocabulary):
    torch.manual_seed(3)
    return pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")


@pytest.fixture
def saved(model, tmp_path):
    return load_save.save(model, tmp_path / "unit", normalize=True)


def lengths(rows):
    return np.linalg.norm(np.asarray(rows, dtype=np.float64), axis=1)


def test_the_vectors_are_the_means_divided_by_their_lengths(model, saved):
    means = model.encode(TEXTS)
    assert lengths(means).min() > 0 and np.abs(lengths(means) - 1).max() > 0.1
    loaded = st_paragram.load(saved, device="cpu")
    rows = loaded.encode(TEXTS)
    assert not loaded.encode(["", "\u200b"]).any()
    np.testing.assert_allclose(rows, means / lengths(means)[:, None], rtol=1e-5, atol=1e-7)
    assert gives_unit_vectors(loaded) and not gives_unit_vectors(model)


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_the_fast_path_gives_what_the_base_class_gives(model, monkeypatch, arguments):
    unit = with_unit_vectors(model)
    plain = SentenceTransformer(modules=list(unit), device="cpu").encode(TEXTS, **arguments)
    monkeypatch.setattr(
        SentenceTransformer, "encode", lambda *a, **k: pytest.fail("not the fast path")
    )
    np.testing.assert_allclose(unit.encode(TEXTS, **arguments), plain, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", list(TableType))
@pytest.mark.parametrize("settings", [{}, {"truncate_dim": 5}])
def test_the_stock_reader_gives_unit_vectors(model, tmp_path, dtype, settings):
    """`truncate_dim` while loading cuts our table, but the stock reader's finished vectors."""
    folder = load_save.save(model, tmp_path / "unit", dtype=dtype, normalize=True)
    plugin = dtype is TableType.INT4
    stock = SentenceTransformer(str(folder), device="cpu", trust_remote_code=plugin, **settings)
    names = ["TokenEmbedding", "MeanPool"] if plugin else ["StaticEmbedding"]
    assert [type(module).__name__ for module in stock] == [*names, "Normalize"]
    theirs = stock.encode(TEXTS).astype(np.float64)
    ours = st_paragram.load(folder, device="cpu", **settings).encode(TEXTS).astype(np.float64)
    cosines = (theirs * ours).sum(1) / lengths(theirs) / lengths(ours)
    assert cosines.min() > 0.99999
    np.testing.assert_allclose(lengths(ours), 1, rtol=1e-5)
    if settings:
        assert lengths(theirs).max() < 0.999
    else:
        np.testing.assert_allclose(lengths(theirs), 1, rtol=2e-3)


def test_it_is_written_down_and_kept(model, saved, tmp_path):
    plain = load_save.save(model, tmp_path / "plain")
    stored = [
        json.loads((folder / "st_paragram.json").read_text())["normalize"]
        for folder in (saved, plain)
    ]
    assert stored == [True, False] and fingerprint(saved) != fingerprint(plain)
    st_paragram.load(saved).save_pretrained(str(tmp_path / "again"))
    again = load_save.save(st_paragram.load(tmp_path / "again"), tmp_path / "third")
    np.testing.assert_array_equal(
        st_paragram.load(again).encode(TEXTS), st_paragram.load(saved).encode(TEXTS)
    )
