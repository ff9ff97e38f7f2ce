import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentencepiece import SentencePieceProcessor

from st_paragram.core.encoding.table import Table, TableType
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.words import WordTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.modules.compact_embedding import CompactEmbedding, in_torch
from st_paragram.learning.modules.flat_features import join_features
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.row_means import kernel_serves, row_means
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.learning.modules.token_embedding import TokenEmbedding

TEXTS = ["ba ce di", "", "Ω", "fo gu", "Ha JE ki lo mu na"]


@pytest.fixture
def embedding(vocabulary):
    return SentencePieceEmbedding(vocabulary, 12)


@pytest.fixture
def model(embedding):
    return SentenceTransformer(modules=[embedding, MeanPool(12)], device="cpu")


def plain_mean(embedding, text):
    ids = [i for i in embedding.tokenizer.processor.encode(text.lower()) if i != embedding.tokenizer.unknown_id]
    rows = embedding.embedding.weight.detach()[ids or [embedding.tokenizer.unknown_id]]
    return rows.mean(0).numpy()


@pytest.mark.parametrize("how", ["path", "str", "bytes", "processor"])
def test_a_vocabulary_may_be_a_file_or_a_processor(vocabulary, tmp_path, how):
    path = tmp_path / "spm.model"
    path.write_bytes(vocabulary.content)
    processor = SentencePieceProcessor(model_file=str(path))
    given = {"path": path, "str": str(path), "bytes": vocabulary.content, "processor": processor}[how]
    embedding = SentencePieceEmbedding(given, 12)
    assert embedding.embedding.weight.shape == (len(vocabulary), 12) and embedding.tokenizer == vocabulary


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        *itertools.product([SentencePieceEmbedding, TokenEmbedding], ["missing.model", ["a", "b"], None]),
        (SentencePieceEmbedding, WordTokenizer(b'["a"]')),
    ],
)
def test_what_is_no_vocabulary_is_refused(kind, given):
    with pytest.raises(SettingsError, match="sentencepiece") as caught:
        kind(given, 12)
    assert "\n" not in str(caught.value)


def test_dropped_ids_stay_dropped_in_a_saved_module(vocabulary, tmp_path):
    dropped = SentencePieceTokenizer(vocabulary.content, dropped=[5, 7])
    SentencePieceEmbedding(dropped, 12).save(str(tmp_path))
    assert SentencePieceEmbedding.load(str(tmp_path)).tokenizer == dropped


def test_encode_is_the_plain_mean(model, embedding):
    expected = np.stack([plain_mean(embedding, text) for text in TEXTS])
    np.testing.assert_allclose(model.encode(TEXTS), expected, atol=1e-6)
    assert np.isfinite(expected).all() and (np.abs(expected).sum(1) > 0).all()


def test_ids_pass_as_text_does(model, embedding):
    ids = [embedding.tokenizer.processor.encode(text.lower()) for text in TEXTS]
    features = embedding.preprocess(ids)
    np.testing.assert_allclose(model(features)["sentence_embedding"].detach().numpy(), model.encode(TEXTS), atol=1e-6)


def test_prompt_is_put_before_texts(model):
    np.testing.assert_array_equal(model.encode("ce", prompt="ba "), model.encode("ba ce"))


@pytest.mark.parametrize("inputs", [["ba", [1, 2]], [np.array([1, 2])], [1, 2]])
def test_mixed_inputs_are_refused(embedding, inputs):
    with pytest.raises(SettingsError, match="texts only"):
        embedding.preprocess(inputs)


def test_token_embeddings_appear_when_asked_for(model, embedding):
    tokens = model.encode(["ba ce", "Ω"], output_value="token_embeddings")
    ids = embedding.tokenizer.processor.encode("ba ce")
    torch.testing.assert_close(tokens[0], embedding.embedding.weight.detach()[ids])
    features = embedding(embedding.preprocess(TEXTS))
    assert "token_embeddings" not in features
    assert MeanPool(12)(features) is features and "token_embeddings" not in features
    with pytest.raises(KeyError):
        features["nothing"]


def test_a_stock_pooling_agrees(model, embedding):
    stock = SentenceTransformer(modules=[embedding, Pooling(12, pooling_mode="mean")], device="cpu")
    np.testing.assert_allclose(stock.encode(TEXTS), model.encode(TEXTS), atol=1e-6)


def test_mean_pool_behind_padded_features():
    tokens, mask = torch.randn(2, 3, 4), torch.tensor([[1, 1, 0], [1, 0, 0]])
    got = MeanPool(4)({"token_embeddings": tokens, "attention_mask": mask})["sentence_embedding"]
    torch.testing.assert_close(got, torch.stack([tokens[0, :2].mean(0), tokens[1, 0]]))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradient_equals_the_plain_one(vocabulary, sparse, dropout):
    embedding = SentencePieceEmbedding(vocabulary, 8, dropout=dropout, sparse_gradient=sparse).train()
    torch.manual_seed(3)
    features = MeanPool(8)(embedding(embedding.preprocess(TEXTS)))
    target = torch.randn(len(TEXTS), 8)
    (features["sentence_embedding"] * target).sum().backward()
    got = embedding.embedding.weight.grad
    assert got.is_sparse == sparse

    table = embedding.embedding.weight.detach().clone().requires_grad_()
    ids, offsets = vocabulary.encode(TEXTS)
    torch.manual_seed(3)
    tokens = torch.nn.functional.dropout(table[torch.from_numpy(ids)], dropout, training=dropout > 0)
    means = torch.stack([tokens[a:b].mean(0) for a, b in itertools.pairwise(offsets)])
    torch.testing.assert_close(features["sentence_embedding"], means)
    (means * target).sum().backward()
    torch.testing.assert_close(got.to_dense(), table.grad)


def test_sparse_gradient_holds_each_row_once(vocabulary):
    embedding = SentencePieceEmbedding(vocabulary, 8, sparse_gradient=True)
    MeanPool(8)(embedding(embedding.preprocess(["ba ba ba", "ba ce"])))["sentence_embedding"].sum().backward()
    rows = embedding.embedding.weight.grad.coalesce().indices()[0].tolist()
    assert rows == sorted(set(vocabulary.encode(["ba ce ba ba"])[0].tolist()))


def test_dropout_acts_in_training_only(vocabulary):
    embedding = SentencePieceEmbedding(vocabulary, 64, dropout=0.5)
    model = SentenceTransformer(modules=[embedding, MeanPool(64)], device="cpu")
    np.testing.assert_array_equal(model.encode(TEXTS), model.encode(TEXTS))
    model.train()
    features = embedding.preprocess(["ba"])
    dropped = (model(features)["sentence_embedding"] == 0).float().mean()
    assert 0.1 < dropped < 0.9


def test_join_features_puts_columns_one_after_another(embedding):
    joined = join_features([embedding.preprocess(TEXTS[:2]), embedding.preprocess(TEXTS[2:])])
    whole = embedding.preprocess(TEXTS)
    assert all(torch.equal(joined[key], whole[key]) for key in whole)


def test_save_and_load(tmp_path, embedding):
    embedding.save(str(tmp_path))
    loaded = SentencePieceEmbedding.load(str(tmp_path))
    assert torch.equal(loaded.embedding.weight, embedding.embedding.weight)
    assert loaded.get_config_dict() == embedding.get_config_dict()
    (tmp_path / "sentencepiece.model").unlink()
    with pytest.raises(ModelDirectoryError, match=r"sentencepiece\.model is missing"):
        SentencePieceEmbedding.load(str(tmp_path))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"embedding_dimension": 3, "weights": torch.zeros(2, 3)},
        {"weights": torch.zeros(2, 3)},
        {"embedding_dimension": 3, "dropout": 1.0},
    ],
)
def test_bad_settings_are_refused(vocabulary, arguments):
    with pytest.raises(SettingsError):
        SentencePieceEmbedding(vocabulary, **arguments)


@pytest.mark.parametrize("kind", [TableType.FLOAT16, TableType.INT8, TableType.INT4])
def test_small_tables_stay_near_the_rows(kind):
    rows = torch.randn(5000, 10) * torch.logspace(-6, 3, 5000)[:, None]
    rows[3], rows[4] = 0, 1e-44
    compact = in_torch(Table(rows.numpy()).converted(kind))
    largest = rows.abs().amax(1, keepdim=True)
    error = (compact.to_float32() - rows).abs()
    share = {TableType.FLOAT16: 2**-11, TableType.INT8: 0.5001 / 127, TableType.INT4: 0.55}[kind]  # int4 may cut peaks
    assert (error <= largest * share + 3e-8).all()
    ids = torch.tensor([[7, 3], [4999, 4]])
    torch.testing.assert_close(compact(ids), compact.to_float32()[ids])
    assert (compact.num_embeddings, compact.embedding_dim, compact.kind) == (5000, 10, kind)
    assert kind.value in repr(compact)


@pytest.mark.parametrize(
    "tensors",
    [
        (torch.zeros(3, 2),),
        (torch.zeros(3, 2, dtype=torch.int8),),
        (torch.zeros(3, 2, dtype=torch.uint8),),
        (torch.zeros(3, 2, dtype=torch.int32), torch.ones(3)),
        (torch.zeros(3, 2, dtype=torch.int8), torch.ones(2)),
        (torch.zeros(3, 2).half(), torch.ones(3)),
        (torch.zeros(3).half(),),
    ],
)
def test_wrong_small_tables_are_refused(tensors):
    with pytest.raises(SettingsError):
        CompactEmbedding(*tensors)


def make_table(kind, rows, dimension):
    table = torch.randn(rows, dimension)
    if kind is TableType.FLOAT32:
        return torch.nn.Embedding.from_pretrained(table, freeze=False)
    return in_torch(Table(table.numpy()).converted(kind))


def means_of(rows, offsets):
    """The means by their definition; zero without rows."""
    means = [rows[a:b].mean(0) if b > a else rows.new_zeros(rows.shape[1]) for a, b in itertools.pairwise(offsets)]
    return torch.stack(means) if means else rows.new_empty(0, rows.shape[1])


@pytest.mark.parametrize("kind", list(TableType))
@settings(max_examples=40)
@given(
    dimension=st.integers(1, 300),
    lengths=st.lists(st.integers(0, 30), max_size=40),
    normalized=st.booleans(),
    given_out=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_kernel_and_torch_agree(kind, dimension, lengths, normalized, given_out, seed):
    torch.manual_seed(seed)
    dimension += dimension % 2 if kind is TableType.INT4 else 0
    embedding = make_table(kind, 50, dimension)
    if not kernel_serves(embedding):
        pytest.skip("no compiled kernels")
    offsets = torch.tensor([0, *itertools.accumulate(lengths)])
    ids = torch.randint(50, (int(offsets[-1]),))
    out = torch.empty(len(lengths), dimension) if given_out else None
    got = row_means(embedding, ids, offsets, out, normalized)
    assert not got.requires_grad and (out is None or got is out)
    expected = means_of(embedding(ids).detach(), offsets)
    if normalized:
        expected = torch.nn.functional.normalize(expected)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("kind", list(TableType))
def test_without_the_kernels(kind, monkeypatch):
    dimension = 8 if kind is TableType.INT4 else 7
    embedding = make_table(kind, 50, dimension)
    ids, offsets = torch.randint(50, (30,)), torch.tensor([0, 3, 3, 30])
    expected = row_means(embedding, ids, offsets, None, True)
    monkeypatch.setattr("st_paragram.learning.modules.row_means.kernels", lambda: None)
    assert not kernel_serves(embedding)
    torch.testing.assert_close(row_means(embedding, ids, offsets, None, True), expected)
    out = torch.empty(3, dimension)
    torch.testing.assert_close(row_means(embedding, ids, offsets, out, True), expected)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("kind", list(TableType))
@pytest.mark.parametrize(
    ("ids", "offsets"),
    [([50], [0, 1]), ([-1], [0, 1]), ([1, 2], [0, 3]), ([1, 2], [0, 1]), ([1, 2], [1, 2]), ([1, 2, 3], [0, 2, 1, 3])],
)
def test_the_kernel_reads_nothing_outside_the_table(kind, ids, offsets):
    embedding = make_table(kind, 50, 8 if kind is TableType.INT4 else 7)
    if not kernel_serves(embedding):
        pytest.skip("no compiled kernels")
    with pytest.raises(ValueError, match=r"id|offsets"):
        row_means(embedding, torch.tensor(ids), torch.tensor(offsets))


def test_vectors_that_are_too_short_stay_short():
    embedding = torch.nn.Embedding.from_pretrained(torch.tensor([[0.0, 0.0], [3e-14, 4e-14], [3e-10, 4e-10]]))
    got = row_means(embedding, torch.tensor([0, 1, 2]), torch.tensor([0, 1, 2, 3]), None, True)
    torch.testing.assert_close(got, torch.nn.functional.normalize(embedding.weight), rtol=1e-5, atol=0)


def test_no_gradient_no_detour(model):
    """The kernel and the differentiable `embedding_bag` agree."""
    features = model.preprocess(TEXTS)
    with torch.no_grad():
        plain = model(dict(features))["sentence_embedding"]
    differentiable = model(dict(features))["sentence_embedding"]
    assert differentiable.requires_grad and not plain.requires_grad
    torch.testing.assert_close(plain, differentiable.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [TableType.FLOAT16, TableType.INT8, TableType.INT4])
def test_small_tables_save_and_load(vocabulary, tmp_path, kind):
    embedding = SentencePieceEmbedding(vocabulary, weights=make_table(kind, len(vocabulary), 6))
    embedding.save(str(tmp_path))
    loaded = SentencePieceEmbedding.load(str(tmp_path))
    assert loaded.embedding.kind is kind
    torch.testing.assert_close(loaded.embedding.to_float32(), embedding.embedding.to_float32(), rtol=0, atol=0)
