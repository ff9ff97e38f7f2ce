"""The files of averaging models: mapped tables are shared and private, saving and opening do no more than they must."""

from __future__ import annotations

import json
import mmap

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from st_paragram import Encoder
from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.find import SHIPPED_MODELS, find, shipped_folder
from st_paragram.core.encoding.table import Table, TableType
from st_paragram.errors import ModelDirectoryError

UNKNOWN = {"unknown_embedding": np.zeros(5, np.float32)}


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


def test_the_table_is_a_private_mapping_that_processes_share():
    base = Encoder(shipped_folder()).model.table.weight
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base.obj, mmap.mmap)


@pytest.mark.parametrize("name", SHIPPED_MODELS)
def test_opening_leaves_no_file_anywhere(tmp_path, monkeypatch, name):
    for variable in ("HOME", "XDG_CACHE_HOME", "ST_PARAGRAM_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    before = sorted(shipped_folder(name).iterdir())
    Encoder(name).encode("a station")
    assert not list(tmp_path.iterdir()) and sorted(shipped_folder(name).iterdir()) == before


def test_a_save_converts_the_tokenizer_only_for_readers_that_want_it(tmp_path, monkeypatch):
    made, convert = [], model_files.stock_tokenizer
    monkeypatch.setattr(model_files, "stock_tokenizer", lambda tokenizer: made.append(tokenizer) or convert(tokenizer))
    encoder = Encoder(shipped_folder())
    encoder.save(tmp_path / "int4", truncate_dim=8)
    assert not made and not (tmp_path / "int4" / "tokenizer.json").exists()
    encoder.save(tmp_path / "int8", truncate_dim=8, dtype="int8")
    assert len(made) == 1 and (tmp_path / "int8" / "tokenizer.json").exists()


@pytest.mark.parametrize(("kind", "number"), [("float32", np.nan), ("float16", np.inf)])
def test_numbers_that_no_mean_has_are_not_saved(folder, tmp_path, kind, number):
    encoder = Encoder(folder)
    encoder.model.table.weight[3, 2] = number
    with pytest.raises(Exception, match=r"NaN or infinite|do not fit in float16"):
        encoder.save(tmp_path / "n", dtype=kind)
    assert not (tmp_path / "n").exists() and np.isfinite(Encoder(folder).encode("station")).all()


@pytest.mark.parametrize(("kind", "value"), [("float32", np.nan), ("float16", np.inf)])
@pytest.mark.parametrize("options", [{}, {"normalize_embeddings": True}, {"truncate_dim": 2}])
def test_a_vector_that_is_not_finite_never_comes_out(tmp_path, kind, value, options):
    folder = Encoder(shipped_folder()).save(tmp_path / "m", dtype=kind, truncate_dim=4)
    (ids, _), texts = Encoder(folder).tokenizer.encode(["station"]), ["a town", "the station"]
    tensors = load_file(folder / "model.safetensors")
    tensors["embedding.weight"][ids[0], 1] = value
    save_file(tensors, folder / "model.safetensors")
    encoder = Encoder(folder)
    assert np.isfinite(encoder.encode(texts[:1], **options)).all()
    for given in (texts, texts[1]):
        with pytest.raises(ModelDirectoryError, match=r"^the embedding of 'the station' has NaN or infinite") as caught:
            encoder.encode(given, **options)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("int8", "weights", np.nan), ("int4", "embedding.scale", np.inf), ("int8", "unknown_embedding", 1e30)],
)
def test_scales_that_are_not_finite_are_refused(tmp_path, kind, name, value):
    folder = Encoder(shipped_folder()).save(tmp_path / "m", dtype=kind, truncate_dim=12)
    tensors = load_file(folder / "model.safetensors")
    tensors[name][9] = value
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelDirectoryError, match=f"{name} has NaN, infinite or huge numbers"):
        Encoder(folder)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"embedding.weight": np.zeros((9, 5), np.float64)}, "'F64'"),
        ({"embedding.weight": np.zeros((9, 5), np.float32)}, "the tensor 'unknown_embedding' is missing"),
        ({**UNKNOWN, "embedding.weight": np.zeros((9, 4), np.float32)}, r"\(9, 4\), expected float32, \(9, 5\)"),
        ({**UNKNOWN, "embedding.weight": np.zeros((9, 5), np.float16)}, "a table of float16, .* expected float32"),
    ],
)
def test_other_tables_are_named(tmp_path, tensors, message):
    save_file(tensors, tmp_path / "t.safetensors")
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        model_files.map_table(tmp_path / "t.safetensors", (9, 5), TableType.FLOAT32, 0)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [0, 5, 100, -9])
def test_a_file_that_was_cut_is_refused(folder, size):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelDirectoryError, match=r"model\.safetensors: not the weights"):
        Encoder(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"surprise": 1}, "surprise"),
        ({"dropout": 2}, "dropout is 2"),
        ({"table_type": "int2"}, "int2"),
        ({"vocabulary_size": 7}, "48000 ids, st_paragram.json says 7"),
        ({"tokenizer_kind": "word"}, r"word\.model is missing"),
        ({"tokenizer_kind": "sent\ncepiece"}, r"sent cepiece\.model is missing"),
        ({"format_version": 2}, "version 2.* update it"),
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
