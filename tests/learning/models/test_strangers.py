"""Model directories of strangers: what they may not make the reader do."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.core.tokenizers.stock import convert_tokenizer
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


@pytest.fixture
def averaging(vocabulary, tmp_path):
    return model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu"), tmp_path / "averaging")


@pytest.fixture
def stock(pairs, tmp_path):
    return model_directory.save(lstm_pipeline([a for a, _ in pairs[:20]]), tmp_path / "stock")


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refused(folder, message):
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(folder, device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "os.path.join"}, "names os.path.join, not a module of st_paragram or sentence-transformers"),
        ({"type": "modeling.Evil"}, "names modeling.Evil, not a module of"),
        ({"type": "st_paragram.learning.modules.mean_pool.MeanPool"}, "not a module of"),
        ({"type": "sentence_transformers.base.model.pickle"}, "which is not a module of a pipeline"),
        ({"type": "sentence_transformers.SentenceTransformer"}, "which is not a module of a pipeline"),
        ({"type": 3}, "cannot read it"),
        ({"path": "../averaging"}, "names the folder ../averaging, which is outside the model's"),
        ({"path": "/etc"}, "outside the model's"),
        ({"path": "..\\x"}, "outside the model's"),
        ({"path": "link"}, "names the folder link, which is outside the model's"),
        ({"path": None}, "cannot read it"),
    ],
)
def test_modules_of_a_stock_pipeline_are_checked_before_they_are_imported(stock, tmp_path, change, message):
    (stock / "link").symlink_to(tmp_path, target_is_directory=True)
    (stock / "modeling.py").write_text("raise SystemExit('run')")
    entries = json.loads((stock / "modules.json").read_text())
    entries[1] |= change
    (stock / "modules.json").write_text(json.dumps(entries))
    refused(stock, message)


def test_pickled_weights_are_not_read(stock):
    (stock / "1_LSTM" / "model.safetensors").rename(stock / "1_LSTM" / "pytorch_model.bin")
    refused(stock, r"1_LSTM/pytorch_model.bin is pickled")


def test_a_tokenizer_on_which_its_library_panics_is_refused(vocabulary, tmp_path):
    words = convert_tokenizer(vocabulary)
    model = SentenceTransformer(modules=[StaticEmbedding(words, embedding_dim=4)], device="cpu")
    folder = model_directory.save(model, tmp_path / "static")
    text = (folder / "tokenizer.json").read_text()
    begin = text.index('"precompiled_charsmap"') + 50
    (folder / "tokenizer.json").write_text(text[:begin] + text[begin + 1 :])
    refused(folder, "sentence-transformers cannot read it .*Precompiled")


def test_a_folder_without_modules_is_no_pipeline(stock):
    (stock / "modules.json").unlink()
    refused(stock, r"modules\.json is missing")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(stock, value):
    path = stock / "1_LSTM" / "model.safetensors"
    tensors = load_file(path)
    next(iter(tensors.values())).view(-1)[0] = value
    save_file(tensors, path)
    refused(stock, "NaN or infinite")


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"format_version": 3, "architecture": ' + "[" * 900 + "]" * 900 + "}",
        '{"format_version": ' + "9" * 5000 + "}",
        '{"format_version": Infinity}',
        '{"format_version": [1]}',
        "\ufeff{}",
    ],
)
def test_odd_configurations_are_refused(averaging, content):
    (averaging / "st_paragram.json").write_text(content)
    refused(averaging, r"st_paragram\.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embedding_dimension": 0}, "expected"),
        ({"embedding_dimension": 10**300}, "embedding_dimension is|expected"),
        ({"tokenizer_kind": "\0"}, "is missing"),
        ({"tokenizer_options": {"model": 1}}, "cannot have the options"),
        ({"dropout": float("nan")}, "dropout"),
        ({"self": 1}, "not a configuration"),
        ({"architecture": "a\nb" * 500}, "architecture"),
    ],
)
def test_odd_values_are_refused(averaging, change, message):
    edit(averaging / "st_paragram.json", **change)
    with pytest.raises(st_paragram.errors.ParagramError, match=message) as caught:
        st_paragram.load(averaging, device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("prompts", [{"query": 5}, ["query"], "query", {"query": ["ba"]}])
def test_prompts_that_are_no_texts_are_refused(averaging, stock, prompts):
    for folder in (averaging, stock):
        edit(folder / "config_sentence_transformers.json", prompts=prompts, default_prompt_name="query")
        refused(folder, r"config_sentence_transformers\.json: not readable")


def test_a_card_that_is_no_text_is_no_obstacle(averaging):
    (averaging / "README.md").write_bytes(b"\xff\xfe" * 20)
    assert st_paragram.load(averaging, device="cpu").encode("ba").shape == (12,)


def test_a_table_larger_than_its_configuration_says_is_refused_before_it_is_read(averaging):
    save_file(
        {"embedding.weight": torch.zeros(3, 12), "unknown_embedding": torch.zeros(12)}, averaging / "model.safetensors"
    )
    refused(averaging, r"\(3, 12\), expected")
