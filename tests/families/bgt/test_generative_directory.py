"""Model directories of generative models: stock readers get the encoder, ours what stands beside it, too."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from support.columns import columns, iterables
from support.generative import LATENT, batch_of, batches_of, new_generator, new_loss

import st_paragram
from st_paragram.core.encoding.directory import fingerprint
from st_paragram.core.tokenizers.sentencepiece import train_vocabulary
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import OBJECTIVES, SIDES
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.untrained import random_model
from st_paragram.learning.modules.transformer_encoder import pooled_states

DECODERS = "decoders/model.safetensors"
LANGUAGES = ("en", "xx")

pytestmark = pytest.mark.usefixtures("one_thread")


def made(vocabulary, objective="bgt", **ways):
    generator = new_generator(vocabulary, objective, **ways)
    return GenerativeEncoder.of(generator.semantic.pipeline, LANGUAGES, vocabulary, generator)


@pytest.fixture(scope="module")
def model(vocabulary):
    return made(vocabulary)


@pytest.fixture(scope="module")
def original(model, tmp_path_factory):
    return model_directory.save(model, tmp_path_factory.mktemp("generative") / "bgt", card="# bgt\n")


@pytest.fixture
def copy(original, tmp_path):
    """A copy, to be damaged."""
    return shutil.copytree(original, tmp_path / "bgt")


@pytest.fixture
def texts(pairs):
    return [text for pair in pairs[:30] for text in pair]


def refused(folder, message):
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        _ = st_paragram.load(folder, device="cpu").generator
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


def test_both_readers_give_the_same_vectors(model, original, texts, vocabulary):
    batch = batch_of(vocabulary, texts)
    with torch.no_grad():
        expected = model[2].linear(pooled_states(model, batch.ids, batch.mask)).numpy()
    stock, ours = SentenceTransformer(str(original), device="cpu"), st_paragram.load(original, device="cpu")
    for read in (stock, ours, model):
        np.testing.assert_allclose(read.encode(texts), expected, atol=1e-5, rtol=0)
    assert isinstance(ours, GenerativeEncoder) and not isinstance(stock, GenerativeEncoder)
    assert ours.languages == LANGUAGES and ours.sentencepiece == vocabulary
    assert ours.similarity_fn_name == stock.similarity_fn_name == "cosine"
    assert ours.get_embedding_dimension() == LATENT


@pytest.mark.parametrize("place", [0, 1])
def test_languages_encoders_are_models_of_their_own(model, original, texts, place):
    folder = original / f"language-{LANGUAGES[place]}"
    expected = model.generator.languages[SIDES[place]].pipeline.encode(texts)
    for read in (SentenceTransformer(str(folder), device="cpu"), st_paragram.load(folder, device="cpu")):
        np.testing.assert_allclose(read.encode(texts), expected, atol=1e-5, rtol=0)
    assert np.abs(expected - model.encode(texts)).max() > 0.01


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_stands_beside_is_read_back_to_the_bit(vocabulary, tmp_path, pairs, objective):
    mine = made(vocabulary, objective)
    folder = model_directory.save(mine, tmp_path / "x")
    ours = st_paragram.load(folder, device="cpu").generator
    state, expected = ours.state_dict(), mine.generator.state_dict()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert not ours.training and ours.special == mine.generator.special
    assert (folder / "language-en").is_dir() == OBJECTIVES[objective].languages
    loss, read = new_loss(vocabulary, objective), new_loss(vocabulary, objective)
    loss.generator, read.generator = mine.generator, ours
    batches, noise = batches_of(vocabulary, pairs[:3]), torch.randn(3, 3, LATENT)
    assert torch.equal(loss(batches, "a", noise).loss, read(batches, "a", noise).loss)


@pytest.mark.parametrize("way", ["at_attention", "at_logits"])
def test_ways_of_latent_variables_are_kept(vocabulary, tmp_path, way):
    mine = made(vocabulary, **{way: False})
    ours = st_paragram.load(model_directory.save(mine, tmp_path / "x"), device="cpu").generator
    assert ours.state_dict().keys() == mine.generator.state_dict().keys() and getattr(ours.shape, way) is False


def test_what_is_beside_is_no_part_of_the_pipeline(model, original):
    assert not [name for name, _ in model.named_parameters() if "generator" in name or "languages" in name]
    assert not [name for name in load_file(original / DECODERS) if ".pipeline." in name]
    ours = st_paragram.load(original, device="cpu")
    assert ours.generator is ours.generator and ours.generator.semantic.pipeline[0] is ours[0]


def test_a_model_saved_again_is_the_same(original, texts, tmp_path):
    ours = st_paragram.load(original, device="cpu")
    ours.encode(texts)  # the tokenizer is told to cut and to pad, which leaves no trace
    assert fingerprint(model_directory.save(ours, tmp_path / "again")) == fingerprint(original)
    with torch.no_grad():
        ours.generator.translators["a"].output.weight[0] += 1
    assert fingerprint(model_directory.save(ours, tmp_path / "changed")) != fingerprint(original)


def test_save_pretrained_writes_what_stands_beside_too(model, original, texts, tmp_path):
    model.save_pretrained(str(tmp_path / "saved"))
    assert "# " in (tmp_path / "saved" / "README.md").read_text()
    ours = st_paragram.load(tmp_path / "saved", device="cpu")
    np.testing.assert_array_equal(ours.encode(texts), model.encode(texts))
    parameters = zip(ours.generator.parameters(), model.generator.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in parameters)


@pytest.mark.parametrize("arguments", [{"dtype": "float16"}, {"truncate_dim": 3}])
def test_other_types_and_dimensions_are_refused(model, tmp_path, arguments):
    with pytest.raises(SettingsError, match="only averaging models"):
        model_directory.save(model, tmp_path / "x", **arguments)
    assert not list(tmp_path.iterdir())


def test_fewer_components_can_be_read(original, model):
    short = st_paragram.load(original, device="cpu", truncate_dim=3)
    np.testing.assert_allclose(short.encode("ba ce"), model.encode("ba ce")[:3], atol=1e-6)


@pytest.mark.parametrize("name", [DECODERS, "language-xx/model.safetensors", "sentencepiece.model"])
def test_missing_and_damaged_files_are_named(copy, name):
    (copy / name).write_bytes(b"x" * 100)
    refused(copy, name if name != "language-xx/model.safetensors" else "language-xx")
    (copy / name).unlink()
    refused(copy, name if name != "language-xx/model.safetensors" else "language-xx")


CHANGES = {
    "half precision": lambda tensors, name: tensors.update({name: tensors[name].half()}),
    "no number": lambda tensors, name: tensors[name].view(-1)[0].fill_(torch.nan),
    "another shape": lambda tensors, name: tensors.update({name: tensors[name][:2].clone()}),
    "one less": lambda tensors, name: tensors.pop(name),
    "one more": lambda tensors, name: tensors.update(more=torch.zeros(1)),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_other_tensors_are_refused(copy, kind):
    tensors = load_file(copy / DECODERS)
    CHANGES[kind](tensors, "generators.a.output.weight")
    save_file(tensors, copy / DECODERS)
    refused(copy, "not the weights of this model")


SIZES = {
    "layers": lambda values: values["decoders"]["transformer"].update(layers=2),
    "a dim of text": lambda values: values["decoders"]["transformer"].update(dim="much"),
    "latent_dim": lambda values: values["decoders"].update(latent_dim=7),
    "another side": lambda values: values["decoders"].update(generators=["a", "c"]),
    "no decoders": lambda values: values.pop("decoders"),
    "languages": lambda values: values.update(languages=["en"]),
    "a path": lambda values: values.update(languages=["en", "../en"]),
    "options": lambda values: values.update(tokenizer_options={"colour": "green"}),
}


@pytest.mark.parametrize("kind", SIZES)
def test_what_the_weights_do_not_have_is_refused(copy, kind):
    path = copy / "st_paragram.json"
    values = json.loads(path.read_text())
    SIZES[kind](values)
    path.write_text(json.dumps(values))
    refused(copy, "st_paragram.json|decoders|vocabulary|language")


def test_the_encoder_is_read_though_the_decoders_are_damaged(copy, model, texts):
    (copy / DECODERS).write_bytes(b"")
    np.testing.assert_allclose(st_paragram.load(copy, device="cpu").encode(texts), model.encode(texts), atol=1e-6)


def test_another_vocabulary_is_refused(copy, pairs):
    content = train_vocabulary((text.replace("a", "o") for pair in pairs for text in pair), 100)
    (copy / "sentencepiece.model").write_bytes(content)
    refused(copy, "not the weights of this model")


def test_columns_of_texts(model, texts):
    expected = model.encode(texts[:3])
    for container, inputs in [*iterables(texts[:3]), *columns(texts[:3])]:
        np.testing.assert_array_equal(model.encode(inputs), expected, container)
    with pytest.raises(SettingsError, match="text 1 of 2 is None"):
        model.encode_query(["ba", None])


def test_an_untrained_model_has_new_weights(original, model):
    found = random_model(str(original))
    assert type(found) is GenerativeEncoder
    mine, theirs = (one[0].model.state_dict() for one in (model, found))
    same = {name for name in mine if torch.equal(mine[name].cpu(), theirs[name].cpu())}
    assert "embed_positions.weight" in same and "embed_tokens.weight" not in same
    assert not any(name.endswith("fc1.weight") for name in same)
    assert theirs["embed_tokens.weight"].std() == pytest.approx(16**-0.5, rel=0.2)
