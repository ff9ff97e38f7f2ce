"""The bidirectional LSTM without padding, against loops over cells and against the padded route."""

import copy

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling
from torch import nn

from st_paragram.errors import SettingsError
from st_paragram.families.sp import bilstm
from st_paragram.families.sp.bilstm import BiLSTM
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding

LENGTHS = {
    "mixed": [3, 1, 7, 2, 7, 12, 1, 5, 5, 30],
    "one text": [6],
    "one token": [1],
    "single tokens": [1, 1, 1],
    "equal": [4, 4, 4, 4],
}


@pytest.fixture
def embedding(vocabulary):
    return SentencePieceEmbedding(vocabulary, 12)


@pytest.fixture
def layer():
    return BiLSTM(12, 5)


@pytest.fixture(params=[2, 3, 96], autouse=True)
def _texts_a_run(request, monkeypatch):
    monkeypatch.setattr(bilstm, "_TEXTS_A_RUN", request.param)


def rows(lengths, vocabulary):
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(3, len(vocabulary), (n,), generator=generator).tolist() for n in lengths]


def states(features):
    """States of each text, without padding."""
    return [row[:n] for row, n in zip(features["token_embeddings"], features["sentence_lengths"], strict=True)]


def hand_loop(layer, tokens):
    """States (n, 2 * hidden) of one text, token by token."""
    sides = []
    for end in ("", "_reverse"):
        cell = nn.LSTMCell(layer.embedding_dimension, layer.hidden_dim)
        cell.load_state_dict({name: getattr(layer.encoder, f"{name}_l0{end}") for name in cell.state_dict()})
        hidden = cell_state = torch.zeros(1, layer.hidden_dim)
        found = []
        for token in tokens.flip(0) if end else tokens:
            hidden, cell_state = cell(token[None], (hidden, cell_state))
            found.append(hidden[0])
        sides.append(torch.stack(found[::-1] if end else found))
    return torch.cat(sides, dim=1)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_states_and_means_are_those_of_a_loop_over_cells(embedding, layer, vocabulary, lengths):
    texts = rows(lengths, vocabulary)
    expected = [hand_loop(layer, embedding.embedding.weight[torch.tensor(text)]) for text in texts]
    features = layer(embedding(embedding.preprocess(texts)))
    means = MeanPool(10)(features)["sentence_embedding"]
    torch.testing.assert_close(means, torch.stack([one.mean(0) for one in expected]), atol=1e-6, rtol=0)
    for found, wanted in zip(states(features), expected, strict=True):
        torch.testing.assert_close(found, wanted, atol=1e-6, rtol=0)
    assert features["attention_mask"].sum(1).tolist() == lengths


def test_a_text_is_the_same_in_any_batch_and_place(embedding, layer, vocabulary):
    texts = rows(LENGTHS["mixed"] * 3, vocabulary)

    def embed(some):
        with torch.inference_mode():
            return MeanPool(10)(layer(embedding(embedding.preprocess(some))))["sentence_embedding"]

    together = embed(texts)
    torch.testing.assert_close(embed(texts[::-1]).flip(0), together, atol=1e-6, rtol=0)
    alone = torch.cat([embed([text]) for text in texts])
    torch.testing.assert_close(alone, together, atol=1e-6, rtol=0)


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_are_those_of_the_padded_route(vocabulary, lengths, sparse):
    texts, target = rows(lengths, vocabulary), torch.randn(len(lengths), 10, dtype=torch.float64)
    weights = torch.randn(len(vocabulary), 12, dtype=torch.float64)
    ours = BiLSTM(12, 5).double()
    stock = LSTM(12, 5).double()
    stock.load_state_dict(ours.state_dict())
    gradients = []
    for layer, pool in ((ours, MeanPool(10)), (stock, Pooling(10))):
        embedding = SentencePieceEmbedding(vocabulary, weights=weights.clone(), sparse_gradient=sparse)
        features = pool(layer(embedding(embedding.preprocess(texts))))
        (features["sentence_embedding"] * target).sum().backward()
        table = embedding.embedding.weight.grad
        gradients.append([table.to_dense(), *(parameter.grad for parameter in layer.parameters())])
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-10, rtol=0)


def test_padded_features_go_the_way_of_the_base_class(embedding, layer, vocabulary):
    texts = rows(LENGTHS["mixed"], vocabulary)
    padded = embedding(embedding.preprocess(texts))
    assert padded["token_embeddings"].shape == (10, 30, 12)
    of_padded = MeanPool(10)(layer(padded))["sentence_embedding"]
    of_flat = MeanPool(10)(layer(embedding(embedding.preprocess(texts))))["sentence_embedding"]
    torch.testing.assert_close(of_padded, of_flat, atol=1e-6, rtol=0)


def test_stock_pooling_sees_states(embedding, layer, vocabulary):
    texts = rows(LENGTHS["mixed"], vocabulary)
    pooled = [pool(layer(embedding(embedding.preprocess(texts)))) for pool in (MeanPool(10), Pooling(10))]
    torch.testing.assert_close(pooled[0]["sentence_embedding"], pooled[1]["sentence_embedding"], atol=1e-6, rtol=0)


def test_dropout_acts_in_training_alone(vocabulary, layer):
    embedding = SentencePieceEmbedding(vocabulary, 12, dropout=0.5)
    features = embedding.preprocess(rows([4, 9], vocabulary))

    def embed():
        return MeanPool(10)(layer(embedding(dict(features))))["sentence_embedding"]

    assert not torch.equal(embed(), embed())
    embedding.eval()
    assert torch.equal(embed(), embed())


def test_encode_gives_means_and_states(embedding, layer):
    model = SentenceTransformer(modules=[embedding, layer, MeanPool(10)], device="cpu")
    texts = ["ba ce di", "", "fo gu ha je"]
    tokens = model.encode(texts, output_value="token_embeddings")
    means = model.encode(texts, convert_to_tensor=True)
    assert model.get_embedding_dimension() == layer.get_embedding_dimension() == 10
    assert means.dtype == torch.float32
    torch.testing.assert_close(torch.stack([one.mean(0) for one in tokens]), means, atol=1e-6, rtol=0)


def test_a_copy_and_a_saved_layer_are_equal(layer, tmp_path):
    layer.save(str(tmp_path))
    for other in (copy.deepcopy(layer), BiLSTM.load(str(tmp_path))):
        assert type(other) is BiLSTM and other.hidden_dim == 5
        for name, tensor in layer.state_dict().items():
            assert torch.equal(other.state_dict()[name], tensor)


@pytest.mark.parametrize("dimensions", [(0, 5), (12, 0), (12, -1)])
def test_dimensions_below_1_are_refused(dimensions):
    with pytest.raises(SettingsError, match="both must be at least 1"):
        BiLSTM(*dimensions)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_gives_the_same(embedding, layer, vocabulary):
    texts = rows(LENGTHS["mixed"], vocabulary)
    expected = MeanPool(10)(layer(embedding(embedding.preprocess(texts))))["sentence_embedding"]
    features = {name: tensor.cuda() for name, tensor in embedding.preprocess(texts).items()}
    found = MeanPool(10)(layer.cuda()(embedding.cuda()(features)))["sentence_embedding"]
    torch.testing.assert_close(found.cpu(), expected, atol=1e-4, rtol=0)
