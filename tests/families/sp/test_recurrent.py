"""Model directories of recurrent models: a table of pieces, a bidirectional LSTM, and the mean of its states."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from st_paragram.learning.models.architectures import architecture_named, architecture_of

import st_paragram
from st_paragram.core.encoding.directory import OWN_MODULES, fingerprint
from st_paragram.core.encoding.table import Table, TableType
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.sp.bilstm import BiLSTM
from st_paragram.families.sp.directory import RECURRENT, recurrent_modules, recurrent_pipeline
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.modules.compact_embedding import in_torch
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding

LSTM_WEIGHTS = "1_LSTM/model.safetensors"


@pytest.fixture
def model(vocabulary):
    embedding = SentencePieceEmbedding(vocabulary, 12, dropout=0.25)
    return recurrent_pipeline(embedding, 5, "cpu", prompts={"query": "ba ", "document": ""})


@pytest.fixture
def saved(model, tmp_path):
    return model_directory.save(model, tmp_path / "blstm", card="# blstm\n")


@pytest.fixture
def unsealed(saved):
    return saved


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(folder, message):
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(folder, device="cpu")
    assert "\n" not in str(caught.value)


def test_both_readers_give_the_same_vectors(model, saved, pairs):
    texts = [*(a for a, _ in pairs[:100]), "ba", "Ba CE"]
    expected = model.encode(texts)
    stock = SentenceTransformer(str(saved), device="cpu")
    assert [type(module).__name__ for module in stock] == ["WordEmbeddings", "LSTM", "Pooling"]
    np.testing.assert_allclose(stock.encode(texts), expected, atol=1e-6, rtol=0)
    ours = st_paragram.load(saved, device="cpu")
    assert [type(module) for module in ours] == [SentencePieceEmbedding, BiLSTM, MeanPool]
    np.testing.assert_array_equal(ours.encode(texts), expected)
    for loaded in (ours, stock):
        assert (loaded.prompts, loaded.similarity_fn_name) == (model.prompts, "cosine")
        prompted = loaded.encode("ce", prompt_name="query")
        np.testing.assert_allclose(prompted, model.encode("ba ce"), atol=1e-6, rtol=0)
    assert ours[0].dropout == 0.25 and not ours.training


def test_what_the_configuration_says(saved, vocabulary):
    assert json.loads((saved / "st_paragram.json").read_text()) == {
        "format_version": 3,
        "architecture": "recurrent",
        "embedding_dimension": 12,
        "hidden_dim": 5,
        "vocabulary_size": len(vocabulary),
        "tokenizer_kind": "sentencepiece",
        "tokenizer_options": {"lower_case": True, "segmentation": "none"},
        "dropout": 0.25,
        "table_type": "float32",
    }
    assert not list(saved.rglob("*.bin"))


def test_unknown_pieces_are_dropped_here_and_kept_by_the_stock_reader(model, saved):
    ours, stock = st_paragram.load(saved, device="cpu"), SentenceTransformer(str(saved), device="cpu")
    texts = ["", "ba Ω ce"]
    np.testing.assert_array_equal(ours.encode(texts), model.encode(texts))
    unknown = torch.tensor([[model[0].tokenizer.unknown_id]])
    state = model[1].encoder(model[0].embedding(unknown))[0][0, 0]
    np.testing.assert_allclose(ours.encode(""), state.detach().numpy(), atol=1e-6)
    assert not stock.encode("").any()
    assert np.abs(stock.encode("ba Ω ce") - ours.encode("ba Ω ce")).max() > 1e-3


def test_a_model_saved_again_is_the_same(saved, tmp_path, pairs):
    ours = st_paragram.load(saved, device="cpu")
    again = model_directory.save(ours, tmp_path / "again")
    assert fingerprint(again) == fingerprint(saved)
    with torch.no_grad():
        ours[1].encoder.bias_hh_l0[0] += 1
    changed = model_directory.save(ours, tmp_path / "changed")
    assert fingerprint(changed) != fingerprint(saved)
    short = st_paragram.load(saved, device="cpu", truncate_dim=3)
    np.testing.assert_array_equal(short.encode(pairs[0][0]), st_paragram.load(saved).encode(pairs[0][0])[:3])


def test_weights_fill_a_pipeline_of_the_same_shape_and_no_other(model, saved, vocabulary):
    torch.manual_seed(1)
    other = recurrent_pipeline(SentencePieceEmbedding(vocabulary, 12), 5, "cpu")
    assert not np.array_equal(other.encode("ba ce"), model.encode("ba ce"))
    architecture_of(other).read_weights(saved, other)
    np.testing.assert_array_equal(other.encode(["ba ce", ""]), model.encode(["ba ce", ""]))
    for dimension, hidden in ((13, 5), (12, 6)):
        unlike = recurrent_pipeline(SentencePieceEmbedding(vocabulary, dimension), hidden, "cpu")
        with pytest.raises(ModelDirectoryError, match="not the weights of this st_paragram model"):
            architecture_of(unlike).read_weights(saved, unlike)


def test_which_pipelines_are_recurrent(model, vocabulary):
    assert architecture_of(model) is architecture_named(RECURRENT, Path("x"))
    assert averaging_embedding(model) is None
    embedding = SentencePieceEmbedding(vocabulary, 12)
    table = in_torch(Table(torch.ones(len(vocabulary), 12).numpy()).converted(TableType.INT8))
    compact = SentencePieceEmbedding(vocabulary, weights=table)
    for modules in ([embedding, BiLSTM(12, 5), Pooling(10)], [compact, BiLSTM(12, 5), MeanPool(10)]):
        other = SentenceTransformer(modules=modules, device="cpu")
        assert recurrent_modules(other) is None
        assert architecture_of(other) is architecture_named(OWN_MODULES, Path("x"))
        with pytest.raises(ModelDirectoryError, match="is not a recurrent model"):
            architecture_named(RECURRENT, Path("x")).check(other)


@pytest.mark.parametrize("arguments", [{"dtype": "float16"}, {"truncate_dim": 3}])
def test_other_types_and_dimensions_are_refused(model, tmp_path, arguments):
    with pytest.raises(SettingsError, match="only averaging models"):
        model_directory.save(model, tmp_path / "x", **arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["sentencepiece.model", "model.safetensors", LSTM_WEIGHTS, "st_paragram.json"])
def test_missing_and_damaged_files_are_named(unsealed, name):
    (unsealed / name).write_bytes(b"x")
    refused(unsealed, name)
    (unsealed / name).unlink()
    with pytest.raises(ModelDirectoryError, match=name) as caught:
        st_paragram.load(unsealed, device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_dim": 6}, r"encoder\.bias_hh_l0 of shape \(20,\), expected \(24,\)"),
        ({"hidden_dim": 10**300}, "encoder.bias_hh_l0 of shape"),
        ({"hidden_dim": 0}, "hidden_dim is 0"),
        ({"hidden_dim": True}, "hidden_dim is True"),
        ({"hidden_dim": None}, "hidden_dim is None"),
        ({"embedding_dimension": 10**9}, r"emb_layer\.weight of shape \(\d+, 12\), expected"),
        ({"vocabulary_size": 7}, "st_paragram.json says 7"),
        ({"tokenizer_kind": "\0"}, "tokens with a table"),
        ({"table_type": "int8"}, "a table of int8"),
        ({"dropout": 2.0}, "dropout is 2.0"),
        ({"colour": "green"}, "colour"),
    ],
)
def test_odd_configurations_are_refused(unsealed, changes, message):
    edit(unsealed / "st_paragram.json", **changes)
    refused(unsealed, message)


@pytest.mark.parametrize("name", ["model.safetensors", LSTM_WEIGHTS])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors, name: tensors.pop(name), "of shape None, expected"),
        (lambda tensors, name: tensors.update({name: tensors[name][:2].clone()}), r"of shape \(2, \d+\), expected"),
        (lambda tensors, name: tensors.update(more=torch.zeros(1)), r"more of shape \(1,\), expected None"),
        (lambda tensors, name: tensors.update({name: tensors[name].half()}), "other numbers than finite ones"),
        (lambda tensors, name: tensors[name].view(-1)[0].fill_(torch.nan), "other numbers than finite ones"),
    ],
)
def test_other_weights_are_refused(unsealed, name, change, message):
    tensors = load_file(unsealed / name)
    change(tensors, next(key for key in tensors if "weight" in key))
    save_file(tensors, unsealed / name)
    refused(unsealed, message)


def test_no_class_is_imported_that_a_folder_names(model, unsealed):
    entries = json.loads((unsealed / "modules.json").read_text())
    entries[1]["type"] = "modeling.Evil"
    (unsealed / "modules.json").write_text(json.dumps(entries))
    (unsealed / "modeling.py").write_text("raise SystemExit('run')")
    edit(unsealed / "wordembedding_config.json", tokenizer_class="modeling.Evil")
    np.testing.assert_array_equal(st_paragram.load(unsealed, device="cpu").encode("ba ce"), model.encode("ba ce"))


def test_damaged_settings_of_the_pipeline_are_refused(unsealed):
    edit(unsealed / "config_sentence_transformers.json", prompts={"query": 5})
    refused(unsealed, "config_sentence_transformers.json")
    edit(unsealed / "config_sentence_transformers.json", prompts={}, default_prompt_name="nothing")
    refused(unsealed, "not found in the configured prompts")
