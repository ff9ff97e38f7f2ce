"""The files of averaging models: private mappings, refusals, and where models are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import st_paragram
from st_paragram import Encoder
from st_paragram.core.embedding_table import Table, TableType
from st_paragram.core.model_directory import model_files
from st_paragram.core.model_directory.find import find, shipped_folder
from st_paragram.errors import ModelDirectoryError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "m"
    return Encoder(shipped_folder()).save(folder, dtype="float32", truncate_dim=8)


@pytest.fixture
def folder(saved, tmp_path):
    """A copy of the saved model, which a test may change."""
    return Path(shutil.copytree(saved, tmp_path / "m"))


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
    Encoder(shipped_folder()).save(
        folder, dtype="float32", truncate_dim=8, normalize=True, overwrite=True
    )
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
    with pytest.raises(
        ModelDirectoryError, match=r"^the embedding of 'the station' has NaN or infinite"
    ):
        encoder.encode(texts, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dropout": 2}, "dropout is 2"),
        ({"vocabulary_size": 7}, "48000 ids, but st_paragram.json has 7"),
        ({"tokenizer_kind": "word"}, r"word\.model is missing"),
        ({"format_version": 2}, "version 2.* update st_paragram"),
        ({"normalize": "yes"}, "normalize is 'yes', not true or false"),
        ({"embedding_dimension": 1.5}, r"embedding_dimension is 1\.5, not a whole number"),
        ({"embedding_dimension": True}, "embedding_dimension is True, not a whole number"),
        ({"embedding_dimension": -3}, "embedding_dimension is -3; it must be at least 1"),
        ({"vocabulary_size": "x"}, "vocabulary_size is 'x', not a whole number"),
        ({"dropout": "0"}, "dropout is '0', not a whole number or a number"),
        ({"dropout": float("nan")}, "dropout is nan"),
        ({"tokenizer_options": []}, r"tokenizer_options is \[\], not an object"),
        ({"tokenizer_options": {"lower_case": 1}}, "lower_case is 1, not true or false"),
        (
            {"tokenizer_kind": "../outside"},
            r"tokenizer_kind is '\.\./outside', not one of sentencepiece, word",
        ),
        ({"tokenizer_kind": ["word"]}, r"tokenizer_kind is \['word'\], not a text"),
        ({"table_type": 8}, "table_type is 8, not a text"),
        ({"architecture": 1}, "architecture 1"),
        ({"more": 1}, "more"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(folder, changes, message):
    path = folder / "st_paragram.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ModelDirectoryError, match=message):
        Encoder(folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"truncate_dim": 1.5}, r"truncate_dim is 1\.5, not a whole number"),
        ({"truncate_dim": True}, "truncate_dim is True, not a whole number"),
        ({"truncate_dim": 0}, "truncate_dim is 0; give at least 1"),
        ({"prompts": ["a"]}, r"prompts is \['a'\], not an object"),
        ({"prompts": {"query": 3}}, "a prompt is 3, not a text"),
        ({"default_prompt_name": 1}, "default_prompt_name is 1, not a text"),
        ({"similarity_fn_name": ["cosine"]}, r"similarity_fn_name is \['cosine'\], not a text"),
        ([1], r"the content is \[1\], not an object"),
        (None, "the content is None, not an object"),
    ],
)
def test_settings_of_another_type_are_refused_in_one_line(folder, settings, message):
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        Encoder(folder)
    assert "\n" not in str(caught.value) and "config_sentence_transformers.json" in str(
        caught.value
    )


def test_no_file_outside_the_folder_is_opened(folder, tmp_path, monkeypatch):
    (tmp_path / "outside.model").write_bytes((folder / "sentencepiece.model").read_bytes())
    path = folder / "st_paragram.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_kind": "../outside"}))
    opened = []
    monkeypatch.setattr(
        Path, "read_bytes", lambda self: opened.append(self.name) or self.open("rb").read()
    )
    for reader in (Encoder, st_paragram.load):
        with pytest.raises(ModelDirectoryError, match="tokenizer_kind is"):
            reader(folder)
    assert "outside.model" not in opened


def test_a_configuration_is_an_object(folder):
    for text in ("[]", "3", "null", '"x"', "{", "\xff"):
        (folder / "st_paragram.json").write_text(text, encoding="latin-1")
        with pytest.raises(ModelDirectoryError, match=r"st_paragram\.json: ") as caught:
            Encoder(folder)
        assert "\n" not in str(caught.value)


def test_where_models_are(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("~/m") == find(folder) == folder and find("p-sp-base") == shipped_folder(
        "p-sp-base"
    )
    for name in ("~/n", "n", "a/b/c", str(tmp_path / "n")):
        with pytest.raises(
            ModelDirectoryError, match=f"no model '{name}': no such folder; give a path"
        ):
            find(name)
    with pytest.raises(ModelDirectoryError, match=r"model\.safetensors is a file"):
        find(folder / "model.safetensors")
