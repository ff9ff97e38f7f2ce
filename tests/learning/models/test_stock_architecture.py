"""Model directories of stock pipelines."""

import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.encoding.directory import fingerprint, weights_size
from st_paragram.core.encoding.model_files import table_type
from st_paragram.core.encoding.record import TrainingRecord, read_training_record
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.averaging import embedding_of

TEXTS = ["ba ce di", "", "Ω", "fo gu ha je"]


@pytest.fixture
def model(pairs):
    return lstm_pipeline([text for pair in pairs for text in pair])


@pytest.fixture
def saved(model, tmp_path):
    return model_directory.save(model, tmp_path / "bilstm", card="# bilstm\n")


def test_both_readers_give_back_the_pipeline(model, saved, pairs):
    texts = [a for a, _ in pairs[:40]] + TEXTS
    expected = model.encode(texts)
    for loaded in (st_paragram.load(saved, device="cpu"), SentenceTransformer(str(saved), device="cpu")):
        assert [type(module).__name__ for module in loaded] == ["WordEmbeddings", "LSTM", "Pooling"]
        np.testing.assert_array_equal(loaded.encode(texts), expected)
    assert json.loads((saved / "st_paragram.json").read_text()) == {"format_version": 3, "architecture": "stock"}
    assert (saved / "README.md").read_text() == "# bilstm\n"


def test_first_components(model, saved, pairs):
    texts = [a for a, _ in pairs[:5]]
    part = st_paragram.load(saved, device="cpu", truncate_dim=3)
    np.testing.assert_array_equal(part.encode(texts), model.encode(texts)[:, :3])


def test_the_fingerprint_follows_the_weights_alone(model, saved, tmp_path):
    record = TrainingRecord("x", ("en", "xx"), "x", 1, {}, "none", {"dim": 1}, 1.0, 1.0, [], translations=[])
    same = model_directory.save(model, tmp_path / "same", card="# other\n", training=record)
    assert read_training_record(same) == record
    assert fingerprint(same) == fingerprint(saved)
    with torch.no_grad():
        model[1].encoder.bias_hh_l0[0] += 1
    other = model_directory.save(model, tmp_path / "other")
    assert fingerprint(other) != fingerprint(saved)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    assert 4 * parameters < weights_size(saved) < 4 * parameters + 2000


@pytest.mark.parametrize("name", ["num_layers", "hidden_dim", "embedding_dimension"])
def test_sizes_beyond_the_weights_are_refused_before_anything_is_made(saved, name):
    (settings,) = saved.glob("*_LSTM/*.json")
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {name: 10**9}))
    with pytest.raises(ModelDirectoryError, match=rf"lstm_config.json has {name} 1e\+09, and its weights at most \d+"):
        st_paragram.load(saved, device="cpu")


@pytest.mark.parametrize("arguments", [{"dtype": "int8"}, {"truncate_dim": 3}])
def test_there_is_no_table_to_make_smaller(model, tmp_path, arguments):
    with pytest.raises(SettingsError, match="only averaging models"):
        model_directory.save(model, tmp_path / "x", **arguments)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("arguments", [[], ["--dtype", "int8"], ["--dim", "3"]])
def test_export_says_so_in_one_line(saved, tmp_path, capsys, arguments):
    assert main(["export", str(saved), str(tmp_path / "y"), *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "architecture 'stock'; only averaging models" in line
    assert not (tmp_path / "y").exists()


def test_there_is_no_table_to_ask_for(model, saved):
    with pytest.raises(ModelDirectoryError, match="WordEmbeddings and LSTM and Pooling: only TokenEmbedding"):
        embedding_of(model)
    with pytest.raises(ModelDirectoryError, match="architecture 'stock'"):
        table_type(saved)


def test_modules_that_a_stock_reader_would_not_import_are_refused(model, tmp_path):
    class Own(type(model[2])):
        pass

    model.append(Own(32))
    with pytest.raises(ModelDirectoryError, match="Own is not a module of st_paragram or sentence-transformers"):
        model_directory.check_savable(model)
    with pytest.raises(ModelDirectoryError, match="Own is not a module"):
        model_directory.save(model, tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("name", ["modules.json", "model.safetensors", "1_LSTM/model.safetensors"])
def test_damage_is_one_line(saved, name):
    (saved / name).write_bytes(b"x")
    with pytest.raises(ModelDirectoryError, match="sentence-transformers cannot read it") as caught:
        st_paragram.load(saved)
    assert "\n" not in str(caught.value)


def test_embed_takes_it(saved, tmp_path):
    (tmp_path / "x.txt").write_text("ba ce\ndi\n")
    assert main(["embed", str(tmp_path / "x.txt"), "--model", str(saved), "--output", str(tmp_path / "x.npy")]) == 0
    rows = np.load(tmp_path / "x.npy")
    np.testing.assert_allclose(rows, st_paragram.load(saved).encode(["ba ce", "di"]), rtol=1e-5, atol=1e-6)
