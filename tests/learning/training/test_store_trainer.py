"""Training on pair stores with any loss, against plain loops."""

import itertools
import os
import signal
import time

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss, SoftmaxLoss
from support.data import make_pairs, write_store
from support.stock import lstm_pipeline
from torch import nn
from transformers import TrainerCallback

import st_paragram
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.learning.training import checkpoints
from st_paragram.learning.training.arguments import StoreTrainingArguments
from st_paragram.learning.training.batch_order import BatchOrder
from st_paragram.learning.training.store_trainer import StoreTrainer

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = {
    "per_device_train_batch_size": 8,
    "learning_rate": 1e-2,
    "max_steps": 30,
    "logging_steps": 1,
    "save_strategy": "no",
    "use_cpu": True,
}


@pytest.fixture
def stores(store, tmp_path, vocabulary):
    """A store of 700 pairs and one of 200."""
    return {"large": store, "small": write_store(tmp_path / "small.h5", make_pairs(200, seed=5), vocabulary)}


@pytest.fixture
def averaging(vocabulary):
    torch.manual_seed(0)
    return pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")


@pytest.fixture
def lstm(pairs):
    return new_lstm(pairs)


def new_lstm(pairs):
    torch.manual_seed(0)
    return lstm_pipeline(itertools.chain(*pairs, *make_pairs(200, seed=5)))


def arguments(folder, **settings):
    return StoreTrainingArguments(str(folder), **{**SETTINGS, **settings})


class Scaled(nn.Module):
    """A loss with a parameter and a buffer of its own, beside the model's."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.dense = nn.Linear(model.get_embedding_dimension(), 4)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, features, labels=None):
        self.steps += 1
        first, second = (self.dense(self.model(column)["sentence_embedding"]) for column in features)
        return (first - second).square().mean() + 1 / (1 + first.std(0).sum())


def plain_loop(model, losses, stores, steps, clip=None):
    """Adam on what `BatchOrder` says a step trains on."""
    order = BatchOrder({name: len(store) for name, store in stores.items()}, 8, 42)
    parameters = {id(p): p for loss in losses.values() for p in loss.parameters()}
    optimizer, values = torch.optim.Adam(parameters.values(), lr=1e-2), []
    for step in range(steps):
        name, rows = order.at(step)
        columns = [model.preprocess(list(stores[name].texts(side, rows))) for side in "ab"]
        labels = stores[name].labels(rows)
        loss = losses[name](columns, None if labels is None else torch.from_numpy(labels.astype(np.int64)))
        optimizer.zero_grad()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(parameters.values(), clip)
        optimizer.step()
        values.append(loss.item())
    return values


def logged(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


@pytest.mark.parametrize("row_lazy_adam", [False, True])
def test_another_loss_equals_a_plain_loop(tmp_path, store, vocabulary, averaging, row_lazy_adam):
    torch.manual_seed(0)
    plain = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")
    expected = plain_loop(plain, {"pairs": MultipleNegativesRankingLoss(plain)}, {"pairs": store}, 100)
    loss = MultipleNegativesRankingLoss(averaging)
    trainer = StoreTrainer(averaging, arguments(tmp_path, max_steps=100, row_lazy_adam=row_lazy_adam), store, loss)
    trainer.train()
    np.testing.assert_allclose(logged(trainer), expected, atol=1e-4)
    torch.testing.assert_close(averaging[0].embedding.weight, plain[0].embedding.weight, atol=1e-4, rtol=0)
    assert np.mean(expected[-10:]) < np.mean(expected[:10]) - 0.5


@pytest.mark.slow
def test_stores_take_turns_each_with_its_own_loss(tmp_path, stores, lstm, pairs, caplog):
    """A stock pipeline, which gets texts; an epoch is 88 + 25 steps."""
    plain = new_lstm(pairs)

    def losses(model):
        torch.manual_seed(1)
        return {"large": MarginHardNegativeLoss(model, margin=0.8), "small": Scaled(model)}

    mine, theirs = losses(lstm), losses(plain)
    trainer = StoreTrainer(lstm, arguments(tmp_path, max_steps=120, row_lazy_adam=False), stores, mine)
    assert trainer.batches_per_epoch == 88 + 25
    with caplog.at_level("INFO", logger="st_paragram"):
        trainer.train()
    expected = plain_loop(plain, theirs, stores, 120)
    np.testing.assert_allclose(logged(trainer), expected, atol=1e-5)
    for one, other in zip(lstm.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=0)
    torch.testing.assert_close(mine["small"].dense.weight, theirs["small"].dense.weight, atol=1e-4, rtol=0)
    assert mine["small"].steps == theirs["small"].steps == 27  # of 120, 25 / 113 would be 26.5
    assert trainer.pairs_trained == 700 + 200 + 7 * 8
    assert f"trained on {trainer.pairs_trained} pairs" in caplog.messages[-1]
    assert any("pairs/s" in line for line in caplog.messages) and not any("  M " in line for line in caplog.messages)


def test_clipping_counts_the_losses_own_parameters(tmp_path, store, lstm, pairs):
    plain = new_lstm(pairs)
    torch.manual_seed(1)
    mine, theirs = Scaled(lstm), Scaled(plain)
    theirs.load_state_dict(mine.state_dict())
    options = arguments(tmp_path, row_lazy_adam=False, max_grad_norm=0.05, max_steps=5)
    StoreTrainer(lstm, options, store, mine).train()

    plain_loop(plain, {"pairs": theirs}, {"pairs": store}, 5, clip=0.05)
    torch.testing.assert_close(mine.dense.weight, theirs.dense.weight, atol=1e-5, rtol=0)
    torch.testing.assert_close(lstm[0].emb_layer.weight, plain[0].emb_layer.weight, atol=1e-5, rtol=0)


def test_labels_go_to_the_loss(tmp_path, lstm, pairs, vocabulary):
    """sentence-transformers' softmax classifier on pairs with one of three labels."""
    with PairStoreWriter(tmp_path / "labelled.h5", ("en", "xx"), vocabulary, labels=np.int8) as writer:
        sides = [vocabulary.encode([pair[side] for pair in pairs[:60]]) for side in (0, 1)]
        writer.append(*sides[0], *sides[1], labels=np.arange(60) % 3)
    store, plain = PairStore(tmp_path / "labelled.h5"), new_lstm(pairs)
    mine, theirs = (SoftmaxLoss(model, model.get_embedding_dimension(), 3) for model in (lstm, plain))
    theirs.load_state_dict(mine.state_dict())
    trainer = StoreTrainer(lstm, arguments(tmp_path, row_lazy_adam=False), store, mine)
    trainer.train()
    np.testing.assert_allclose(logged(trainer), plain_loop(plain, {"pairs": theirs}, {"pairs": store}, 30), atol=1e-5)
    torch.testing.assert_close(mine.classifier.weight, theirs.classifier.weight, atol=1e-4, rtol=0)


def test_prompts_are_refused(tmp_path):
    with pytest.raises(SettingsError, match="prompts are 'query: ', but stored texts are trained on as they are"):
        arguments(tmp_path, prompts="query: ")


class Interrupt(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 17:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)


def test_stores_losses_and_stock_weights_resume_to_the_bit(tmp_path, stores, pairs):
    def make(folder, callbacks=()):
        model = new_lstm(pairs)
        losses = {"large": MultipleNegativesRankingLoss(model), "small": Scaled(model)}
        options = arguments(tmp_path / folder, row_lazy_adam=False)
        return StoreTrainer(model, options, stores, losses, callbacks=list(callbacks)), losses["small"]

    whole, whole_loss = make("whole")
    whole.train()
    first, _ = make("parts", [Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        first.train()
    (checkpoint,) = (tmp_path / "parts").glob("checkpoint-*")
    second, loss = make("parts")
    with torch.no_grad():
        for parameter in itertools.chain(second.model.parameters(), loss.parameters()):
            parameter.zero_()
    second.train(resume_from_checkpoint=str(checkpoint))
    for name, tensor in whole_loss.state_dict().items():  # the model's parameters are among them
        assert torch.equal(loss.state_dict()[name], tensor), name
    assert second.pairs_trained == whole.pairs_trained - first.pairs_trained

    for data, message in (
        (stores["large"], "of a run on other data than"),
        (stores, "the checkpoint has different losses"),
    ):
        other = StoreTrainer(new_lstm(pairs), arguments(tmp_path, row_lazy_adam=False), data, _Nothing())
        with pytest.raises(SettingsError, match=message):
            other.train(resume_from_checkpoint=str(checkpoint))


class _Nothing(nn.Module):
    pass


def test_a_checkpoint_is_whole_when_all_files_of_its_trainer_are_there(tmp_path, stores, lstm):
    losses = {"large": MultipleNegativesRankingLoss(lstm), "small": Scaled(lstm)}
    saving = {"save_strategy": "steps", "save_steps": 10, "save_total_limit": 3}
    trainer = StoreTrainer(lstm, arguments(tmp_path, row_lazy_adam=False, **saving), stores, losses)
    trainer.train()
    newest = tmp_path / "checkpoint-30"
    assert checkpoints.newest_whole(tmp_path)[0] == newest
    names = [
        "model.safetensors",
        "1_LSTM/model.safetensors",
        "loss.safetensors",
        "optimizer.pt",
        "scheduler.pt",
        "rng_state.pth",
        "trainer_state.json",
        "files.json",
    ]
    for name in names:
        (newest / name).rename(tmp_path / "away")
        assert checkpoints.newest_whole(tmp_path)[0] == tmp_path / "checkpoint-20", name
        (tmp_path / "away").rename(newest / name)
    (newest / "files.json").write_text("{")
    assert checkpoints.newest_whole(tmp_path)[0] == tmp_path / "checkpoint-20"


def test_a_saved_model_is_a_model_directory_and_no_more(tmp_path, store, lstm):
    options = arguments(tmp_path, row_lazy_adam=False, max_steps=2)
    trainer = StoreTrainer(lstm, options, store, MultipleNegativesRankingLoss(lstm))
    trainer.train()
    trainer.save_model(str(tmp_path / "x"))
    for loaded in (st_paragram.load(tmp_path / "x", device="cpu"), SentenceTransformer(str(tmp_path / "x"))):
        np.testing.assert_array_equal(loaded.encode(["ba ce"]), lstm.encode(["ba ce"]))
    assert not {"files.json", "optimizer.pt"} & {path.name for path in (tmp_path / "x").iterdir()}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("large", "tiny"), "losses are named large, tiny, stores large, small"),
        (("large",), "losses are named large, stores large, small"),
    ],
)
def test_losses_and_stores_must_have_the_same_names(tmp_path, stores, lstm, names, message):
    losses = {name: MultipleNegativesRankingLoss(lstm) for name in names}
    with pytest.raises(SettingsError, match=message):
        StoreTrainer(lstm, arguments(tmp_path), stores, losses)


def test_names_that_modules_cannot_have_are_refused(tmp_path, store, lstm):
    with pytest.raises(SettingsError, match=r"a store is named 'en-xx\.h5'"):
        StoreTrainer(lstm, arguments(tmp_path), {"en-xx.h5": store}, {"en-xx.h5": MultipleNegativesRankingLoss(lstm)})


def test_a_store_with_another_tokenizer_than_the_models_is_refused(tmp_path, stores, averaging, vocabulary):
    cased = SentencePieceTokenizer(vocabulary.content, lower_case=False)
    stores["small"] = write_store(tmp_path / "cased.h5", make_pairs(9), cased)
    with pytest.raises(SettingsError, match=r"cased\.h5: the model's tokenizer is not the store's"):
        StoreTrainer(averaging, arguments(tmp_path), stores, MultipleNegativesRankingLoss(averaging))


def test_row_lazy_adam_trains_a_table_alone(tmp_path, store, averaging):
    trainer = StoreTrainer(averaging, arguments(tmp_path), store, Scaled(averaging))
    with pytest.raises(SettingsError, match=r"alone, not dense\.weight; set row_lazy_adam=False"):
        trainer.train()


def test_a_model_that_cannot_be_saved_is_refused_before_it_is_trained(tmp_path, store, lstm):
    class Own(nn.Module):
        def forward(self, features):
            return features

    lstm.append(Own())
    with pytest.raises(ModelDirectoryError, match="Own is not a module of st_paragram"):
        StoreTrainer(lstm, arguments(tmp_path), store, MultipleNegativesRankingLoss(lstm))
