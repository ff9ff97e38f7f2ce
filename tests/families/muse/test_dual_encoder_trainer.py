"""Training of dual encoders: against a plain loop, resumed to the bit, gradients of tasks; what is refused."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.data import make_pairs
from support.dual_encoder import (
    ARCHITECTURES,
    TASKS,
    Data,
    new_model,
    new_trainer,
    only,
    tiny,
    unlike_new,
    write_bitext,
    write_data,
    write_rows,
)

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse import objective as dual_encoder
from st_paragram.families.muse import training_data
from st_paragram.families.muse.dual_encoder_ranking import ranking_loss
from st_paragram.families.muse.dual_encoder_tasks import DualEncoderTasks, TaskBatch
from st_paragram.families.muse.task_data import TaskRows
from st_paragram.families.muse.tasks.task_stores import TaskStore, build_task_stores
from st_paragram.families.muse.trainer import task_batch
from st_paragram.families.muse.training_data import OtherTasks, bitext_of_languages
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding

pytestmark = pytest.mark.usefixtures("one_thread")

BALANCED = {"translation_share": 0.25, "qa_share": 0.25, "response_share": 0.25, "nli_share": 0.25}


@pytest.fixture(scope="module")
def data(tmp_path_factory, vocabulary):
    return write_data(tmp_path_factory.mktemp("tasks"), vocabulary, rows=40, few=3)


@pytest.fixture(params=ARCHITECTURES)
def architecture(request):
    return request.param


def tensors(trainer):
    """All that training changes, and the moments of the optimiser."""
    found = {name: tensor.clone() for name, tensor in trainer.loss.state_dict().items()}
    for number, state in trainer.plain_optimizer().state_dict()["state"].items():
        found |= {f"{number}.{name}": torch.as_tensor(value).clone() for name, value in state.items()}
    return found


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def logged(trainer, name="loss"):
    return [entry[name] for entry in trainer.state.log_history if name in entry]


# The losses of tasks.


def batch_of(vocabulary, task, pairs, contexts=None):
    sides = [vocabulary.encode(list(texts)) for texts in zip(*pairs, strict=True)]
    labels = torch.arange(len(pairs)) % 3 if task == "nli" else None
    return TaskBatch(task, *sides, None if contexts is None else vocabulary.encode(contexts), labels=labels)


def loss_of(tasks, batch):
    first, second = tasks.sides(batch)
    if batch.labels is not None:
        return tasks.inference(first, second, batch.labels)[0]
    none = torch.zeros(len(first), len(first), dtype=torch.bool)
    return tasks.ranking(batch.task, first, second, none, none)


def test_sides_are_what_the_model_encodes(store, vocabulary, pairs, architecture):
    model = unlike_new(new_model(store, architecture))
    tasks = DualEncoderTasks(model.vectors, model.heads).eval()
    few = pairs[:6]
    first, second = ([pair[side] for pair in few] for side in (0, 1))
    contexts = [f"{pairs[9][1]} {text}" for text in second]
    ways = {
        "translation": (model.encode, model.encode),
        "nli": (model.encode, model.encode),
        "qa": (model.encode_query, model.encode_document),
        "response": (model.encode_query, model.encode_document),
    }
    with torch.no_grad():
        for task, both in ways.items():
            for found, way, texts in zip(
                tasks.sides(batch_of(vocabulary, task, few)), both, (first, second), strict=True
            ):
                np.testing.assert_allclose(found.numpy(), way(texts), atol=1e-6)
        answers = tasks.sides(batch_of(vocabulary, "qa", few, contexts))[1]
    np.testing.assert_allclose(answers.numpy(), model.encode_answers(second, contexts), atol=1e-6)


def test_an_answer_without_a_context_is_trained_as_it_is_encoded(store, vocabulary, pairs, architecture, tmp_path):
    """Stores have the answer again where there is no context, however long it is."""
    long, short = " ".join(text for _, text in pairs[:9]), pairs[3][1]
    (tmp_path / "en.tsv").write_text(f"a question\t{long}\nanother\t{short}\t\nthe third\t{short}\t{long}\n")
    model = unlike_new(new_model(store, architecture))
    (made,) = build_task_stores({"qa": tmp_path}, vocabulary, tmp_path / "stores", max_length=30, context_length=40)
    batch = task_batch(TaskRows("qa", "en", made.store, made.contexts), np.arange(3), np.arange(3), torch.device("cpu"))
    assert batch.without.tolist() == [True, True, False]
    with torch.no_grad():
        found = DualEncoderTasks(model.vectors, model.heads).eval().sides(batch)[1]
    expected = model.encode_answers([long, short, short], [None, "", long])
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("contexts", [False, True])
def test_what_each_task_teaches(store, vocabulary, pairs, architecture, task, contexts):
    """Every task the encoder; questions and responses the towers; contexts their map; inference the classifier."""
    if contexts and task != "qa":
        pytest.skip("only answers have contexts")
    model = new_model(store, architecture)
    tasks = DualEncoderTasks(model.vectors, model.heads)
    few = pairs[:6]
    around = [f"{pairs[20 + i][1]} {answer}" for i, (_, answer) in enumerate(few)] if contexts else None
    loss_of(tasks, batch_of(vocabulary, task, few, around)).backward()
    taught = {
        name for name, parameter in tasks.named_parameters() if parameter.grad is not None and parameter.grad.any()
    }
    parts = {
        "towers": [name for name in taught if ".query." in name or ".document." in name],
        "context": [name for name in taught if name.startswith("heads.context")],
        "classifier": [name for name in taught if name.startswith("heads.classifier")],
    }
    asked = task in ("qa", "response")
    assert len(parts["towers"]) == (8 if asked else 0)
    assert bool(parts["context"]) == contexts
    assert len(parts["classifier"]) == (4 if task == "nli" else 0)
    encoder = {name for name, _ in tasks.named_parameters() if not name.startswith("heads.") and "routes" not in name}
    encoder = {name for name in encoder if ".query." not in name and ".document." not in name}
    assert encoder and encoder <= taught, encoder - taught


def test_the_margins_of_tasks_and_their_directions(store):
    model = new_model(store)
    tasks = DualEncoderTasks(model.vectors, model.heads, scale=7.0, margin=0.4, qa_margin=0.2)
    x, y = (F.normalize(torch.randn(5, 16), dim=1) for _ in range(2))
    equal = torch.zeros(5, 5, dtype=torch.bool)
    equal[0, 1] = True
    assert torch.equal(tasks.ranking("translation", x, y, equal, equal.T), ranking_loss(x, y, 7.0, 0.4, equal))
    for task in ("qa", "response"):
        assert torch.equal(
            tasks.ranking(task, x, y, equal, equal.T), ranking_loss(x, y, 7.0, 0.2, equal, both_directions=False)
        )


def test_inference_by_hand(store):
    model = unlike_new(new_model(store))
    tasks = DualEncoderTasks(model.vectors, model.heads)
    x, y = (F.normalize(torch.randn(5, 16), dim=1) for _ in range(2))
    labels = torch.tensor([0, 2, 1, 1, 0])
    loss, right = tasks.inference(x, y, labels)
    logits = model.heads.logits(x, y)
    assert loss.item() == pytest.approx(
        sum(-logits[i].log_softmax(0)[k].item() for i, k in enumerate(labels)), rel=1e-5
    )
    assert right.item() == sum(int(logits[i].argmax()) == k for i, k in enumerate(labels.tolist()))


# Against a plain loop.


def test_training_is_a_plain_loop(data, tmp_path, architecture):
    """Adam on the loss of the batch that the sampler names, equal texts masked; gradients of heads start anew."""
    run = tiny(architecture, **BALANCED, steps=8, dropout=0.0, schedule="constant", learning_rate=1e-2, clip_norm=1.0)
    trainer, plain = (new_trainer(data, run, tmp_path / name, logging_steps=1, adam_epsilon=1e-2) for name in "ab")
    assert same(trainer.loss.state_dict(), plain.loss.state_dict())
    trainer.train()
    loss, losses = plain.loss.train(), []
    own = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=1e-2, eps=1e-2, weight_decay=0.0)
    seen = set()
    for step in range(8):
        source, rows = plain._sampler.at(step)
        of = plain._rows[source]
        seen.add(of.task)
        texts = [list(of.store.texts(side, of.of_store(rows))) for side in "ab"]
        labels = torch.from_numpy(of.store.labels(rows).astype(np.int64)) if of.task == "nli" else None
        contexts = None if of.contexts is None else of.contexts.take("b", rows)
        without = None
        if of.contexts is not None:
            around = zip(of.contexts.texts("b", rows), texts[1], strict=True)
            without = torch.tensor([context == answer for context, answer in around])
        batch = TaskBatch(of.task, of.take("a", rows), of.take("b", rows), contexts, without, labels)
        first, second = loss.sides(batch)
        if labels is not None:
            total = loss.inference(first, second, labels)[0] / len(rows)
        else:
            equal = torch.tensor(
                [[any(t[i] == t[j] for t in texts) for j in range(len(rows))] for i in range(len(rows))]
            )
            total = loss.ranking(of.task, first, second, equal, equal)
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        losses.append(total.item())
    assert seen == set(TASKS)
    np.testing.assert_allclose(logged(trainer), losses, rtol=1e-4, atol=1e-5)
    for name, tensor in trainer.loss.state_dict().items():
        torch.testing.assert_close(tensor, loss.state_dict()[name], atol=1e-5, rtol=0)


def test_what_is_logged(data, tmp_path):
    trainer = new_trainer(data, tiny(**BALANCED, steps=8), tmp_path, logging_steps=4)
    trainer.train()
    entries = [entry for entry in trainer.state.log_history if "loss" in entry]
    drawn = [trainer._rows[trainer._sampler.at(step)[0]].task for step in range(8)]
    assert [entry["step"] for entry in entries] == [1, 4, 8]
    for entry, tasks in zip(entries, (drawn[:1], drawn[1:4], drawn[4:]), strict=True):
        assert {task for task in TASKS if task in entry} == set(tasks)
        assert entry["pairs_per_second"] > 0
        assert ("nli_accuracy" in entry) == ("nli" in tasks)
        if "nli" in tasks:
            assert 0 <= entry["nli_accuracy"] <= 1
    assert dual_encoder.HAS_HISTORY and trainer.pairs_trained == sum(
        len(trainer._sampler.at(step)[1]) for step in range(8)
    )


@pytest.mark.parametrize("task", TASKS)
def test_each_task_is_learnt(data, tmp_path, task):
    run = tiny(**only(task), steps=40, learning_rate=1e-2, dropout=0.0, margin=0.0, similar_batches=1)
    trainer = new_trainer(data, run, tmp_path, logging_steps=1)
    trainer.train()
    losses = logged(trainer)
    assert np.mean(losses[-10:]) < 0.8 * np.mean(losses[:10])
    made = dual_encoder.trained(trainer)
    assert made.values.tasks == (task,) and made.has_classifier == (task == "nli")


@pytest.fixture(scope="module")
def taught(data, tmp_path_factory, store):
    """Models that were trained on all tasks for a few steps."""
    made = {}
    for name in ARCHITECTURES:
        run = tiny(name, **BALANCED, steps=8, learning_rate=1e-2, schedule="constant")
        trainer = new_trainer(data, run, tmp_path_factory.mktemp("taught"))
        trainer.train()
        made[name] = dual_encoder.trained(trainer)
    return made


def test_training_tells_the_towers_apart(taught, architecture, pairs):
    model, texts = taught[architecture], [text for text, _ in pairs[:20]]
    for way in (model.encode_query, model.encode_document):
        assert np.abs(way(texts) - model.encode(texts)).max() > 1e-3
    assert np.abs(model.encode_query(texts) - model.encode_document(texts)).max() > 1e-3
    contexts = [text for text, _ in pairs[20:40]]
    assert np.abs(model.encode_answers(texts, contexts) - model.encode_document(texts)).max() > 1e-4
    assert model.values.tasks == ("nli", "qa", "response", "translation")
    assert np.allclose(np.linalg.norm(model.encode(["", "\u2603", *texts]), axis=1), 1, atol=1e-6)


def test_a_trained_model_is_saved_to_the_bit(taught, architecture, pairs, tmp_path):
    texts = [text for text, _ in pairs[:20]]
    read = model_directory.load(model_directory.save(taught[architecture], tmp_path / "x"), device="cpu")
    np.testing.assert_array_equal(
        read.encode_answers(texts, texts[::-1]), taught[architecture].encode_answers(texts, texts[::-1])
    )
    np.testing.assert_array_equal(read.classify(texts, texts[::-1]), taught[architecture].classify(texts, texts[::-1]))


# Resuming.


def test_a_run_resumes_to_the_bit(data, tmp_path, architecture):
    run = tiny(architecture, **BALANCED, steps=6, dropout=0.3, learning_rate=1e-2, warmup_updates=2)
    straight = new_trainer(data, run, tmp_path / "straight")
    straight.train()
    first = new_trainer(data, run, tmp_path / "run", save_strategy="steps", save_steps=3, save_total_limit=None)
    first.train()
    resumed = new_trainer(data, run, tmp_path / "other")
    with torch.no_grad():
        for parameter in resumed.loss.parameters():
            parameter.fill_(0.123)
    torch.manual_seed(99)
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-3"))
    assert same(tensors(resumed), tensors(straight)) and same(tensors(first), tensors(straight))
    assert resumed.pairs_trained < straight.pairs_trained
    assert {name for name in tensors(straight) if name.startswith("heads.")} >= {"heads.context.weight"}


def test_a_run_on_other_contexts_is_not_resumed(data, tmp_path, vocabulary):
    run = tiny(**BALANCED, steps=2)
    trainer = new_trainer(data, run, tmp_path / "run", save_strategy="steps", save_steps=1)
    trainer.train()
    qa, *others = data.tasks.stores
    rows = list(zip(make_pairs(40, seed=5), make_pairs(40, seed=77), strict=True))
    contexts = write_rows(tmp_path / "x.h5", vocabulary, [(answer, context) for (_, answer), (context, _) in rows])
    changed = Data(data.bitext, OtherTasks([TaskStore("qa", "en", qa.store, contexts), *others]))
    with pytest.raises(SettingsError, match=r"of a run on other data than .*; resume with the same data") as caught:
        new_trainer(changed, run, tmp_path / "run").train(resume_from_checkpoint=True)
    assert "\n" not in str(caught.value)


# New models.


@pytest.mark.parametrize("gate", [0.1, 0.5])
def test_the_network_begins_as_long_as_the_gate_says(store, architecture, gate):
    model = new_model(store, architecture, gate=gate)
    rows = np.arange(50)
    bag, network = dual_encoder._weights(model)
    kept, lengths = (bag.item(), network.item()), []
    with torch.no_grad():
        for values in ((kept[0], 0.0), (0.0, kept[1])):
            bag.fill_(values[0])
            network.fill_(values[1])
            vectors = model.vectors.raw([store.take("a", rows)])[0]
            scale = kept[0] / values[0] if values[0] else 1.0
            lengths.append(
                scale * vectors.norm(dim=1).mean().item() * (sum(values) if architecture == "transformer" else 1)
            )
    assert lengths[1] / lengths[0] == pytest.approx(gate, rel=0.1)


def test_it_begins_near_the_bag_of_a_model(tmp_path, vocabulary, store, architecture, pairs):
    averaging = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    model_directory.save(averaging, tmp_path / "averaging")
    texts = [text for text, _ in pairs[:30]]
    model = new_model(store, architecture, init=str(tmp_path / "averaging"), gate=0.01)
    expected = F.normalize(averaging.encode(texts, convert_to_tensor=True), dim=1).numpy()
    np.testing.assert_allclose((model.encode(texts) * expected).sum(1), 1, atol=2e-3)


def refused(message, make, error=SettingsError):
    with pytest.raises(error, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_model_to_begin_with_that_does_not_fit(tmp_path, vocabulary, store):
    averaging = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")
    model_directory.save(averaging, tmp_path / "averaging")
    run = tiny(init=str(tmp_path / "averaging"))
    refused("dim is 16, but .* has 12 components", lambda: dual_encoder.new_model(store, run))
    refused("nothing", lambda: dual_encoder.new_model(store, tiny(init="nothing")), ModelDirectoryError)


def test_a_vocabulary_for_each_side_is_refused(tmp_path, vocabulary):
    both = BilingualTokenizer.of(vocabulary, vocabulary, Sharing.DISJOINT, ("en", "xx"))
    sides = (both, both.in_language("xx"))
    with PairStoreWriter(tmp_path / "x.h5", ("en", "xx"), sides, 100, {}) as writer:
        writer.append(*sides[0].encode(["ba"]), *sides[1].encode(["ce"]))
    message = (
        "separate vocabularies for the two sides; prepare the text with a joint vocabulary|sentencepiece ids, "
        "not bilingual ids"
    )
    refused(message, lambda: dual_encoder.new_model(PairStore(tmp_path / "x.h5"), tiny()))


def test_a_store_of_another_vocabulary_is_refused(tmp_path, data, pairs, architecture):
    theirs = SentencePieceTokenizer(train_vocabulary((text for pair in make_pairs(300, seed=9) for text in pair), 120))
    other = TaskStore("response", "en", write_rows(tmp_path / "x.h5", theirs, pairs[:20]))
    mixed = Data(data.bitext, OtherTasks([other]))
    told = "x.h5: of another vocabulary than the model's"
    refused(told, lambda: new_trainer(mixed, tiny(architecture), tmp_path / "run"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"architecture": "transformer", "heads": 3}, "dim is 16 and heads 3; dim must be a multiple of heads"),
        ({"layers": 3}, "layers are 3; a cnn has 1 or 2"),
        ({"max_length": 3}, "max_length is 3"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"dropout": 1.0}, "dropout is 1"),
        ({"gate": 0.0}, "gate is 0"),
        ({"margin": -0.1}, "margin is -0.1"),
        ({"language_power": 1.5}, "language_power is 1.5"),
        ({"architecture": "rnn"}, "architecture is 'rnn'"),
        (dict.fromkeys(BALANCED, 0.0), "the shares of all tasks are 0; give one of them a share"),
    ],
)
def test_settings_that_are_refused(changes, message):
    refused(message, lambda: tiny(**({"architecture": "cnn"} | changes)))


# Data.


def test_a_store_of_several_languages_names_them(data):
    assert bitext_of_languages(["yy"], [str(data.bitext.path)]) == ("xx-yy", [str(data.bitext.path)])
    refused(
        "no translations of de, zz, only of xx, yy; prepare them, or leave the language out of --langs",
        lambda: bitext_of_languages(["zz", "xx", "de"], [str(data.bitext.path)]),
    )


def test_folders_of_translations(tmp_path):
    for name in ("en-de.tsv.xz", "en-es.tsv", "en-es.tsv.gz"):
        (tmp_path / name).write_text("x")
    assert bitext_of_languages(["es", "de"], [str(tmp_path), "en-fr:more.tsv"]) == (
        "de-es",
        [f"en-es:{tmp_path}/en-es.tsv", f"en-de:{tmp_path}/en-de.tsv.xz", "en-fr:more.tsv"],
    )
    assert bitext_of_languages(["de"]) == ("de", [])
    refused(
        "no translations of fi, looked for en-fi.tsv, .gz and .xz; add them",
        lambda: bitext_of_languages(["es", "fi"], [str(tmp_path)]),
        training_data.TextError,
    )


def test_other_tasks_are_in_the_vocabulary_of_the_translations(tmp_path, vocabulary):
    bitext = write_bitext(tmp_path / "x.h5", vocabulary, make_pairs(30), ("es", "de"))
    qa, nli = tmp_path / "qa", tmp_path / "nli"
    for folder, row in ((qa, "ba ce?\tdi fo\tgu ha di fo\n"), (nli, "neutral\tba ce\tdi\n")):
        folder.mkdir()
        for language in ("en", "es", "de", "fi"):
            (folder / f"{language}.tsv").write_text(row * 3)
    folders = {"qa": qa, "nli": nli}
    found = training_data.other_tasks(folders, bitext, tiny(nli_share=0.0), ("es",))
    assert [(each.task, each.language, len(each.store)) for each in found.stores] == [("qa", "en", 3), ("qa", "es", 3)]
    assert found.languages == ("es",) and found.stores[0].store.tokenizer().shares_rows(vocabulary)
    found = training_data.other_tasks(folders, bitext, tiny(), ())
    assert {each.language for each in found.stores} == {"en", "es", "de"} and len(found.stores) == 6
    new_trainer(Data(bitext, found), tiny(**BALANCED, steps=2), tmp_path / "run").train()


def test_one_language_is_trained_on_alone(tmp_path, vocabulary):
    bitext = write_bitext(tmp_path / "x.h5", vocabulary, make_pairs(30))
    trainer = new_trainer(Data(bitext, OtherTasks((), ("yy",))), tiny(steps=2), tmp_path / "run")
    assert [each.name for each in trainer._rows] == ["translation yy"] and len(trainer._rows[0]) == 10
    trainer.train()


def test_a_copy_has_heads_of_its_own(store):
    model = new_model(store)
    other = copy.deepcopy(model)
    other.heads.context.weight.data += 1
    assert not model.heads.context.weight.any()
