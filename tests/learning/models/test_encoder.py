"""The fast `encode` gives what SentenceTransformer's own gives, for every argument."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import BoW, Normalize

import st_paragram
from st_paragram.core.embedding_table import Table, TableType
from st_paragram.core.encoding.embed import BATCH_SIZE
from st_paragram.core.encoding.models import NETWORK_BATCH_SIZE, batch_size
from st_paragram.learning.models.sentence_transformers_encoder import (
    ParagramEncoder,
    pipeline,
)
from st_paragram.learning.modules.compact_embedding import in_torch
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

DIMENSION = 38  # no multiple of what kernels compute at a time, and even for int4
PROMPTS = {"query": "ba ce ", "passage": "di "}
TEXTS = [
    "ba ce di",
    "",
    "Ω",
    "fo gu",
    "Ha JE ki lo mu na",
    " ",
    "ba\nce\tdi",
    "xi\u2028yo",
    "zu" * 40,
    "a\ud800b",
]


@pytest.fixture(scope="module", params=list(TableType))
def model(request, vocabulary):
    torch.manual_seed(1)
    table = torch.randn(len(vocabulary), DIMENSION)
    if request.param is not TableType.FLOAT32:
        table = in_torch(Table(table.numpy()).converted(request.param))
    model = pipeline(SentencePieceEmbedding(vocabulary, weights=table), device="cpu")
    model.prompts.update(PROMPTS)
    model.eval()
    return model


@pytest.fixture(scope="module")
def plain(model):
    """The same modules in SentenceTransformer itself."""
    plain = SentenceTransformer(modules=list(model), device="cpu", prompts=dict(PROMPTS))
    plain.eval()
    return plain


@pytest.fixture
def no_detours(monkeypatch):
    """Fail when a call goes the way of the base class."""

    def detour(*args, **kwargs):
        raise AssertionError("not the fast path")

    monkeypatch.setattr(SentenceTransformer, "encode", detour)


def check_equal(got, expected):
    assert type(got) is type(expected)
    if isinstance(expected, list | dict):
        assert len(got) == len(expected)
        for key in expected if isinstance(expected, dict) else range(len(expected)):
            check_equal(got[key], expected[key])
    elif isinstance(expected, np.ndarray | torch.Tensor):
        assert got.dtype == expected.dtype
        assert tuple(got.shape) == tuple(expected.shape)
        if isinstance(expected, torch.Tensor):
            assert got.device == expected.device
            got, expected = got.numpy(), expected.numpy()
        # One bit of the last place may decide between two neighbouring integers.
        np.testing.assert_allclose(
            got.astype(float),
            expected.astype(float),
            rtol=1e-5,
            atol=1e-6 if expected.dtype.kind == "f" else 1,
        )
    else:
        assert got == expected


INPUTS = [
    TEXTS,
    np.array(["ba", "ce di", ""]),
    "ba ce",
    "",
    np.str_("ba ce"),
    [np.str_("ba"), "ce"],
]
ARGUMENTS = [
    {},
    {"prompt": "di "},
    {"prompt": ""},
    {"prompt_name": "query"},
    {"prompt_name": "query", "prompt": "ba"},
    {"batch_size": 3, "show_progress_bar": True},
    {"convert_to_tensor": True},
    {"convert_to_numpy": False, "convert_to_tensor": False, "normalize_embeddings": True},
    {"truncate_dim": 5, "normalize_embeddings": True},
    {"truncate_dim": -3},
    {"precision": None},
    {"precision": "ubinary", "convert_to_tensor": True},
    {"precision": "binary", "convert_to_numpy": False},
    {"device": torch.device("cpu"), "chunk_size": 4},
    {"output_value": "token_embeddings"},
    {"output_value": None},
    {"task": "query"},
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=repr)
def test_every_argument_means_the_same(model, plain, arguments):
    for inputs in INPUTS:
        check_equal(model.encode(inputs, **arguments), plain.encode(inputs, **arguments))


@pytest.mark.parametrize("arguments", [*ARGUMENTS, {"precision": "int8"}], ids=repr)
def test_no_texts_have_embeddings_of_the_same_type_and_dimension(model, plain, arguments):
    expected = plain.encode(["ba", "ce"], **arguments)[:0]
    check_equal(model.encode([], **arguments), expected)


def test_lists_of_ids_and_the_old_name_of_the_inputs(model, plain):
    check_equal(model.encode([[5, 6], [7]]), plain.encode([[5, 6], [7]]))
    check_equal(model.encode(sentences=["ba"]), plain.encode(sentences=["ba"]))


def test_the_plain_call_makes_no_detours(model, no_detours):
    for inputs in (TEXTS, tuple(TEXTS), "ba", np.array(["ba"])):
        model.encode(inputs)
    model.encode(
        TEXTS,
        prompt_name="query",
        convert_to_tensor=True,
        normalize_embeddings=True,
        precision="binary",
    )
    model.encode_query(TEXTS, truncate_dim=3, device="cpu")
    with pytest.raises(AssertionError, match="not the fast path"):
        model.encode([[1, 2]])


def test_settings_of_the_model_count(model, plain, monkeypatch):
    for one in (model, plain):
        monkeypatch.setattr(one, "truncate_dim", 7)
        monkeypatch.setattr(one, "default_prompt_name", "query")
    check_equal(model.encode(TEXTS), plain.encode(TEXTS))
    check_equal(
        model.encode(TEXTS, prompt_name="passage"), plain.encode(TEXTS, prompt_name="passage")
    )
    assert model.get_embedding_dimension() == 7


@pytest.fixture
def small(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 8, dropout=0.5), device="cpu")


def test_other_modules_go_the_way_of_the_base_class(small):
    rows = small.encode(TEXTS, normalize_embeddings=True)
    small.append(Normalize("sentence_embedding", "unit_vectors"))  # not in place
    assert np.abs(small.encode(TEXTS) - rows).max() > 0.1
    small[2].module_output_name = "sentence_embedding"
    small.append(Normalize())  # one too many
    np.testing.assert_allclose(small.encode(TEXTS), rows, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies(model, copied):
    other = copied(model)
    assert type(other) is ParagramEncoder
    np.testing.assert_array_equal(other.encode(TEXTS), model.encode(TEXTS))


def test_means_take_more_texts_at_a_time_than_networks(small, tmp_path):
    small.save(str(tmp_path / "model"))
    assert (
        batch_size(small) == batch_size(SentenceTransformer(str(tmp_path / "model"))) == BATCH_SIZE
    )
    assert batch_size(SentenceTransformer(modules=[BoW(["a"], {})])) == NETWORK_BATCH_SIZE


@pytest.mark.parametrize("name", ["ParagramEncoder", "GenerativeEncoder", "DualEncoder"])
def test_other_libraries_see_a_model_of_sentence_transformers(name):
    """KeyBERT and BERTopic look for this word in the path of a class, after the names of some other
    libraries.
    """
    path = str(getattr(st_paragram, name))
    assert "sentence_transformers" in path
    assert not any(
        other in path
        for other in ("model2vec", "flair", "spacy", "gensim", "saved_model", "fastembed")
    )
