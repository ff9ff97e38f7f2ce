"""The convolutional encoder out of stock modules: the same vectors without the package, and the weights back."""

import itertools
import os

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Router
from torch import nn

from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse.convolution_encoder import ConvolutionEncoder
from st_paragram.families.muse.stock_convolution import (
    CONVOLUTION_FILE,
    read_convolution,
    stock_modules,
    write_convolution,
)
from st_paragram.learning.models import stock
from st_paragram.learning.modules.compact_embedding import CompactEmbedding
from st_paragram.learning.modules.token_embedding import TokenEmbedding
from st_paragram.learning.modules.transformer_encoder import special_ids

DIM, FILTERS, MAX_LENGTH = 16, 6, 24
SHAPES = [{}, {"keep_bag": False}, {"layers": 1}, {"widths": [2, 4], "keep_bag": False}]


def new_parts(vocabulary, **shape):
    """Table and encoder whose numbers are none of those that new ones have."""
    embedding, encoder = TokenEmbedding(vocabulary, DIM), ConvolutionEncoder(DIM, FILTERS, **shape)
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.3)
    if encoder.keep_bag:
        encoder.bag_scale.fill_(1.7)
    return embedding, encoder


def write(embedding, encoder, folder, *more):
    modules = stock_modules(embedding, encoder, MAX_LENGTH)
    stock.write(SentenceTransformer(modules=[*modules, *more], device="cpu"), folder)
    write_convolution(encoder, folder)
    return folder


def native(embedding, encoder, texts):
    """Vectors of texts that are cut so that the ends have room."""
    ids, offsets = embedding.tokenizer.encode(texts, MAX_LENGTH - encoder.ends)
    rows = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    with torch.no_grad():
        return encoder(embedding(embedding.preprocess(rows)))["sentence_embedding"]


@pytest.fixture(scope="module")
def texts(pairs):
    """300 texts of one sentence to four, some of which must be cut."""
    return [" ".join(text for text, _ in pairs[i : i + 1 + i % 4]) for i in range(300)]


@pytest.fixture
def saved(vocabulary, tmp_path):
    return write(*new_parts(vocabulary), tmp_path / "cnn")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_forms_give_the_same_vectors(vocabulary, texts, tmp_path, shape):
    embedding, encoder = new_parts(vocabulary, **shape)
    expected = native(embedding, encoder, texts)
    opened = SentenceTransformer(str(write(embedding, encoder, tmp_path)), device="cpu")
    assert {type(module).__module__.partition(".")[0] for module in opened} == {"sentence_transformers"}
    assert opened.get_embedding_dimension() == DIM and opened.max_seq_length == MAX_LENGTH
    found = opened.encode(texts, convert_to_tensor=True, batch_size=64)
    assert (expected.norm(dim=1) > 0.1).all()
    torch.testing.assert_close(found, expected, atol=4e-6, rtol=0)
    torch.testing.assert_close(*map(nn.functional.normalize, (found, expected)), atol=1e-6, rtol=0)
    alone = torch.stack([opened.encode(text, convert_to_tensor=True) for text in texts[:20]])
    torch.testing.assert_close(alone, expected[:20], atol=4e-6, rtol=0)


def test_long_texts_are_cut_alike(vocabulary, saved, pairs):
    embedding, encoder = new_parts(vocabulary)
    read = read_convolution(saved, encoder, len(vocabulary))
    embedding.embedding.weight.data.copy_(read)
    opened = SentenceTransformer(str(saved), device="cpu")
    long = " ".join(text for text, _ in pairs[:60])
    ids = opened.preprocess([long])["input_ids"][0].tolist()
    assert len(ids) == MAX_LENGTH
    assert ids[-3] != ids[-2] == ids[-1] == special_ids(vocabulary).end
    found = opened.encode([long, long + " ba"], convert_to_tensor=True)
    torch.testing.assert_close(found[0], native(embedding, encoder, [long])[0], atol=4e-6, rtol=0)
    assert torch.equal(found[0], found[1])


def test_first_states_are_rows_of_the_table(vocabulary):
    embedding, encoder = new_parts(vocabulary)
    first = stock_modules(embedding, encoder, MAX_LENGTH)[0]
    states = first(first.preprocess(["ba ce", "ba ce di fo gu ha"]))
    weight = embedding.embedding.weight.detach().clone()
    weight[list(vars(special_ids(vocabulary)).values())] = 0
    assert torch.equal(states["token_embeddings"], weight[states["input_ids"]])


def test_routes_of_queries_and_documents(vocabulary, texts, tmp_path):
    embedding, encoder = new_parts(vocabulary)
    routes = {
        "sentence": [Normalize()],
        "query": [Dense(DIM, DIM), Normalize()],
        "document": [Dense(DIM, DIM), Normalize()],
    }
    folder = write(embedding, encoder, tmp_path, Router(routes, default_route="sentence"))
    opened, vectors = SentenceTransformer(str(folder), device="cpu"), native(embedding, encoder, texts[:9])
    expected = {
        opened.encode: vectors,
        opened.encode_query: routes["query"][0]({"sentence_embedding": vectors})["sentence_embedding"],
        opened.encode_document: routes["document"][0]({"sentence_embedding": vectors})["sentence_embedding"],
    }
    for encode, wanted in expected.items():
        found = encode(texts[:9], convert_to_tensor=True)
        torch.testing.assert_close(found, nn.functional.normalize(wanted), atol=1e-6, rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_reading_gives_the_weights_to_the_bit(vocabulary, tmp_path, shape, device):
    embedding, encoder = new_parts(vocabulary, **shape)
    folder = write(embedding, encoder, tmp_path)
    with torch.device(device):
        empty = ConvolutionEncoder(**encoder.get_config_dict())
    table = read_convolution(folder, empty, len(vocabulary))
    control = list(vars(special_ids(vocabulary)).values())
    assert not table[control].any()
    text = [row for row in range(len(vocabulary)) if row not in control]
    assert torch.equal(table[text], embedding.embedding.weight[text])
    assert empty.state_dict().keys() == encoder.state_dict().keys()
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(empty.state_dict()[name], tensor) and not empty.state_dict()[name].is_meta
    assert all(parameter.requires_grad for parameter in empty.parameters())


def test_the_encoder_itself_is_not_changed(vocabulary, tmp_path):
    embedding, encoder = new_parts(vocabulary)
    before = [tensor.clone() for tensor in (embedding.embedding.weight, *encoder.state_dict().values())]
    modules = stock_modules(embedding, encoder, MAX_LENGTH)
    for module in modules:
        for parameter in module.parameters():
            parameter.data.fill_(3)
    for tensor, kept in zip((embedding.embedding.weight, *encoder.state_dict().values()), before, strict=True):
        assert torch.equal(tensor, kept)


def _shorten(path):
    os.truncate(path, path.stat().st_size // 2)


def _no_number(path):
    tensors = load_file(path)
    tensors[sorted(tensors)[0]].view(-1)[0] = float("nan")
    save_file(tensors, path)


def _other_type(path):
    save_file({name: tensor.double() for name, tensor in load_file(path).items()}, path)


def _other_shape(path):
    save_file({name: tensor[None] for name, tensor in load_file(path).items()}, path)


def _other_names(path):
    save_file({f"x.{name}": tensor for name, tensor in load_file(path).items()}, path)


@pytest.mark.parametrize("name", [CONVOLUTION_FILE, "model.safetensors"])
@pytest.mark.parametrize(
    "damage", [_shorten, _no_number, _other_type, _other_shape, _other_names, os.remove], ids=lambda one: one.__name__
)
def test_damaged_files_are_told_in_a_line(vocabulary, saved, name, damage):
    if (name, damage) == ("model.safetensors", _no_number):
        tensors = load_file(saved / name)
        tensors["decoder.embed_tokens.weight"][5, 1] = float("inf")
        save_file(tensors, saved / name)
    else:
        damage(saved / name)
    encoder = ConvolutionEncoder(DIM, FILTERS)
    before = {key: tensor.clone() for key, tensor in encoder.state_dict().items()}
    with pytest.raises(ModelDirectoryError, match=name) as caught:
        read_convolution(saved, encoder, len(vocabulary))
    assert "\n" not in str(caught.value)
    assert all(torch.equal(tensor, before[key]) for key, tensor in encoder.state_dict().items())


def test_other_sizes_than_the_files_have(vocabulary, saved):
    with pytest.raises(ModelDirectoryError, match="expected"):
        read_convolution(saved, ConvolutionEncoder(DIM, FILTERS + 1), len(vocabulary))
    with pytest.raises(ModelDirectoryError, match="expected"):
        read_convolution(saved, ConvolutionEncoder(DIM, FILTERS), len(vocabulary) + 1)


def test_what_cannot_be_stock(vocabulary):
    encoder = ConvolutionEncoder(DIM, FILTERS)
    compact = TokenEmbedding(vocabulary, weights=CompactEmbedding(torch.zeros(len(vocabulary), DIM).half()))
    with pytest.raises(SettingsError, match="compact"):
        stock_modules(compact, encoder, MAX_LENGTH)
