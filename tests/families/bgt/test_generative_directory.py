"""Model directories of generative models: stock readers get the encoder, ours what is next to it,
too.
"""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from support.generative import LATENT, batch_of, new_generator

import st_paragram
from st_paragram.core.model_directory.configuration import fingerprint
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import OBJECTIVES
from st_paragram.learning.models import load_save
from st_paragram.learning.modules.transformer_encoder import pooled_states

DECODERS = "decoders/model.safetensors"

pytestmark = pytest.mark.usefixtures("one_thread")


def made(vocabulary, objective="bgt", **ways):
    generator = new_generator(vocabulary, objective, **ways)
    return GenerativeEncoder.of(generator.semantic.pipeline, ("en", "xx"), vocabulary, generator)


@pytest.fixture(scope="module")
def model(vocabulary):
    return made(vocabulary)


@pytest.fixture(scope="module")
def original(model, tmp_path_factory):
    return load_save.save(model, tmp_path_factory.mktemp("generative") / "bgt", card="# bgt\n")


@pytest.fixture
def texts(pairs):
    return [text for pair in pairs[:30] for text in pair]


def test_both_readers_give_the_same_vectors(model, original, texts, vocabulary):
    batch = batch_of(vocabulary, texts)
    with torch.no_grad():
        expected = model[2].linear(pooled_states(model, batch.ids, batch.mask)).numpy()
    ours, short = (st_paragram.load(original, device="cpu", truncate_dim=dim) for dim in (None, 3))
    stock = SentenceTransformer(str(original), device="cpu")
    for read in (stock, ours, model):
        np.testing.assert_allclose(read.encode(texts), expected, atol=1e-5, rtol=0)
    np.testing.assert_allclose(short.encode(texts), expected[:, :3], atol=1e-5, rtol=0)
    assert isinstance(ours, GenerativeEncoder) and not isinstance(stock, GenerativeEncoder)
    assert ours.languages == ("en", "xx") and ours.sentencepiece == vocabulary
    assert ours.similarity_fn_name == stock.similarity_fn_name == "cosine"
    assert ours.get_embedding_dimension() == LATENT
    for side, language in (("a", "en"), ("b", "xx")):
        expected = model.generator.languages[side].pipeline.encode(texts)
        read = SentenceTransformer(str(original / f"language-{language}"), device="cpu")
        np.testing.assert_allclose(read.encode(texts), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("objective", "ways"),
    [
        *((objective, {}) for objective in OBJECTIVES),
        ("bgt", {"at_attention": False}),
        ("bgt", {"at_logits": False}),
    ],
)
def test_what_is_beside_is_read_back_to_the_bit(vocabulary, tmp_path, objective, ways):
    mine = made(vocabulary, objective, **ways)
    load_save.save(mine, tmp_path / "x")
    mine.save_pretrained(str(tmp_path / "y"))
    expected = mine.generator.state_dict()
    for folder in (tmp_path / "x", tmp_path / "y"):
        read = st_paragram.load(folder, device="cpu").generator
        state = read.state_dict()
        assert state.keys() == expected.keys() and all(
            torch.equal(state[name], expected[name]) for name in expected
        )
        shapes = [
            (one.shape.transformer, one.shape.at_attention, one.shape.at_logits)
            for one in (read, mine.generator)
        ]
        assert shapes[0] == shapes[1] and read.special == mine.generator.special
        assert not read.training
        assert (folder / "language-en").is_dir() == OBJECTIVES[objective].languages


def test_a_model_saved_again_is_the_same(original, texts, tmp_path):
    ours = st_paragram.load(original, device="cpu")
    assert ours.generator is ours.generator and ours.generator.semantic.pipeline[0] is ours[0]
    ours.encode(texts)  # the tokenizer is told to cut and to pad, which leaves no trace
    assert fingerprint(load_save.save(ours, tmp_path / "again")) == fingerprint(original)
    assert not [name for name in load_file(original / DECODERS) if ".pipeline." in name]
    with pytest.raises(SettingsError, match="only averaging models"):
        load_save.save(ours, tmp_path / "x", dtype="float16")


def values(change):
    def damage(folder):
        stored = json.loads((folder / "st_paragram.json").read_text())
        change(stored)
        (folder / "st_paragram.json").write_text(json.dumps(stored))

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / DECODERS).unlink(), f"{DECODERS} is missing"),
        (
            lambda folder: (folder / "sentencepiece.model").write_bytes(b"x"),
            "not the vocabulary of this model",
        ),
        (
            values(lambda v: v["decoders"]["transformer"].update(layers=2)),
            "its tensors do not fit this model",
        ),
        (values(lambda v: v.update(languages=["en", "../en"])), r"language is '\.\./en'"),
    ],
)
def test_damage_is_named(original, tmp_path, damage, message):
    folder = shutil.copytree(original, tmp_path / "bgt")
    damage(folder)
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        _ = st_paragram.load(folder, device="cpu").generator
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700
