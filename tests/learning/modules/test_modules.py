"""`TokenEmbedding` and `MeanPool` on sentencepiece and on words: against plain means, saved, before
stock modules.
"""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentencepiece import SentencePieceProcessor

from st_paragram.core.embedding_table import Table, TableType
from st_paragram.core.model_directory.model_files import tokenizer_file
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.words import WordTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.modules.compact_embedding import CompactEmbedding
from st_paragram.learning.modules.flat_features import is_flat, join_features
from st_paragram.learning.modules.mean_pool import MeanPool, row_means
from st_paragram.learning.modules.token_embedding import (
    SentencePieceEmbedding,
    TokenEmbedding,
    token_embedding,
)

TEXTS = ["ba ce di", "", "Ω", "fo gu", "Ha JE ki lo mu na"]
SMALL_TYPES = [TableType.FLOAT16, TableType.INT8, TableType.INT4]


@pytest.fixture(params=["sentencepiece", "word"])
def embedding(request, vocabulary):
    return token_embedding(
        vocabulary if request.param == "sentencepiece" else WordTokenizer(b'["ba", "ce", "di"]'), 12
    )


@pytest.fixture
def model(embedding):
    return SentenceTransformer(modules=[embedding, MeanPool(12)], device="cpu")


def plain_ids(embedding, text):
    tokenizer = embedding.tokenizer
    if isinstance(tokenizer, SentencePieceTokenizer):
        ids = [i for i in tokenizer.processor.encode(text.lower()) if i != tokenizer.unknown_id]
    else:
        found = [tokenizer.encode([word])[0][0] for word in text.lower().split()]
        ids = [i for i in found if i != tokenizer.unknown_id]
    return ids or [tokenizer.unknown_id]


def compact(rows, kind):
    """The rows as a table of another type, also without kernels."""
    table = Table(rows.numpy()).converted(kind)
    return CompactEmbedding(
        torch.from_numpy(table.weight), None if table.scale is None else torch.tensor(table.scale)
    )


def table_of(embedding, kind):
    """A module of the same kind over a table of another type."""
    rows = embedding.embedding.weight.detach()
    return type(embedding)(embedding.tokenizer, weights=compact(rows, kind), dropout=0.2)


def test_encode_is_the_plain_mean_of_texts_and_of_ids(model, embedding):
    ids = [plain_ids(embedding, text) for text in TEXTS]
    expected = torch.stack(
        [embedding.embedding.weight.detach()[row].mean(0) for row in ids]
    ).numpy()
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=1e-6)
    features = embedding.preprocess(ids)
    np.testing.assert_allclose(model(features)["sentence_embedding"].detach(), expected, atol=1e-6)
    stock = SentenceTransformer(modules=[embedding, Pooling(12, pooling_mode="mean")], device="cpu")
    np.testing.assert_allclose(stock.encode(TEXTS), expected, atol=1e-6)
    np.testing.assert_array_equal(model.encode("ce", prompt="ba "), model.encode("ba ce"))


def test_mean_pool_behind_padded_features():
    tokens, mask = torch.randn(2, 3, 4), torch.tensor([[1, 1, 0], [1, 0, 0]])
    got = MeanPool(4)({"token_embeddings": tokens, "attention_mask": mask})["sentence_embedding"]
    torch.testing.assert_close(got, torch.stack([tokens[0, :2].mean(0), tokens[1, 0]]))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_values_and_gradients_are_the_plain_ones(vocabulary, dropout):
    embedding = SentencePieceEmbedding(vocabulary, 8, dropout=dropout).train()
    torch.manual_seed(3)
    features = MeanPool(8)(embedding(embedding.preprocess(TEXTS)))
    target = torch.randn(len(TEXTS), 8)
    (features["sentence_embedding"] * target).sum().backward()

    table = embedding.embedding.weight.detach().clone().requires_grad_()
    ids, offsets = vocabulary.encode(TEXTS)
    torch.manual_seed(3)
    tokens = torch.nn.functional.dropout(
        table[torch.from_numpy(ids)], dropout, training=dropout > 0
    )
    means = torch.stack([tokens[a:b].mean(0) for a, b in itertools.pairwise(offsets)])
    torch.testing.assert_close(features["sentence_embedding"], means)
    (means * target).sum().backward()
    table.grad[vocabulary.unknown_id] = 0  # its text has no direction
    torch.testing.assert_close(embedding.embedding.weight.grad, table.grad)
    embedding.eval()
    with torch.no_grad():
        whole = MeanPool(8)(embedding(embedding.preprocess(TEXTS)))["sentence_embedding"]
    torch.testing.assert_close(
        whole, torch.stack([table[ids[a:b]].mean(0) for a, b in itertools.pairwise(offsets)])
    )


def test_join_features_puts_columns_one_after_another(embedding):
    whole, parts = (
        embedding.preprocess(TEXTS),
        [embedding.preprocess(part) for part in (TEXTS[:2], TEXTS[2:])],
    )
    joined = join_features(parts)
    assert all(torch.equal(joined[key], whole[key]) for key in whole)
    assert (
        is_flat(whole)
        and is_flat(joined)
        and not is_flat(whole | {"position_ids": whole["input_ids"]})
    )


def test_a_vocabulary_may_be_a_file_or_a_processor(vocabulary, tmp_path):
    path = tmp_path / "spm.model"
    path.write_bytes(vocabulary.content)
    for form in (path, str(path), vocabulary.content, SentencePieceProcessor(model_file=str(path))):
        embedding = SentencePieceEmbedding(form, 12)
        assert (
            embedding.embedding.weight.shape == (len(vocabulary), 12)
            and embedding.tokenizer == vocabulary
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either"),
        ({"embedding_dimension": 3, "weights": torch.zeros(2, 3)}, "give either"),
        ({"weights": torch.zeros(2, 3)}, r"a table of shape \(2, 3\) for a tokenizer of 4 ids"),
        ({"embedding_dimension": 3, "dropout": 1.0}, "dropout is 1.0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(SettingsError, match=message):
        TokenEmbedding(WordTokenizer(b'["ba", "ce", "di"]'), **arguments)


@pytest.mark.parametrize("kind", list(TableType))
def test_save_and_load(embedding, tmp_path, kind):
    if kind is not TableType.FLOAT32:
        embedding = table_of(embedding, kind)
    embedding.save(str(tmp_path))
    loaded = type(embedding).load(str(tmp_path))
    assert (
        loaded.tokenizer == embedding.tokenizer
        and loaded.get_config_dict() == embedding.get_config_dict()
    )
    ids = torch.arange(len(embedding.tokenizer))
    assert torch.equal(loaded.embedding(ids), embedding.embedding(ids))
    name = tokenizer_file(embedding.tokenizer.kind)
    (tmp_path / name).unlink()
    with pytest.raises(ModelDirectoryError, match=f"{name} is missing"):
        type(embedding).load(str(tmp_path))


def test_dropped_ids_stay_dropped_in_a_saved_module(vocabulary, tmp_path):
    dropped = SentencePieceTokenizer(vocabulary.content, dropped=[5, 7])
    SentencePieceEmbedding(dropped, 12).save(str(tmp_path))
    assert SentencePieceEmbedding.load(str(tmp_path)).tokenizer == dropped


@pytest.mark.parametrize("kind", SMALL_TYPES)
def test_small_tables_stay_near_the_rows_and_cannot_be_trained(kind, vocabulary):
    rows = torch.randn(5000, 10) * torch.logspace(-6, 3, 5000)[:, None]
    rows[3], rows[4] = 0, 1e-44
    table = compact(rows, kind)
    # int4 may cut peaks
    share = {TableType.FLOAT16: 2**-11, TableType.INT8: 0.5001 / 127, TableType.INT4: 0.55}[kind]
    assert (
        (table(torch.arange(5000)) - rows).abs() <= rows.abs().amax(1, keepdim=True) * share + 3e-8
    ).all()
    ids = torch.tensor([[7, 3], [4999, 4]])
    torch.testing.assert_close(table(ids), table(torch.arange(5000))[ids], rtol=0, atol=0)
    assert (table.embedding_dim, table.kind) == (10, kind)
    embedding = table_of(SentencePieceEmbedding(vocabulary, 12), kind)
    features = embedding.preprocess(TEXTS)
    # no dropout
    assert torch.equal(*(MeanPool(12)(embedding(features))["sentence_embedding"] for _ in range(2)))
    with pytest.raises(SettingsError, match=f"a table of {kind.value} cannot be trained"):
        embedding.train()


def a_table(kind, rows, dimension):
    table = torch.randn(rows, dimension)
    if kind is TableType.FLOAT32:
        return torch.nn.Embedding.from_pretrained(table, freeze=False)
    return compact(table, kind)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("kind", list(TableType))
@settings(max_examples=20)
@given(
    dimension=st.integers(1, 150),
    lengths=st.lists(st.integers(0, 30), max_size=40),
    seed=st.integers(0, 1000),
)
def test_row_means_are_means_with_the_kernels_and_without(native, kind, dimension, lengths, seed):
    torch.manual_seed(seed)
    embedding = a_table(kind, 50, 2 * dimension)
    offsets = torch.tensor([0, *itertools.accumulate(lengths)])
    ids = torch.randint(50, (int(offsets[-1]),))
    with pytest.MonkeyPatch.context() as patch:
        if not native:
            patch.setattr("st_paragram.learning.modules.mean_pool.kernels", lambda: None)
        with torch.no_grad():
            found = row_means(embedding, ids, offsets)
    rows = [embedding(ids[a:b]).detach() for a, b in itertools.pairwise(offsets)]
    expected = [part.mean(0) if len(part) else torch.zeros(2 * dimension) for part in rows]
    assert found.shape == (len(lengths), 2 * dimension)
    torch.testing.assert_close(list(found), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.skipif(kernels() is None, reason="no compiled kernels")
@pytest.mark.parametrize("kind", list(TableType))
@pytest.mark.parametrize(
    ("ids", "offsets"),
    [
        ([50], [0, 1]),
        ([-1], [0, 1]),
        ([1, 2], [0, 3]),
        ([1, 2], [0, 1]),
        ([1, 2], [1, 2]),
        ([1, 2, 3], [0, 2, 1, 3]),
    ],
)
def test_the_kernel_reads_nothing_outside_the_table(kind, ids, offsets):
    with torch.no_grad(), pytest.raises(ValueError, match=r"id|offsets"):
        row_means(a_table(kind, 50, 8), torch.tensor(ids), torch.tensor(offsets))
