"""The files of averaging models: mapped tables are shared and private, saving and opening do no more than they must."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from st_paragram import Encoder
from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.find import find, shipped_folder
from st_paragram.core.encoding.table import Table, TableType
from st_paragram.errors import ModelDirectoryError


@pytest.fixture
def folder(tmp_path):
    return Encoder(shipped_folder()).save(tmp_path / "m", dtype="float32", truncate_dim=8)


@pytest.mark.parametrize("kind", list(TableType))
def test_what_was_written_is_mapped(tmp_path, rng, kind):
    table = Table(rng.standard_normal((9, 6)).astype(np.float32)).converted(kind)
    model_files.write_table(tmp_path / "t.safetensors", table, 4)
    stored = load_file(tmp_path / "t.safetensors")
    stock = stored.get("embedding.weight", stored.get("embeddings"))
    assert not stock[4].any() or kind is TableType.INT4  # which no stock reader averages
    again = model_files.map_table(tmp_path / "t.safetensors", (9, 6), kind, 4)
    np.testing.assert_array_equal(again.weight, table.weight)
    assert load_file(tmp_path / "t.safetensors").keys() == stored.keys()  # the mapping is private


def test_a_file_that_is_replaced_leaves_open_tables_as_they_are(folder):
    encoder = Encoder(folder)
    before = encoder.encode("station")
    Encoder(shipped_folder()).save(folder, dtype="float32", truncate_dim=8, normalize=True, overwrite=True)
    np.testing.assert_array_equal(encoder.encode("station"), before)


def test_numbers_that_no_mean_has_are_not_saved(folder, tmp_path):
    encoder = Encoder(folder)
    encoder.model.table.weight[3, 2] = np.nan
    with pytest.raises(ModelDirectoryError, match="NaN or infinite"):
        encoder.save(tmp_path / "n")
    assert not (tmp_path / "n").exists() and np.isfinite(Encoder(folder).encode("station")).all()


@pytest.mark.parametrize("options", [{}, {"normalize_embeddings": True}, {"truncate_dim": 2}])
def test_a_vector_that_is_not_finite_never_comes_out(folder, options):
    (ids, _), texts = Encoder(folder).tokenizer.encode(["station"]), ["a town", "the station"]
    tensors = load_file(folder / "model.safetensors")
    tensors["embedding.weight"][ids[0], 1] = np.nan
    save_file(tensors, folder / "model.safetensors")
    encoder = Encoder(folder)
    assert np.isfinite(encoder.encode(texts[:1], **options)).all()
    with pytest.raises(ModelDirectoryError, match=r"^the embedding of 'the station' has NaN or infinite"):
        encoder.encode(texts, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropout": 2}, "dropout is 2"),
        ({"vocabulary_size": 7}, "48000 ids, but st_paragram.json has 7"),
        ({"tokenizer_kind": "word"}, r"word\.model is missing"),
        ({"format_version": 2}, "version 2.* update st_paragram"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(folder, changes, message):
    path = folder / "st_paragram.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ModelDirectoryError, match=message):
        Encoder(folder)


def test_where_models_are(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("~/m") == find(folder) == folder and find("p-sp-base") == shipped_folder("p-sp-base")
    for name in ("~/n", "n", "a/b/c", str(tmp_path / "n")):
        with pytest.raises(ModelDirectoryError, match=f"no model '{name}': no such folder; give a path"):
            find(name)
    with pytest.raises(ModelDirectoryError, match=r"model\.safetensors is a file"):
        find(folder / "model.safetensors")
