"""Losses of sentence-transformers and of users in `MegaBatchTrainer`."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from st_paragram.errors import SettingsError
from st_paragram.families.psp.loss_columns import column_count
from st_paragram.families.psp.margin_hard_negative import MarginHardNegativeLoss, margin_loss
from st_paragram.families.psp.mega_batch import MegaBatch
from st_paragram.families.psp.mega_batch_trainer import (
    MegaBatchTrainer,
    MegaBatchTrainingArguments,
)
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

BATCH = 16
DIM = 8


def pipeline_of(store, pool=MeanPool):
    torch.manual_seed(0)
    modules = [SentencePieceEmbedding(store.tokenizer(), DIM), pool(DIM)]
    return SentenceTransformer(modules=modules, device="cpu")


def trainer_of(folder, store, loss, model=None, **settings):
    """A trainer of two steps, in one mega-batch of two mini-batches."""
    model = model or pipeline_of(store)
    defaults = {"megabatch_size": 2, "anneal_interval": 0, "max_steps": 2, "logging_steps": 1}
    defaults |= {"per_device_train_batch_size": BATCH, "mining_precision": "float32"}
    defaults |= {"use_cpu": True, "save_strategy": "no", "disable_tqdm": True}
    arguments = MegaBatchTrainingArguments(str(folder), **defaults | settings)
    return MegaBatchTrainer(model, arguments, store, loss(model))


def logged_losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def first_mega_batch(trainer):
    """The mined texts of the two steps, and their embeddings before training."""
    texts = trainer._mine(trainer._read(MegaBatch(0, 0, 2, 2)))
    rows = np.split(texts.ids, texts.offsets[1:-1])
    with torch.no_grad():
        features = trainer.model.preprocess([row.tolist() for row in rows])
        return texts, trainer.model(features)["sentence_embedding"]


class InnerProductLoss(nn.Module):
    """A user's loss."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, sentence_features, labels):
        embeddings = [self.model(features)["sentence_embedding"] for features in sentence_features]
        assert labels is None and len(embeddings) == getattr(self, "columns", 4)
        s, t, *negatives = embeddings
        return sum(((s * negative) - (s * t)).mean() for negative in negatives or [t.flip(0)])


class TwoColumnLoss(InnerProductLoss):
    columns = 2


def matryoshka(loss, **settings):
    return lambda model: losses.MatryoshkaLoss(model, loss(model), [DIM, 3], **settings)


RANKING = losses.MultipleNegativesRankingLoss
CACHED = losses.CachedMultipleNegativesRankingLoss


def cached(model):
    return CACHED(model, mini_batch_size=5)


def all_directions(model):
    directions = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")
    return RANKING(model, directions=directions, hardness_mode="all_negatives", hardness_strength=2)


LOSSES = {
    "margin": MarginHardNegativeLoss,
    "ranking": RANKING,
    "ranking, all directions": all_directions,
    "symmetric ranking": losses.MultipleNegativesSymmetricRankingLoss,
    "cached ranking": cached,
    "cached symmetric ranking": losses.CachedMultipleNegativesSymmetricRankingLoss,
    "triplet": losses.TripletLoss,
    "mega-batch margin": losses.MegaBatchMarginLoss,
    "Matryoshka margin": matryoshka(MarginHardNegativeLoss),
    "Matryoshka margin, one dimension per step": matryoshka(
        MarginHardNegativeLoss, n_dims_per_step=1
    ),
    "Matryoshka ranking": matryoshka(RANKING),
    "Matryoshka cached ranking": matryoshka(cached),
    "user": InnerProductLoss,
    "Matryoshka user": matryoshka(TwoColumnLoss),
}


@pytest.mark.filterwarnings("ignore:The .*Symmetric")
@pytest.mark.parametrize("pool", [MeanPool, Pooling], ids=["flat", "padded"])
@pytest.mark.parametrize("name", LOSSES)
def test_two_steps_with_each_loss(tmp_path, store, name, pool):
    model = pipeline_of(store, pool)
    trainer = trainer_of(tmp_path, store, LOSSES[name], model, compiled_step=False)
    before = trainer.embedding.embedding.weight.detach().clone()
    trainer.train()
    assert trainer.state.global_step == 2
    assert (trainer.embedding.embedding.weight - before).abs().max() > 1e-4


def test_matryoshka_is_the_weighted_sum_of_margin_losses_on_cut_embeddings(tmp_path, store):
    loss = matryoshka(MarginHardNegativeLoss, matryoshka_weights=[1, 0.5])
    trainer = trainer_of(tmp_path, store, loss)
    texts, embeddings = first_mega_batch(trainer)
    columns = [embeddings[column] for column in texts.columns[:, :BATCH]]
    whole = margin_loss(*columns, margin=0.4)
    cut = margin_loss(*[column[:, :3] for column in columns], margin=0.4)
    trainer.train()
    assert logged_losses(trainer)[0] == pytest.approx((whole + 0.5 * cut).item(), abs=1e-5)


def test_matryoshka_resumes_exactly(tmp_path, store):
    loss = matryoshka(MarginHardNegativeLoss, n_dims_per_step=1)
    saving = {"max_steps": 6, "save_strategy": "steps", "save_steps": 3, "save_total_limit": 2}
    whole, resumed = (trainer_of(tmp_path, store, loss, **saving) for _ in range(2))
    whole.train()
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    weights = whole.embedding.embedding.weight
    assert torch.equal(weights, resumed.embedding.embedding.weight)


@pytest.mark.parametrize("loss", [RANKING, cached])
def test_ranking_compares_s_with_all_t_and_the_negatives_of_s(tmp_path, store, loss):
    trainer = trainer_of(tmp_path, store, loss)
    texts, embeddings = first_mega_batch(trainer)
    embeddings = F.normalize(embeddings)
    s, t, negatives_of_s, _ = (embeddings[column] for column in texts.columns[:, :BATCH])
    similarities = 20 * s @ torch.cat([t, negatives_of_s]).T
    expected = F.cross_entropy(similarities, torch.arange(BATCH))
    trainer.train()
    assert logged_losses(trainer)[0] == pytest.approx(expected.item(), abs=1e-5)


def test_losses_of_two_columns_need_no_search(tmp_path, store, caplog):
    trainer = trainer_of(tmp_path, store, TwoColumnLoss)
    trainer._embed = None
    with caplog.at_level("INFO"):
        trainer.train()
    assert "step: torch (the loss TwoColumnLoss); mining: none" in caplog.text


@pytest.mark.parametrize(
    "name",
    [
        "AnglELoss",
        "BatchAllTripletLoss",
        "BatchHardTripletLoss",
        "CoSENTLoss",
        "ContrastiveLoss",
        "ContrastiveTensionLoss",
        "CosineSimilarityLoss",
        "DistillKLDivLoss",
        "GlobalOrthogonalRegularizationLoss",
        "MSELoss",
        "MarginMSELoss",
        "OnlineContrastiveLoss",
    ],
)
@pytest.mark.parametrize("wrap", [lambda loss: loss, matryoshka])
def test_losses_that_need_more_than_pairs_are_refused(tmp_path, store, name, wrap):
    loss = wrap(getattr(losses, name))
    message = f"{name} needs labels or other columns .* use MarginHardNegativeLoss, Multiple"
    with pytest.raises(SettingsError, match=message):
        trainer_of(tmp_path, store, loss)


def test_a_wrong_number_of_columns_is_refused():
    loss = InnerProductLoss(None)
    loss.columns = 5
    with pytest.raises(
        SettingsError, match=r"InnerProductLoss\.columns is 5; set it to 2 \(s, t\)"
    ):
        column_count(loss)
