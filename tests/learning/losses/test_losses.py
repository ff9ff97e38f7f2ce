import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer

from st_paragram.errors import SettingsError
from st_paragram.learning.losses.hardest_negatives import hardest_negatives
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.learning.losses.text_labels import text_labels
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


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


def test_stock_matryoshka_loss_is_the_sum_of_the_losses_of_both_lengths(model, pairs):
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

    columns = [model.preprocess([pair[side] for pair in pairs[1:9]]) for side in (0, 1)]
    s, t = (model(dict(column))["sentence_embedding"] for column in columns)
    texts = text_labels(columns)
    expected = 0
    for dim in (8, 3):
        of_s, of_t = plain_negatives(s[:, :dim], t[:, :dim], texts)
        expected += margin_loss(s[:, :dim], t[:, :dim], t[of_s, :dim], s[of_t, :dim], margin=0.4)
    loss = MatryoshkaLoss(model, MarginHardNegativeLoss(model), [8, 3])
    torch.testing.assert_close(loss([dict(column) for column in columns], None), expected)


class Flash(torch.nn.Module):
    """Features as sentence-transformers' Transformer makes them for flash attention; positions must not be lost."""

    def __init__(self, vocabulary):
        super().__init__()
        self.embedding = torch.nn.Embedding(len(vocabulary), 8)

    def preprocess(self, vocabulary, texts):
        ids, offsets = (torch.from_numpy(array).long() for array in vocabulary.encode(texts))
        counts = offsets.diff()
        return {
            "input_ids": ids[None],
            "position_ids": torch.cat([torch.arange(count) for count in counts])[None],
            "seq_idx": torch.arange(len(counts)).repeat_interleave(counts)[None].int(),
            "cu_seq_lens_q": offsets.int(),
            "cu_seq_lens_k": offsets.int(),
            "max_length_q": int(counts.max()),
            "max_length_k": int(counts.max()),
        }

    def forward(self, features):
        weights = 1 / (1.0 + features["position_ids"][0])
        states = self.embedding(features["input_ids"][0]) * weights[:, None]
        counts = features["cu_seq_lens_k"].diff().tolist()
        assert features["max_length_q"] == max(counts)
        return {"sentence_embedding": torch.stack([text.sum(0) for text in states.split(counts)])}


@pytest.mark.parametrize("columns", [2, 4])
def test_flat_features_of_other_models_are_not_joined(vocabulary, pairs, columns):
    """Through the prefixes of the stock trainer's batch, which drop everything but keys and tensors."""
    model, trainer = Flash(vocabulary), SentenceTransformerTrainer.__new__(SentenceTransformerTrainer)
    texts = [[pair[side] for pair in pairs[at : at + 5]] for at, side in ((1, 0), (1, 1), (7, 1), (7, 0))[:columns]]
    features = [model.preprocess(vocabulary, side) for side in texts]
    batch = {
        f"{name}_{key}": value for name, each in zip("abcd", features, strict=False) for key, value in each.items()
    }
    collected, _ = trainer.collect_features(batch)
    embeddings = [model(each)["sentence_embedding"] for each in features]
    if columns == 2:
        s, t = embeddings
        of_s, of_t = plain_negatives(s, t, text_labels(features))
        embeddings = [s, t, t[of_s], s[of_t]]
    torch.testing.assert_close(MarginHardNegativeLoss(model)(collected), margin_loss(*embeddings, margin=0.4))


def test_our_features_are_still_joined_when_the_trainer_has_collected_them(model, pairs):
    seen = []
    model.register_forward_pre_hook(lambda _, arguments: seen.append(len(arguments[0]["cu_seq_lens_q"]) - 1))
    columns = [model.preprocess([pair[side] for pair in pairs[1:6]]) for side in (0, 1)]
    batch = {f"{name}_{key}": value for name, each in zip("ab", columns, strict=True) for key, value in each.items()}
    collected, _ = SentenceTransformerTrainer.__new__(SentenceTransformerTrainer).collect_features(batch)
    MarginHardNegativeLoss(model)(collected)
    assert seen == [10]


@pytest.mark.parametrize("form", ["ours", "flash", "offsets", "padded"])
def test_texts_are_compared_in_the_features_of_any_pipeline(form):
    rows = [[[5, 6], [7], [5]], [[7], [8, 5, 6], [5, 6]]]
    columns = []
    for side in rows:
        ids, ends = torch.tensor([i for row in side for i in row]), torch.tensor([0, *map(len, side)]).cumsum(0)
        padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in side], batch_first=True)
        columns.append({
            "ours": {"input_ids": ids[None], "cu_seq_lens_q": ends},
            "flash": {"input_ids": ids[None], "cu_seq_lens_q": ends.int(), "position_ids": ids[None]},
            "offsets": {"input_ids": ids, "offsets": ends[:-1]},
            "padded": {"input_ids": padded, "attention_mask": padded > 0},
        }[form])  # fmt: skip
    assert [labels.tolist() for labels in text_labels(columns)] == [[0, 1, 2], [1, 3, 0]]


def test_padded_features_of_other_models_work():
    class Stub(torch.nn.Module):
        def forward(self, features):
            return {"sentence_embedding": features["x"]}

    columns = [{"x": torch.randn(3, 4)} for _ in range(4)]
    expected = margin_loss(*(column["x"] for column in columns), margin=0.4)
    torch.testing.assert_close(MarginHardNegativeLoss(Stub())(columns), expected)


@pytest.mark.parametrize("dims", [None, [8, 4]])
def test_a_stock_trainer_accepts_the_loss_also_for_embeddings_to_be_cut(model, pairs, tmp_path, dims):
    from datasets import Dataset
    from sentence_transformers import SentenceTransformerTrainingArguments
    from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

    data = Dataset.from_dict({"s": [a for a, _ in pairs[:64]], "t": [b for _, b in pairs[:64]]})
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path), per_device_train_batch_size=16, max_steps=8, learning_rate=0.05, report_to="none",
        save_strategy="no", logging_steps=1, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    loss = MarginHardNegativeLoss(model)
    trainer = SentenceTransformerTrainer(
        model, arguments, train_dataset=data, loss=loss if dims is None else MatryoshkaLoss(model, loss, dims)
    )
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
