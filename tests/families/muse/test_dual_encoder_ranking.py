"""The ranking loss of dual encoders: against sentence-transformers', by hand, and its gradients."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from st_paragram.errors import SettingsError
from st_paragram.families.muse.losses import DualEncoderRankingLoss, ranking_loss, sharing
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


def unit(rows, dim=5, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return F.normalize(torch.randn(rows, dim, generator=generator, dtype=dtype), dim=1)


def plain(x, y, scale, margin, equal, both):
    """Pair by pair: minus the logarithm of the softmax, over those that are no equals."""

    def loss(of, among, same):
        found = []
        for i, query in enumerate(of):
            terms = [
                math.exp(scale * (float(query @ other) - (margin if i == j else 0.0)))
                for j, other in enumerate(among)
                if i == j or not same[i][j]
            ]
            found.append(math.log(sum(terms)) - scale * (float(query @ among[i]) - margin))
        return sum(found) / len(found)

    there = loss(x, y, equal)
    return (there + loss(y, x, equal.T)) / 2 if both else there


@given(
    st.integers(1, 7), st.sampled_from([1.0, 20.0]), st.sampled_from([0.0, 0.3]), st.booleans(), st.integers(0, 10**6)
)
def test_the_loss_is_its_definition(rows, scale, margin, both, seed):
    x, y = unit(rows, seed=seed), unit(rows, seed=seed + 1)
    labels = torch.randint(0, 4, (2, rows), generator=torch.Generator().manual_seed(seed))
    equal = sharing(*labels)
    found = ranking_loss(x, y, scale, margin, equal, both).item()
    assert found == pytest.approx(plain(x.double(), y.double(), scale, margin, equal, both), rel=1e-4, abs=1e-5)


def test_three_pairs_by_hand():
    """Cosines of pairs 0.8, 0.6, 1; scale 10, margin 0.3: logits of pairs are 5, 3 and 7."""
    x = torch.eye(3)
    y = torch.tensor([[0.8, 0.6, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 1.0]])
    logits = [[5.0, 0.0, 0.0], [6.0, 3.0, 0.0], [0.0, 8.0, 7.0]]
    rows = [math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(logits)]
    columns = [math.log(sum(map(math.exp, column))) - column[i] for i, column in enumerate(zip(*logits, strict=True))]
    both = (sum(rows) + sum(columns)) / 6
    assert ranking_loss(x, y, 10.0, 0.3).item() == pytest.approx(both, rel=1e-6)
    assert ranking_loss(x, y, 10.0, 0.3, both_directions=False).item() == pytest.approx(sum(rows) / 3, rel=1e-6)
    assert rows[2] == pytest.approx(math.log(1 + math.e + math.exp(-7)))  # the second sentence is nearer


@pytest.fixture(scope="module")
def averaging(vocabulary):
    return SentenceTransformer(modules=[SentencePieceEmbedding(vocabulary, 6), MeanPool(6)], device="cpu")


def features(model, pairs):
    return [model.preprocess(list(column)) for column in zip(*pairs, strict=True)]


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("both", [True, False])
def test_without_a_margin_it_is_sentence_transformers_own(averaging, pairs, scale, both):
    directions = ("query_to_doc", "doc_to_query") if both else ("query_to_doc",)
    stock = MultipleNegativesRankingLoss(averaging, scale=scale, directions=directions, partition_mode="per_direction")
    ours = DualEncoderRankingLoss(averaging, scale, 0.0, mask_equal=False, both_directions=both)
    distinct = pairs[:8]
    expected = stock(features(averaging, distinct), None)
    found = ours(features(averaging, distinct))
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)
    masked = DualEncoderRankingLoss(averaging, scale, 0.0, both_directions=both)(features(averaging, distinct))
    assert masked.item() == found.item()  # none of them are equal


@pytest.mark.parametrize("side", [0, 1])
def test_equal_texts_give_each_other_no_gradient(side):
    """Two pairs that share a text: there is nothing to rank but each pair itself."""
    x, y = (unit(2, seed=seed).requires_grad_() for seed in (0, 1))
    labels = [torch.tensor([0, 1]), torch.tensor([0, 1])]
    labels[side] = torch.tensor([4, 4])
    loss = ranking_loss(x, y, 20.0, 0.3, sharing(*labels))
    loss.backward()
    assert loss.item() == 0 and not x.grad.any() and not y.grad.any()
    ranking_loss(x, y, 20.0, 0.3).backward()
    assert x.grad.any(1).all() and y.grad.any(1).all()


def test_half_precision_is_ranked_in_float32():
    x, y = unit(6), unit(6, seed=1)
    expected = ranking_loss(x.bfloat16().float(), y.bfloat16().float(), 20.0, 0.3)
    with torch.autocast("cpu", torch.bfloat16):
        found = ranking_loss(x.bfloat16(), y.bfloat16(), 20.0, 0.3)
    assert found.dtype == torch.float32 and found.item() == expected.item()


def test_settings_that_are_refused_and_shown(averaging):
    for scale, margin in ((0.0, 0.3), (-1.0, 0.3), (20.0, -0.1), (math.nan, 0.3)):
        with pytest.raises(SettingsError, match="scale must be positive, margin at least 0"):
            DualEncoderRankingLoss(averaging, scale, margin)
    for columns in (0, 1, 3):
        with pytest.raises(SettingsError, match=f"got {columns} columns of text; it takes 2"):
            DualEncoderRankingLoss(averaging)([averaging.preprocess(["ba"])] * columns)
    loss = DualEncoderRankingLoss(averaging, 10.0, 0.2, both_directions=False)
    assert loss.get_config_dict() == {"scale": 10.0, "margin": 0.2, "mask_equal": True, "both_directions": False}
    assert "year = {2020}" in loss.citation
