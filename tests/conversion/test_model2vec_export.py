"""Folders for model2vec give there what the native reader gives, and open in plain sentence-transformers."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support.exports import KNOWN, WITHOUT_KNOWN, cosines, ids_of, saved_model

import st_paragram
from st_paragram.cli.main import main
from st_paragram.conversion.exports import ExportSettings, export_model

model2vec = pytest.importorskip("model2vec")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("normalize", [False, True])
def test_vectors_are_those_of_the_native_reader(vocabulary, tmp_path, dtype, normalize):
    """Also of a text of thousands of tokens; a text without a known token is zero there."""
    source = saved_model(vocabulary, tmp_path / "model")
    folder = export_model(source, tmp_path / "v", "model2vec", ExportSettings(dtype, 30, normalize))
    small = tmp_path / "small"
    assert main(["export", str(source), str(small), "--dtype", dtype, "--dim", "30"]) == 0
    native = st_paragram.load(small, device="cpu").encode(KNOWN, normalize_embeddings=normalize)
    reader = model2vec.StaticModel.from_pretrained(folder)
    assert (reader.normalize, reader.embedding_dtype) == (normalize, dtype)
    assert getattr(reader, "max_length", None) is None  # old versions do not read it
    rounding = {"rtol": 5e-3, "atol": 5e-3} if dtype == "float16" else {"rtol": 1e-4, "atol": 2e-6}  # sums float16
    rows = reader.encode(KNOWN)
    np.testing.assert_allclose(rows.astype(np.float32), native, **rounding)
    assert cosines(rows, native).min() > 0.9999
    assert not reader.encode(WITHOUT_KNOWN).any()


def test_dropped_pieces_leave_directions_as_they_are(vocabulary, tmp_path):
    source = saved_model(vocabulary, tmp_path / "model", ids_of(vocabulary, "ba ce"))
    rows = model2vec.StaticModel.from_pretrained(export_model(source, tmp_path / "v", "model2vec")).encode(KNOWN)
    native = st_paragram.load(source, device="cpu").encode(KNOWN)
    directions = np.linalg.norm(rows, axis=1) > 0
    assert directions.sum() > 3
    assert cosines(rows[directions], native[directions]).min() > 0.999999


@pytest.mark.parametrize("normalize", [False, True])
def test_it_opens_in_sentence_transformers(vocabulary, tmp_path, normalize):
    source = saved_model(vocabulary, tmp_path / "model")
    folder = export_model(source, tmp_path / "v", "model2vec", ExportSettings(normalize=normalize))
    stock = SentenceTransformer(str(folder), device="cpu").encode(KNOWN[:2])
    native = st_paragram.load(source, device="cpu").encode(KNOWN[:2], normalize_embeddings=normalize)
    np.testing.assert_allclose(stock, native, rtol=1e-4, atol=2e-6)
