"""Mega-batch training of a pipeline that is all sentence-transformers' own: word embeddings, LSTM, pooling."""

import itertools
import os
import signal
import time

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support import reference
from support.stock import lstm_pipeline
from transformers import TrainerCallback

import st_paragram
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import SettingsError, StoreError
from st_paragram.learning.training.mega_batch.arguments import MegaBatchTrainingArguments
from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer

pytestmark = pytest.mark.usefixtures("one_thread")

SETTINGS = {
    "per_device_train_batch_size": 8,
    "megabatch_size": 4,
    "anneal_interval": 5,
    "mining_precision": "float32",
    "learning_rate": 1e-2,
    "max_steps": 40,
    "logging_steps": 1,
    "save_strategy": "no",
    "use_cpu": True,
    "row_lazy_adam": False,
}


def make_trainer(folder, store, pairs, **settings):
    torch.manual_seed(0)
    callbacks = settings.pop("callbacks", [])
    arguments = MegaBatchTrainingArguments(str(folder), **{**SETTINGS, **settings})
    return MegaBatchTrainer(lstm_pipeline(itertools.chain(*pairs)), arguments, store, callbacks=callbacks)


def weights_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def check_same(one, other):
    one, other = weights_of(one), weights_of(other)
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def nearer(model, pairs):
    """How often a sentence's translation is nearer to it than another sentence's; 0.5 by chance."""
    first, second = (torch.from_numpy(model.encode([pair[side] for pair in pairs])) for side in (0, 1))
    cosines = torch.nn.functional.cosine_similarity(first[:, None], second[None], dim=2)
    return (cosines.diag()[:, None] > cosines).float().mean().item()


def test_it_improves(tmp_path, store, pairs):
    trainer = make_trainer(tmp_path, store, pairs, max_steps=100)
    others = pairs[1:80]
    before = nearer(trainer.model, others)
    trainer.train()
    assert trainer._compiled is None and {m["megabatch_size"] for m in trainer.state.log_history[:-1]} == {1, 2, 3, 4}
    assert before < 0.55 and nearer(trainer.model, others) > 0.65


@pytest.mark.parametrize("both_sides", [False, True])
@pytest.mark.parametrize("mask_duplicates", [True, False])
def test_mined_negatives_are_the_plain_references(tmp_path, store, pairs, monkeypatch, both_sides, mask_duplicates):
    trainer = make_trainer(
        tmp_path, store, pairs, negatives_from_both_sides=both_sides, mask_duplicates=mask_duplicates
    )
    mine, tokenizer, compared = trainer._mine, store.tokenizer(), []

    def compare(texts):
        """Embed the decoded texts with the model as it is now, look for negatives row by row."""
        ids = [texts.ids[a:b].tolist() for a, b in itertools.pairwise(texts.offsets)]
        s, t = ids[: texts.pairs], ids[texts.pairs :]
        vectors = [trainer.model.encode([tokenizer.decode(i) for i in side], convert_to_tensor=True) for side in (s, t)]
        expected = reference.mine(vectors, s, t, both_sides, mask_duplicates)
        mined = mine(texts)
        compared.append(mined.columns.shape[1])
        assert [ids[i] for i in mined.columns[0]] == s and [ids[i] for i in mined.columns[1]] == t
        assert [[ids[i] for i in mined.columns[place]] for place in (2, 3)] == [list(side) for side in expected]
        trainer.model.train()
        return mined

    monkeypatch.setattr(trainer, "_mine", compare)
    trainer.train()
    assert set(compared) == {8, 16, 24, 32}


class Interrupt(TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)


def test_interrupted_in_a_mega_batch_and_resumed_it_ends_with_the_same_weights(tmp_path, store, pairs):
    whole = make_trainer(tmp_path / "whole", store, pairs)
    whole.train()
    first = make_trainer(tmp_path / "parts", store, pairs, callbacks=[Interrupt(27)])
    with pytest.raises(KeyboardInterrupt):
        first.train()
    (checkpoint,) = (tmp_path / "parts").glob("checkpoint-*")
    with np.load(checkpoint / "mega_batch.npz") as mined:
        _, begin, stop, size = mined["mega"].tolist()
    assert begin < 27 < stop and size == 4
    second = make_trainer(tmp_path / "parts", store, pairs)
    with torch.no_grad():
        for parameter in second.model.parameters():
            parameter.zero_()
    second.train(resume_from_checkpoint=str(checkpoint))
    check_same(second.model, whole.model)

    # The checkpoint is a model directory, for both readers.
    texts = [a for a, _ in pairs[:20]]
    expected = first.model.encode(texts)
    for read in (st_paragram.load(checkpoint, device="cpu"), SentenceTransformer(str(checkpoint), device="cpu")):
        np.testing.assert_array_equal(read.encode(texts), expected)


def test_row_lazy_adam_is_refused_in_one_line(tmp_path, store, pairs):
    trainer = make_trainer(tmp_path, store, pairs, row_lazy_adam=True)
    with pytest.raises(SettingsError, match=r"alone, not model\.0\.emb_layer\.weight; set row_lazy_adam=False"):
        trainer.train()


def test_a_tokenizer_for_each_side_is_refused(tmp_path, pairs, vocabulary):
    other = SentencePieceTokenizer(vocabulary.content, lower_case=False)
    with PairStoreWriter(tmp_path / "x.h5", ("en", "xx"), (vocabulary, other)) as writer:
        writer.append(*vocabulary.encode(["ba", "ce"]), *other.encode(["di", "fo"]))
    with pytest.raises(StoreError, match=r"x\.h5: the sides have separate tokenizers and rows"):
        make_trainer(tmp_path, PairStore(tmp_path / "x.h5"), pairs)
