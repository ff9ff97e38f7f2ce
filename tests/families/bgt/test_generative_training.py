"""Training of generative models: against a plain loop, resumed to the bit, learnt by heart; what is refused."""

import logging

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers.base.evaluation import BaseEvaluator
from support.data import make_pairs, write_store
from support.generative import SHAPE, batches_of, greedy, new_trainer, tiny

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.bgt import objective as translation_vae
from st_paragram.families.bgt.directory import GenerativeEncoder
from st_paragram.families.bgt.generative_objective import OBJECTIVES, SIDES, other
from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.families.bgt.translation_elbo import annealed
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentence_batch import SentenceBatch
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def small(tmp_path_factory, pairs, vocabulary):
    """60 pairs, which make 4 batches of 200 tokens."""
    return write_store(tmp_path_factory.mktemp("small") / "x.h5", pairs[:60], vocabulary)


def tensors(trainer):
    """All that training changes, and the moments of the optimiser."""
    found = {name: tensor.clone() for name, tensor in trainer.loss.state_dict().items()}
    for number, state in trainer.plain_optimizer().state_dict()["state"].items():
        found |= {f"{number}.{name}": torch.as_tensor(value).clone() for name, value in state.items()}
    return found


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def of_step(trainer, values):
    return [entry[values] for entry in trainer.state.log_history if values in entry]


# Against a plain loop.


@pytest.mark.parametrize("accumulate", [1, 3])
def test_training_is_a_plain_loop(tmp_path, small, accumulate):
    """Adam on the mean over the pairs of an update; the last update of an epoch has what is left."""
    run = tiny(
        accumulate=accumulate,
        epochs=2.0,
        anneal_updates=10,
        clip_norm=5.0,
        schedule="linear",
        label_smoothing=0.2,
        dropout=0.0,
    )
    trainer, plain = (new_trainer(small, run, tmp_path / name, logging_steps=1, adam_epsilon=1e-3) for name in "ab")
    assert same(trainer.loss.state_dict(), plain.loss.state_dict())
    batches = len(trainer.batches)
    updates = 2 * -(-batches // accumulate)
    trainer.train()
    assert trainer.state.global_step == updates and trainer.pairs_trained == 2 * len(small)

    loss, losses = plain.loss.train(), []
    own = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    optimizer, drawn = torch.optim.Adam(own, betas=(0.9, 0.98), eps=1e-3), noises(trainer)
    for step in range(updates):
        epoch, update = divmod(step, updates // 2)
        first = epoch * batches
        numbers = range(first + update * accumulate, min(first + (update + 1) * accumulate, first + batches))
        rows = [plain.batches.at(number) for number in numbers]
        optimizer.zero_grad()
        total = 0.0
        for number, row in zip(numbers, rows, strict=True):
            sides = {
                side: SentenceBatch.of(*small.take(side, row), loss.generator.special, run.max_length) for side in SIDES
            }
            terms = loss(sides, "ab"[number % 2], drawn(number, len(row)), annealed(step, 10))
            total = total + terms.loss / sum(map(len, rows))
        total.backward()
        torch.nn.utils.clip_grad_norm_(own, 5.0)
        rate = run.learning_rate * (step / 4 if step < 4 else max(0.0, (updates - step) / max(1, updates - 4)))
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        losses.append(total.item())
    np.testing.assert_allclose(of_step(trainer, "loss"), losses, rtol=1e-4)
    for name, tensor in trainer.loss.state_dict().items():
        torch.testing.assert_close(tensor, loss.state_dict()[name], atol=1e-5, rtol=0)


def noises(trainer):
    """The noise of a batch, as the trainer draws it: of the seed and the number of the batch."""
    seen = {}
    forward = trainer.loss.forward

    def noted(batches, inferring, noise, annealing):
        seen[len(seen)] = noise
        return forward(batches, inferring, noise, annealing)

    trainer.loss.forward = noted
    for number in range(2 * len(trainer.batches)):
        rows = trainer.batches.at(number)
        trainer._backward(number, rows, len(rows))
    trainer.loss.forward = forward
    assert len({noise.sum().item() for noise in seen.values()}) == len(seen)
    return lambda number, rows: seen[number][:rows]


def test_what_is_logged(tmp_path, small):
    trainer = new_trainer(small, tiny(epochs=2.0, anneal_updates=4), tmp_path, logging_steps=3)
    trainer.train()
    entries = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert len(entries) == 1 + trainer.state.global_step // 3  # the first update, too
    names = ("kl_semantic", "kl_a", "kl_b", "reconstruction", "translation", "active_units", "pieces_per_second")
    for entry in entries:
        assert all(np.isfinite(entry[name]) for name in names)
        assert 0 <= entry["active_units"] <= trainer.loss.generator.shape.latent_dim
        assert entry["loss"] > entry["reconstruction"] > 0
    assert translation_vae.HAS_HISTORY


def test_parts_that_are_logged_make_the_loss(tmp_path, small):
    """Also over several updates of batches of different sizes, with smoothing, and with KL terms of partial weight."""
    trainer = new_trainer(small, tiny(anneal_updates=2, epochs=2.0), tmp_path, logging_steps=3)
    trainer.train()
    entries = [entry for entry in trainer.state.log_history if "loss" in entry]
    for entry in entries:
        parts = ("reconstruction", "translation", "smoothing", "divergence")
        assert entry["loss"] == pytest.approx(sum(entry[name] for name in parts), rel=1e-5)
    assert entries[0]["divergence"] == 0 < entries[0]["kl_semantic"]
    kl = sum(entries[-1][name] for name in ("kl_semantic", "kl_a", "kl_b"))
    assert entries[-1]["divergence"] == pytest.approx(kl, rel=1e-5)  # annealed by then


def held_out(store, folder, **changes):
    settings = tiny(held_out=10, epochs=3.0, learning_rate=0.02, warmup_updates=0, **changes)
    torch.manual_seed(settings.seed)
    model = translation_vae.new_model(store, settings)
    return translation_vae.trainer(model, store, settings, folder, Nothing())


class Nothing(BaseEvaluator):
    """Finds nothing, so that the loss of held-out pairs alone is seen."""

    def __call__(self, model, *args, **kwargs):
        return {}


def test_the_loss_of_held_out_pairs_is_the_bound_by_hand(tmp_path, small):
    trainer = held_out(small, tmp_path)
    rows = np.arange(len(small) - min(10, len(small) // 20), len(small))
    assert trainer._held_out.tolist() == rows.tolist()
    trained = {row for number in range(len(trainer.batches)) for row in trainer.batches.at(number)}
    assert trained == set(range(len(small))) - set(rows.tolist())
    assert trainer.held_out_loss() == trainer.held_out_loss()
    seen, forward = [], trainer.loss.forward

    def noted(batches, inferring, noise, annealing=1.0):
        seen.append((batches, inferring, noise))
        assert annealing == 1.0 and not trainer.loss.training
        return forward(batches, inferring, noise, annealing)

    trainer.loss.forward = noted
    found = trainer.held_out_loss()
    trainer.loss.forward, trainer.loss.smoothing = forward, 0.0
    trainer.loss.eval()
    assert found == pytest.approx(sum(forward(*each).loss.item() for each in seen) / len(rows), rel=1e-5)


def test_the_best_checkpoint_is_the_model(tmp_path, small, monkeypatch):
    """The second evaluation is made the best: what is saved is what the model and its decoders were then."""
    trainer = held_out(small, tmp_path)
    losses, states = iter([5.0, 3.0, 4.0]), []

    def loss():
        states.append({name: tensor.clone() for name, tensor in trainer.loss.state_dict().items()})
        return next(losses)

    monkeypatch.setattr(trainer, "held_out_loss", loss)
    trainer.train()
    found = [entry["eval_held_out_loss"] for entry in trainer.state.log_history if "eval_held_out_loss" in entry]
    assert found == [5.0, 3.0, 4.0]
    for name, tensor in trainer.loss.state_dict().items():
        assert torch.equal(tensor, states[1][name]), name
    assert any(not torch.equal(tensor, states[2][name]) for name, tensor in trainer.loss.state_dict().items())


def test_a_collapse_is_told_once(tmp_path, small, caplog):
    trainer = new_trainer(small, tiny(objective="english-vae", epochs=2.0), tmp_path, logging_steps=1)
    with torch.no_grad():
        trainer.loss.generator.semantic.log_variance.weight.zero_()
        trainer.model[2].linear.weight.zero_()
    with caplog.at_level(logging.WARNING, logger="st_paragram"):
        trainer.train()
    told = [message for message in caplog.messages if "collapses to the prior" in message]
    assert len(told) == 1 and "step 1: the semantic variable holds 0.0" in told[0] and "\n" not in told[0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_each_objective_trains(tmp_path, small, objective):
    trainer = new_trainer(small, tiny(objective=objective, learning_rate=1e-2, epochs=4.0), tmp_path, logging_steps=1)
    trainer.train()
    losses, epoch = of_step(trainer, "loss"), len(trainer.batches)
    assert np.mean(losses[-epoch:]) < 0.9 * np.mean(losses[:epoch])
    made = translation_vae.trained(trainer)
    assert isinstance(made, GenerativeEncoder) and made.languages == ("en", "xx")
    assert made.generator is trainer.loss.generator


# Resuming.


INTERRUPTED = tiny(
    accumulate=2, batch_tokens=150, epochs=4.0, dropout=0.3, candidates=30, clip_norm=5.0, anneal_updates=20
)


@pytest.fixture(scope="module")
def straight(tmp_path_factory, small, one_thread):
    """A run that nothing interrupts."""
    trainer = new_trainer(small, INTERRUPTED, tmp_path_factory.mktemp("straight"))
    trainer.train()
    return trainer


@pytest.mark.parametrize("stop", [1, 4])
def test_a_run_resumes_to_the_bit(tmp_path, small, straight, stop):
    run = INTERRUPTED
    assert straight.state.global_step > stop + 2
    first = new_trainer(small, run, tmp_path / "run", save_strategy="steps", save_steps=stop, save_total_limit=None)
    first.train()
    checkpoint = tmp_path / "run" / f"checkpoint-{stop}"
    resumed = new_trainer(small, run, tmp_path / "other")
    with torch.no_grad():
        for parameter in resumed.loss.parameters():
            parameter.fill_(0.123)
    torch.manual_seed(99)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert same(tensors(resumed), tensors(straight)) and same(tensors(first), tensors(straight))
    assert resumed.pairs_trained < straight.pairs_trained


def test_what_a_checkpoint_holds(tmp_path, small):
    """The semantic encoder stands in it as a pipeline, all else with the loss; each tensor once."""
    trainer = new_trainer(small, tiny(), tmp_path, save_strategy="epoch")
    trainer.train()
    (checkpoint,) = tmp_path.glob("checkpoint-*")
    loss = load_file(checkpoint / "loss.safetensors")
    pipeline_names = {name for name in trainer.loss.state_dict() if name.startswith("generator.semantic.pipeline.")}
    assert {name.removeprefix("pairs.") for name in loss} == trainer.loss.state_dict().keys() - pipeline_names


# Learnt by heart.


@pytest.fixture(scope="module")
def learnt(tmp_path_factory, vocabulary):
    """A model that has seen 16 pairs many times, and these pairs."""
    pairs = make_pairs(16, seed=4, repeat_every=1000)
    store = write_store(tmp_path_factory.mktemp("learnt") / "x.h5", pairs, vocabulary)
    run = tiny(
        dim=32, ffn_dim=32, latent_dim=24, latent="mean", anneal_updates=10**7, label_smoothing=0.0, dropout=0.0,
        learning_rate=1e-2, schedule="cosine", warmup_updates=20, epochs=60.0, batch_tokens=250,
    )  # fmt: skip
    trainer = new_trainer(store, run, tmp_path_factory.mktemp("run"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    trainer.train()
    torch.set_num_threads(threads)
    generator = trainer.loss.generator.eval()
    batches = batches_of(vocabulary, pairs)
    with torch.no_grad():
        meanings = {side: generator.semantic(batch.ids, batch.mask).mean for side, batch in batches.items()}
        languages = {side: generator.languages[side](batch.ids, batch.mask).mean for side, batch in batches.items()}
    return generator, batches, meanings, languages


def sentences(batch):
    return [row[mask][:-1].tolist() for row, mask in zip(batch.ids, batch.mask, strict=True)]


def written(decoder, latents, generator):
    with torch.no_grad():
        return greedy(decoder, latents, generator.special, SHAPE.max_length - 2)


def right(found, batch):
    return sum(one == other for one, other in zip(found, sentences(batch), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("side", "inferring"), [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")])
def test_pairs_learnt_by_heart_are_written_again(learnt, side, inferring):
    generator, batches, meanings, languages = learnt
    latents = torch.cat([languages[side], meanings[inferring]], 1)
    assert right(written(generator.generators[side], latents, generator), batches[side]) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_and_translated(learnt, side):
    generator, batches, meanings, _ = learnt
    found = written(generator.translators[side], meanings[other(side)], generator)
    assert right(found, batches[side]) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
def test_another_sentences_language_changes_the_text(learnt, side):
    generator, batches, meanings, languages = learnt
    swapped = torch.cat([languages[side].roll(1, 0), meanings[side]], 1)
    found = written(generator.generators[side], swapped, generator)
    assert sum(one != other for one, other in zip(found, sentences(batches[side]), strict=True)) >= 8


# Models to begin with, and what is refused.


def test_a_model_to_begin_with(tmp_path, vocabulary, small):
    averaging = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    model_directory.save(averaging, tmp_path / "averaging")
    model = translation_vae.new_model(small, tiny(init=str(tmp_path / "averaging")))
    table, rows = model[0].model.embed_tokens.weight, averaging[0].embedding.weight
    known = [row for row in range(len(vocabulary)) if vocabulary.piece(row)]
    torch.testing.assert_close(table[known] * 4, rows[known])
    assert not table[vocabulary.processor.bos_id()].any()


def refused(message, make, error=SettingsError):
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_model_of_other_components_is_refused(tmp_path, vocabulary, small):
    averaging = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")
    model_directory.save(averaging, tmp_path / "averaging")
    run = tiny(init=str(tmp_path / "averaging"))
    refused("dim is 16, but .* has 12 components", lambda: translation_vae.new_model(small, run))
    refused("nothing", lambda: translation_vae.new_model(small, tiny(init="nothing")), ModelDirectoryError)


def test_a_model_of_another_vocabulary_gives_what_is_the_same(tmp_path, vocabulary, small):
    texts = (text for pair in make_pairs(300, seed=9) for text in pair)
    theirs = SentencePieceTokenizer(train_vocabulary(texts, 120))
    averaging = pipeline(SentencePieceEmbedding(theirs, 16), device="cpu")
    model_directory.save(averaging, tmp_path / "averaging")
    table = translation_vae.new_model(small, tiny(init=str(tmp_path / "averaging")))[0].model.embed_tokens.weight
    known = {theirs.piece(row): row for row in range(len(theirs)) if theirs.piece(row)}
    shared = [row for row in range(len(vocabulary)) if vocabulary.piece(row) in known]
    assert 20 < len(shared) < len(vocabulary)
    for row in shared:
        torch.testing.assert_close(table[row] * 4, averaging[0].embedding.weight[known[vocabulary.piece(row)]])


def written_store(path, vocabulary, languages, tokenizers=None):
    pairs = make_pairs(20)
    first, second = tokenizers or (vocabulary, vocabulary)
    with PairStoreWriter(path, languages, tokenizers or vocabulary, 100, {}) as writer:
        writer.append(*first.encode([a for a, _ in pairs]), *second.encode([b for _, b in pairs]))
    return PairStore(path)


def test_pairs_of_one_language_are_refused(tmp_path, vocabulary):
    store = written_store(tmp_path / "x.h5", vocabulary, ("en", "en"))
    refused("pairs of en alone; a generative model needs two", lambda: translation_vae.new_model(store, tiny()))


def test_a_vocabulary_for_each_side_is_refused(tmp_path, vocabulary, small):
    both = BilingualTokenizer.of(vocabulary, vocabulary, Sharing.DISJOINT, ("en", "xx"))
    store = written_store(tmp_path / "x.h5", vocabulary, ("en", "xx"), (both, both.in_language("xx")))
    message = (
        "separate vocabularies for the two sides; prepare the text with a joint vocabulary|sentencepiece ids, "
        "not bilingual ids"
    )
    refused(message, lambda: translation_vae.new_model(store, tiny()))
    model = translation_vae.new_model(small, tiny())
    refused(message, lambda: translation_vae.trainer(model, store, tiny(), tmp_path / "run"))


def test_a_sentence_longer_than_a_batch_is_refused(tmp_path, small):
    longest = int(max(small.lengths(side, 0, len(small)).max() for side in SIDES)) + 1
    message = f"batch_tokens is {longest - 1}, and a sentence has {longest} pieces with its end; raise batch_tokens"
    refused(message, lambda: new_trainer(small, tiny(batch_tokens=longest - 1), tmp_path))
    assert len(new_trainer(small, tiny(batch_tokens=longest), tmp_path).batches) > 10
    cut = tiny(batch_tokens=longest - 1, max_length=longest - 1)
    new_trainer(small, cut, tmp_path, max_steps=2).train()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": 3}, "dim is 16 and heads 3; dim must be a multiple of heads"),
        ({"dim": 15, "heads": 3}, "dim is 15; sines and cosines"),
        ({"dim": 0}, "dim is 0"),
        ({"max_length": 1}, "max_length is 1"),
        ({"dropout": 1.0}, "dropout is 1"),
        ({"label_smoothing": 1.0}, "label_smoothing is 1"),
        ({"accumulate": 0}, "accumulate is 0"),
        ({"objective": "bgtt"}, "objective is 'bgtt'"),
        ({"latent": "both"}, "latent is 'both'"),
        ({"injection": "word"}, "injection is 'word'"),
        ({"precision": "float16"}, "precision is 'float16'"),
    ],
)
def test_settings_that_are_refused(changes, message):
    refused(message, lambda: tiny(**changes))


def test_defaults_are_the_papers():
    defaults = GenerativeSettings()
    assert (defaults.dim, defaults.latent_dim, defaults.ffn_dim, defaults.heads) == (1024, 1024, 1024, 8)
    assert (defaults.encoder_layers, defaults.decoder_layers, defaults.anneal_updates) == (5, 1, 65536)
    assert (defaults.epochs, defaults.batch_tokens, defaults.latent) == (20, 25000, "sample")
