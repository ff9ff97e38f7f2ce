"""Training of dual encoders: against a plain loop, and resumed to the bit."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.dual_encoder import (
    ARCHITECTURES,
    TASKS,
    new_model,
    new_trainer,
    tiny,
    unlike_new,
    write_data,
)

from st_paragram.cli.train import bitext_of_languages
from st_paragram.errors import SettingsError
from st_paragram.families.muse.losses import DualEncoderTasks, ranking_loss
from st_paragram.families.muse.task_rows import TaskBatch, file_rows
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
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
    """All that training changes, and the moments of the optimizer."""
    found = {name: tensor.clone() for name, tensor in trainer.loss.state_dict().items()}
    for number, state in trainer.optimizer.state_dict()["state"].items():
        found |= {
            f"{number}.{name}": torch.as_tensor(value).clone() for name, value in state.items()
        }
    return found


def same(one, two):
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_sides_are_what_the_model_encodes(store, vocabulary, pairs, architecture, tmp_path):
    model = unlike_new(new_model(store, architecture))
    tasks, sides = DualEncoderTasks(model, tiny()).eval(), list(zip(*pairs[:6], strict=True))
    encoded = [vocabulary.encode(list(texts)) for texts in sides]
    for task in TASKS:
        asked = task in ("qa", "response")
        ways = (
            (model.encode_query, model.encode_document) if asked else (model.encode, model.encode)
        )
        with torch.no_grad():
            found = tasks.sides(
                TaskBatch(task, *encoded, None, np.arange(6) % 3 if task == "nli" else None)
            )
        for side, way, texts in zip(found, ways, sides, strict=True):
            np.testing.assert_allclose(side.numpy(), way(list(texts)), atol=1e-6)
    # Answers with and without contexts.
    long, short = " ".join(text for text, _ in pairs[:9]), pairs[3][1]
    (tmp_path / "en.tsv").write_text(
        f"a question\t{long}\nanother\t{short}\t\nthe third\t{short}\t{long}\n"
    )
    batch = file_rows(tmp_path / "en.tsv", "qa", "en", vocabulary, tiny()).batch(np.arange(3))
    with torch.no_grad():
        found = tasks.sides(batch)[1].numpy()
    expected = model.encode_answers([long, short, short], [None, "", long])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_training_is_a_plain_loop(data, tmp_path, architecture):
    """Adam on the loss of the batch that the sampler names, equal texts masked; gradients of heads
    start anew.
    """
    losses_of = {"scale": 7.0, "margin": 0.4, "qa_margin": 0.2, "dropout": 0.0, "clip_norm": 1.0}
    run = tiny(
        architecture, **BALANCED, **losses_of, steps=8, schedule="constant", learning_rate=1e-2
    )
    trainer, plain = (
        new_trainer(data, run, tmp_path / name, logging_steps=1, adam_epsilon=1e-2) for name in "ab"
    )
    assert same(trainer.loss.state_dict(), plain.loss.state_dict())
    trainer.train()
    loss, losses = plain.loss.train(), []
    own = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(own, lr=1e-2, eps=1e-2, weight_decay=0.0)
    seen = set()
    for step in range(8):
        source, rows = plain.sampler.at(step)
        batch = plain.rows[source].batch(rows)
        seen.add(batch.task)
        first, second = loss.sides(batch)
        if batch.task == "nli":
            total = F.cross_entropy(
                plain.model.heads.logits(first, second), torch.from_numpy(batch.labels)
            )
        else:
            texts = [np.split(ids, offsets[1:-1]) for ids, offsets in (batch.first, batch.second)]
            equal = [
                [any(np.array_equal(t[i], t[j]) for t in texts) for j in range(len(rows))]
                for i in range(len(rows))
            ]
            translations = batch.task == "translation"
            total = ranking_loss(
                first, second, 7.0, 0.4 if translations else 0.2, torch.tensor(equal), translations
            )
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(own, 1.0)
        optimizer.step()
        losses.append(total.item())
    assert seen == set(TASKS)
    logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    np.testing.assert_allclose(logged, losses, rtol=1e-4, atol=1e-5)
    for name, tensor in trainer.loss.state_dict().items():
        torch.testing.assert_close(tensor, loss.state_dict()[name], atol=1e-5, rtol=0)


def test_a_run_resumes_to_the_bit(data, tmp_path, architecture):
    run = tiny(architecture, **BALANCED, steps=6, dropout=0.3, learning_rate=1e-2, warmup_updates=2)
    straight = new_trainer(data, run, tmp_path / "straight")
    straight.train()
    first = new_trainer(
        data, run, tmp_path / "run", save_strategy="steps", save_steps=3, save_total_limit=None
    )
    first.train()
    resumed = new_trainer(data, run, tmp_path / "other")
    with torch.no_grad():
        for parameter in resumed.loss.parameters():
            parameter.fill_(0.123)
    torch.manual_seed(99)
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-3"))
    assert same(tensors(resumed), tensors(straight)) and same(tensors(first), tensors(straight))
    assert {name for name in tensors(straight) if name.startswith("heads.")} >= {
        "heads.context.weight"
    }


def test_it_begins_near_the_bag_of_a_model(tmp_path, vocabulary, store, architecture, pairs):
    """The network's part is a tenth as long, and in another direction: the cosine with the bag is 1
    / sqrt(1.01).
    """
    averaging = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    load_save.save(averaging, tmp_path / "averaging")
    texts = [text for text, _ in pairs[:30]]
    model = new_model(store, architecture, init=str(tmp_path / "averaging"), gate=0.1)
    cosines = (model.encode(texts) * averaging.encode(texts, normalize_embeddings=True)).sum(1)
    assert cosines.mean() == pytest.approx(1.01**-0.5, abs=2e-3)


def test_languages_of_stores_and_folders(data, tmp_path):
    store = str(data.bitext.path)
    assert bitext_of_languages(["yy"], [store]) == ("xx-yy", [store]) and bitext_of_languages(
        ["de"]
    ) == ("de", [])
    with pytest.raises(
        SettingsError, match="no translations for de, zz, only for xx, yy; prepare them, or leave"
    ):
        bitext_of_languages(["zz", "xx", "de"], [store])
    for name in ("en-de.tsv.xz", "en-es.tsv", "en-es.tsv.gz"):
        (tmp_path / name).write_text("x")
    files = [f"en-es:{tmp_path}/en-es.tsv", f"en-de:{tmp_path}/en-de.tsv.xz", "en-fr:more.tsv"]
    assert bitext_of_languages(["es", "de"], [str(tmp_path), "en-fr:more.tsv"]) == ("de-es", files)
