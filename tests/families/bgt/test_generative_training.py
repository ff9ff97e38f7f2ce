"""Training of generative models: against a plain loop, resumed to the bit, learnt by heart; what is
refused.
"""

import logging

import numpy as np
import pytest
import torch
from sentence_transformers.base.evaluation import BaseEvaluator
from support.data import make_pairs, write_store
from support.generative import SHAPE, batches_of, greedy, new_trainer, tiny

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.errors import SettingsError
from st_paragram.families.bgt import training
from st_paragram.families.bgt.settings import SIDES, other
from st_paragram.families.bgt.translation_elbo import annealed
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def small(tmp_path_factory, pairs, vocabulary):
    """60 pairs, which make 4 batches of 200 tokens."""
    return write_store(tmp_path_factory.mktemp("small") / "x.h5", pairs[:60], vocabulary)


def weights(trainer):
    return {name: tensor.clone() for name, tensor in trainer.loss.state_dict().items()}


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_training_is_a_plain_loop(tmp_path, small, accumulate):
    """Adam on the mean over an update's pairs; the last update of an epoch has what is left."""
    run = tiny(
        accumulate=accumulate,
        epochs=2.0,
        anneal_updates=10,
        clip_norm=5.0,
        schedule="linear",
        label_smoothing=0.2,
        dropout=0.0,
    )
    trainer, plain = (
        new_trainer(small, run, tmp_path / name, logging_steps=1, adam_epsilon=1e-3)
        for name in "ab"
    )
    assert same(trainer.loss.state_dict(), plain.loss.state_dict())
    batches = len(trainer.batches)
    updates = 2 * -(-batches // accumulate)
    trainer.train()
    assert trainer.state.global_step == updates and trainer.rate.pairs == 2 * len(small)

    loss, losses = plain.loss.train(), []
    own = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(own, betas=(0.9, 0.98), eps=1e-3)
    for step in range(updates):
        epoch, update = divmod(step, updates // 2)
        first = epoch * batches
        numbers = range(
            first + update * accumulate, min(first + (update + 1) * accumulate, first + batches)
        )
        rows = [plain.batches.at(number) for number in numbers]
        optimizer.zero_grad()
        total = 0.0
        for number, row in zip(numbers, rows, strict=True):
            sides = {
                side: SentenceBatch.of(
                    *small.take(side, row), loss.generator.special, run.max_length
                )
                for side in SIDES
            }
            terms = loss(
                sides, "ab"[number % 2], plain._noise(len(row), number), annealed(step, 10)
            )
            total = total + terms.loss / sum(map(len, rows))
        total.backward()
        torch.nn.utils.clip_grad_norm_(own, 5.0)
        rate = run.learning_rate * (
            step / 4 if step < 4 else max(0.0, (updates - step) / max(1, updates - 4))
        )
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        losses.append(total.item())
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    np.testing.assert_allclose(logged, losses, rtol=1e-4)
    for name, tensor in trainer.loss.state_dict().items():
        torch.testing.assert_close(tensor, loss.state_dict()[name], atol=1e-5, rtol=0)


def trained_rows(trainer):
    return sorted(
        row for number in range(len(trainer.batches)) for row in trainer.batches.at(number).tolist()
    )


def test_pairs_with_a_short_or_a_long_sentence_are_left_out(tmp_path, small, caplog):
    counts = np.stack([small.lengths(side, 0, len(small)) for side in SIDES])
    low, high = int(counts.min()) + 1, int(counts.max()) - 1
    kept = [
        row
        for row in range(len(small))
        if counts[:, row].min() >= low and counts[:, row].max() <= high
    ]
    assert 10 < len(kept) < len(small)
    with caplog.at_level(logging.INFO, logger="st_paragram"):
        trainer = new_trainer(small, tiny(min_pieces=low, max_pieces=high), tmp_path)
    assert trained_rows(trainer) == kept
    lost = (
        f"{len(small) - len(kept)} of 60 pairs have a sentence of fewer than {low} tokens or more"
        f" than {high} and"
    )
    assert lost in caplog.text


class Nothing(BaseEvaluator):
    """Finds nothing, so that the loss of held-out pairs alone is seen."""

    def __call__(self, model, *args, **kwargs):
        return {}


def test_the_loss_of_held_out_pairs_is_the_bound_by_hand_and_chooses_the_checkpoint(
    tmp_path, small, monkeypatch
):
    """The second evaluation is made the best: what is saved is what the model and its decoders were
    then.
    """
    settings = tiny(held_out=10, epochs=3.0, learning_rate=0.02, warmup_updates=0)
    trainer = training.trainer(
        training.new_model(small, settings), small, settings, tmp_path, Nothing()
    )
    assert trainer._held_out.tolist() == [57, 58, 59] and trained_rows(trainer) == list(range(57))
    found = trainer.held_out_loss()
    assert found == trainer.held_out_loss()
    rows = sorted(
        [57, 58, 59], key=lambda row: max(small.lengths(side, row, row + 1)[0] for side in SIDES)
    )
    trainer.loss.eval().smoothing = 0.0
    expected = (
        trainer.loss(trainer._sides(np.array(rows)), "a", trainer._noise(3, -1)).loss.item() / 3
    )
    assert found == pytest.approx(expected, rel=1e-5)
    losses, states = iter([5.0, 3.0, 4.0]), []

    def loss():
        states.append(weights(trainer))
        return next(losses)

    monkeypatch.setattr(trainer, "held_out_loss", loss)
    trainer.train()
    assert same(trainer.loss.state_dict(), states[1]) and not same(states[1], states[2])


def test_a_run_resumes_to_the_bit(tmp_path, small):
    run = tiny(
        accumulate=2,
        batch_tokens=150,
        epochs=4.0,
        dropout=0.3,
        candidates=30,
        clip_norm=5.0,
        anneal_updates=20,
    )
    straight = new_trainer(
        small, run, tmp_path / "run", save_strategy="steps", save_steps=4, save_total_limit=None
    )
    straight.train()
    assert straight.state.global_step > 6
    resumed = new_trainer(small, run, tmp_path / "other")
    torch.nn.init.constant_(resumed.model[2].linear.weight, 0.123)
    torch.manual_seed(99)
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-4"))
    assert same(weights(resumed), weights(straight))


@pytest.mark.slow
def test_pairs_learnt_by_heart_are_written_again_and_translated(tmp_path, vocabulary):
    """From the meaning of either side; and the language variable of another sentence changes the
    text.
    """
    pairs = make_pairs(16, seed=4, repeat_every=1000)
    store = write_store(tmp_path / "x.h5", pairs, vocabulary)
    run = tiny(
        dim=32,
        ffn_dim=32,
        latent_dim=24,
        latent="mean",
        anneal_updates=10**7,
        label_smoothing=0.0,
        dropout=0.0,
        learning_rate=1e-2,
        schedule="cosine",
        warmup_updates=20,
        epochs=60.0,
        batch_tokens=250,
    )
    trainer = new_trainer(store, run, tmp_path / "run")
    trainer.train()
    generator, batches = trainer.loss.generator.eval(), batches_of(vocabulary, pairs)

    def same_as(decoder, latents, side):
        batch, written = (
            batches[side],
            greedy(decoder, latents, generator.special, SHAPE.max_length - 2),
        )
        sentences = [
            row[mask][:-1].tolist() for row, mask in zip(batch.ids, batch.mask, strict=True)
        ]
        return sum(one == other for one, other in zip(written, sentences, strict=True))

    with torch.no_grad():
        meanings = {
            side: generator.semantic(batch.ids, batch.mask).mean for side, batch in batches.items()
        }
        for side in SIDES:
            language = generator.languages[side](batches[side].ids, batches[side].mask).mean
            decoder = generator.generators[side]
            assert all(
                same_as(decoder, torch.cat([language, meanings[of]], 1), side) >= 15 for of in SIDES
            )
            assert same_as(decoder, torch.cat([language.roll(1, 0), meanings[side]], 1), side) <= 8
            assert same_as(generator.translators[side], meanings[other(side)], side) >= 15


# Models to begin with, and what is refused.


def test_a_model_to_begin_with(tmp_path, vocabulary, small):
    averaging = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    load_save.save(averaging, tmp_path / "averaging")
    model = training.new_model(small, tiny(init=str(tmp_path / "averaging")))
    table, rows = model[0].model.embed_tokens.weight, averaging[0].embedding.weight
    known = [row for row in range(len(vocabulary)) if vocabulary.piece(row)]
    torch.testing.assert_close(table[known] * 4, rows[known])
    assert not table[vocabulary.processor.bos_id()].any()
    with pytest.raises(SettingsError, match=r"dim is 8, but .* has 16 dimensions"):
        training.new_model(small, tiny(dim=8, init=str(tmp_path / "averaging")))


def test_pairs_of_one_language_or_vocabularies_of_each_are_refused(tmp_path, vocabulary):
    both = BilingualTokenizer.of(vocabulary, vocabulary, Sharing.DISJOINT, ("en", "xx"))
    for second, first, message in (
        ("en", vocabulary, "pairs of one language; a generative model needs two"),
        ("xx", both, r"a vocabulary per side|sentencepiece ids, not bilingual ids"),
    ):
        tokenizers = first if first is vocabulary else (both, both.in_language("xx"))
        with PairStoreWriter(
            tmp_path / f"{second}.h5", ("en", second), tokenizers, 100, {}
        ) as writer:
            writer.append(*first.encode(["ba"]), *first.encode(["ce"]))
        with pytest.raises(SettingsError, match=message):
            training.new_model(PairStore(tmp_path / f"{second}.h5"), tiny())
