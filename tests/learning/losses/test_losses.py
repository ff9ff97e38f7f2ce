import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from st_paragram.errors import SettingsError
from st_paragram.learning.losses.hardest_negatives import hardest_negatives
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding


def plain_negatives(first, second, texts=None, both_sides=False):
    """Row by row: the most similar sentence of the allowed ones, by the definition."""
    n = len(first)
    sentences = [*first, *second]
    labels = torch.cat(texts).tolist() if texts else list(range(2 * n))
    found = []
    for query in range(2 * n):
        best, best_cosine = (query + n) % (2 * n), -math.inf
        for candidate in range(2 * n):
            opposite = (candidate < n) != (query < n)
            mine = {labels[query], labels[(query + n) % (2 * n)]}
            theirs = {labels[candidate], labels[(candidate + n) % (2 * n)]}
            if candidate % n == query % n or not (both_sides or opposite) or (texts and mine & theirs):
                continue
            cosine = torch.cosine_similarity(sentences[query], sentences[candidate], dim=0).item()
            if cosine > best_cosine:
                best, best_cosine = candidate, cosine
        found.append(best)
    of_s, of_t = torch.tensor(found[:n]), torch.tensor(found[n:])
    return (of_s, of_t) if both_sides else (of_s - n, of_t)


@settings(max_examples=60)
@given(st.integers(1, 13), st.integers(1, 6), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_hardest_negatives_match_the_definition(n, block, both_sides, labelled, seed):
    generator = torch.Generator().manual_seed(seed)
    first, second = (torch.randn(n, 5, generator=generator) for _ in range(2))
    texts = tuple(torch.randint(0, 2 * n, (n,), generator=generator) for _ in range(2)) if labelled else None
    got = hardest_negatives(first, second, texts, both_sides, block)
    for one, other in zip(got, plain_negatives(first, second, texts, both_sides), strict=True):
        assert one.tolist() == other.tolist()


def test_without_labels_a_duplicate_is_picked_and_with_labels_it_is_not():
    """The authors' code picks the copy of the pair's own text, which gives a constant loss and no gradient."""
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    second = torch.tensor([[1.0, 0.1], [1.0, 0.1], [-1.0, 1.0]])
    assert hardest_negatives(first, second)[0][0] == 1
    labels = torch.tensor([1, 2, 3]), torch.tensor([4, 4, 5])
    assert hardest_negatives(first, second, labels)[0][0] == 2


def test_margin_loss_by_hand():
    s, t = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]])  # cosine 0.6
    of_s, of_t = torch.tensor([[0.0, 2.0]]), torch.tensor([[4.0, 3.0]])  # cosines 0 with s, 0.96 with t
    expected = max(0, 0.4 - 0.6 + 0.0) + max(0, 0.4 - 0.6 + 0.96)
    assert margin_loss(s, t, of_s, of_t, margin=0.4).item() == pytest.approx(expected)


def test_margin_loss_of_the_first_components_by_hand():
    """Of the first component: cosines 1, 0 (a length of 0) and 1; of both: as above."""
    s, t = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]])
    of_s, of_t = torch.tensor([[0.0, 2.0]]), torch.tensor([[4.0, 3.0]])
    first = max(0, 0.4 - 1 + 0.0) + max(0, 0.4 - 1 + 1)
    both = max(0, 0.4 - 0.6 + 0.0) + max(0, 0.4 - 0.6 + 0.96)
    assert margin_loss(s, t, of_s, of_t, 0.4, (1,)).item() == pytest.approx((first + both) / 2)


@pytest.mark.parametrize("dims", [(4, 2), (2, 2), (0,), (8,), (100,)])
def test_components_that_the_model_lacks_are_refused(model, dims):
    with pytest.raises(SettingsError, match=r"matryoshka_dims are .* they must rise, and be below the 8 components"):
        MarginHardNegativeLoss(model, matryoshka_dims=dims)


@pytest.fixture
def model(vocabulary):
    return SentenceTransformer(modules=[SentencePieceEmbedding(vocabulary, 8), MeanPool(8)], device="cpu")


def test_two_columns_mine_in_the_batch(model, pairs):
    s, t = (model.preprocess([pair[side] for pair in pairs[1:6]]) for side in (0, 1))
    a, b = (model(dict(x))["sentence_embedding"] for x in (s, t))
    of_s, of_t = plain_negatives(a, b)
    expected = margin_loss(a, b, b[of_s], a[of_t], margin=0.3)
    loss = MarginHardNegativeLoss(model, margin=0.3)
    torch.testing.assert_close(loss([s, t]), expected)
    columns = [
        s,
        t,
        model.preprocess([pairs[i + 1][1] for i in of_s]),
        model.preprocess([pairs[i + 1][0] for i in of_t]),
    ]
    torch.testing.assert_close(loss(columns), expected)


def test_padded_features_of_other_models_work():
    class Stub(torch.nn.Module):
        def forward(self, features):
            return {"sentence_embedding": features["x"]}

    columns = [{"x": torch.randn(3, 4)} for _ in range(4)]
    expected = margin_loss(*(column["x"] for column in columns), margin=0.4)
    torch.testing.assert_close(MarginHardNegativeLoss(Stub())(columns), expected)


def test_a_stock_trainer_accepts_the_loss(model, pairs, tmp_path):
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

    data = Dataset.from_dict({"s": [a for a, _ in pairs[:64]], "t": [b for _, b in pairs[:64]]})
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path), per_device_train_batch_size=16, max_steps=8, learning_rate=0.05, report_to="none",
        save_strategy="no", logging_steps=1, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=MarginHardNegativeLoss(model))
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("columns", [1, 3, 5])
def test_other_numbers_of_columns_are_refused(model, columns):
    with pytest.raises(SettingsError, match=f"got {columns} columns"):
        MarginHardNegativeLoss(model)([model.preprocess(["ba"])] * columns)


@pytest.mark.parametrize("margin", [0, -1, float("nan")])
def test_margin_must_be_positive(model, margin):
    with pytest.raises(SettingsError, match="margin"):
        MarginHardNegativeLoss(model, margin)


def test_pairs_that_share_a_text_are_no_negatives_of_each_other(model, pairs):
    """The second pair's translation is the first one's English, whose cosine with it is 1."""
    (a, b), (c, d), (e, _) = pairs[1:4]
    columns = [model.preprocess(list(side)) for side in zip((a, b), (c, a), (d, e), strict=True)]
    s, t = (model(dict(column))["sentence_embedding"] for column in columns)
    texts = torch.tensor([0, 1, 2]), torch.tensor([3, 0, 4])
    for mask, labels in ((True, texts), (False, None)):
        of_s, of_t = plain_negatives(s, t, labels)
        assert bool(of_s[0] == 1) is not mask
        expected = margin_loss(s, t, t[of_s], s[of_t], margin=0.4)
        found = MarginHardNegativeLoss(model, mask_duplicates=mask)([dict(column) for column in columns])
        torch.testing.assert_close(found, expected)
