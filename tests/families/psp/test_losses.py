import pytest
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss

from st_paragram.errors import SettingsError
from st_paragram.families.psp.hardest_negatives import hardest_negatives
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.learning.training.text_labels import labels_of_features


def test_without_labels_a_duplicate_is_picked_and_with_labels_it_is_not():
    """The authors' code picks the copy of the pair's own text, which gives a constant loss and no
    gradient.
    """
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    second = torch.tensor([[1.0, 0.1], [1.0, 0.1], [-1.0, 1.0]])
    assert hardest_negatives(first, second)[0][0] == 1
    labels = torch.tensor([1, 2, 3]), torch.tensor([4, 4, 5])
    assert hardest_negatives(first, second, labels)[0][0] == 2


def test_margin_loss_by_hand():
    s, t = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]])  # cosine 0.6
    # cosines 0 with s, 0.96 with t
    of_s, of_t = torch.tensor([[0.0, 2.0]]), torch.tensor([[4.0, 3.0]])
    expected = max(0, 0.4 - 0.6 + 0.0) + max(0, 0.4 - 0.6 + 0.96)
    assert margin_loss(s, t, of_s, of_t, margin=0.4).item() == pytest.approx(expected)


@pytest.fixture
def model(vocabulary):
    return SentenceTransformer(
        modules=[SentencePieceEmbedding(vocabulary, 8), MeanPool(8)], device="cpu"
    )


def test_two_columns_mine_in_the_batch(model, pairs):
    s, t = (model.preprocess([pair[side] for pair in pairs[1:6]]) for side in (0, 1))
    a, b = (model(dict(x))["sentence_embedding"] for x in (s, t))
    of_s, of_t = hardest_negatives(a, b)
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
    columns = [model.preprocess([pair[side] for pair in pairs[1:9]]) for side in (0, 1)]
    s, t = (model(dict(column))["sentence_embedding"] for column in columns)
    texts = labels_of_features(columns)
    expected = 0
    for dim in (8, 3):
        of_s, of_t = hardest_negatives(s[:, :dim], t[:, :dim], texts)
        expected += margin_loss(s[:, :dim], t[:, :dim], t[of_s, :dim], s[of_t, :dim], margin=0.4)
    loss = MatryoshkaLoss(model, MarginHardNegativeLoss(model), [8, 3])
    torch.testing.assert_close(loss([dict(column) for column in columns], None), expected)


@pytest.mark.parametrize("form", ["ours", "flash", "offsets", "padded"])
def test_texts_are_compared_in_the_features_of_any_pipeline(form):
    rows = [[[5, 6], [7], [5]], [[7], [8, 5, 6], [5, 6]]]
    columns = []
    for side in rows:
        texts = [torch.tensor(row) for row in side]
        ids = torch.cat(texts)
        ends = torch.tensor([0, *map(len, side)]).cumsum(0)
        padded = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
        forms = {
            "ours": {"input_ids": ids[None], "cu_seq_lens_q": ends},
            "flash": {"input_ids": ids[None], "cu_seq_lens_q": ends.int(), "position_ids": ids},
            "offsets": {"input_ids": ids, "offsets": ends[:-1]},
            "padded": {"input_ids": padded, "attention_mask": padded > 0},
        }
        columns.append(forms[form])
    first, second = (labels.tolist() for labels in labels_of_features(columns))
    assert len({*first, *second}) == 4
    assert (second[0], second[2]) == (first[1], first[0])


def test_a_stock_trainer_accepts_the_loss(model, pairs, tmp_path):
    data = Dataset.from_dict({"s": [a for a, _ in pairs[:64]], "t": [b for _, b in pairs[:64]]})
    arguments = SentenceTransformerTrainingArguments(
        str(tmp_path),
        per_device_train_batch_size=16,
        max_steps=8,
        learning_rate=0.05,
        report_to="none",
        save_strategy="no",
        logging_steps=1,
        use_cpu=True,
        disable_tqdm=True,
    )
    loss = MarginHardNegativeLoss(model)
    trainer = SentenceTransformerTrainer(model, arguments, train_dataset=data, loss=loss)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0]


def test_other_numbers_of_columns_and_margins_are_refused(model):
    with pytest.raises(SettingsError, match="got 3 columns"):
        MarginHardNegativeLoss(model)([model.preprocess(["ba"])] * 3)
    with pytest.raises(SettingsError, match="margin"):
        MarginHardNegativeLoss(model, -1)


def test_pairs_that_share_a_text_are_no_negatives_of_each_other(model, pairs):
    """The second pair's translation is the first one's English, whose cosine with it is 1."""
    (a, b), (c, d), (e, _) = pairs[1:4]
    columns = [model.preprocess(list(side)) for side in zip((a, b), (c, a), (d, e), strict=True)]
    s, t = (model(dict(column))["sentence_embedding"] for column in columns)
    texts = torch.tensor([0, 1, 2]), torch.tensor([3, 0, 4])
    for mask, labels in ((True, texts), (False, None)):
        of_s, of_t = hardest_negatives(s, t, labels)
        assert bool(of_s[0] == 1) is not mask
        expected = margin_loss(s, t, t[of_s], s[of_t], margin=0.4)
        found = MarginHardNegativeLoss(model, mask_duplicates=mask)(
            [dict(column) for column in columns]
        )
        torch.testing.assert_close(found, expected)
