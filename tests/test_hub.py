"""Models go onto a hub and come back: what is uploaded, what is not, and what every refusal says."""

import shutil

import numpy as np
import pytest
from huggingface_hub import ModelCard, constants
from sentence_transformers import SentenceTransformer
from support.dual_encoder import new_model, unlike_new
from support.generative import new_generator
from support.hub_server import TOKEN, stub_hub

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.encoding.record import Correlation, Score, TrainingRecord
from st_paragram.errors import ModelDirectoryError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.hub import HubError, push
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.card import from_record, render
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation import scores

NAME = "me/p-sp-xx"
MODEL_FILES = {
    "config_sentence_transformers.json",
    "model.safetensors",
    "modules.json",
    "sentencepiece.model",
    "st_paragram.json",
    "tokenizer.json",
}
SCORES = [Score("dev", 9, "after training", Correlation(0.5, 0.25))]
SETTINGS = {"dim": 12, "init": "other/base"}
RECORD = TrainingRecord("p-sp-xx", ("en", "es"), "a text", 3, {}, "none", SETTINGS, 1.0, 3.0, SCORES)


@pytest.fixture(autouse=True)
def hub(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with stub_hub(monkeypatch, tmp_path / "hub-cache") as server:
        yield server


@pytest.fixture(scope="module")
def made(vocabulary, tmp_path_factory):
    model = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu", prompts={"query": "ba "})
    folder = tmp_path_factory.mktemp("made") / "p-sp-xx"
    return model_directory.save(model, folder, card=render(from_record(RECORD)))


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "p-sp-xx")


def card_on(hub, name=NAME):
    return ModelCard(hub.repositories[name].head()["README.md"].decode())


def test_what_was_pushed_is_loaded_by_its_commit_with_either_reader(hub, folder, pairs):
    report = push(folder, NAME)
    assert report.private and set(report.files) == MODEL_FILES | {"README.md"}
    repository = hub.repositories[NAME]
    assert repository.private and repository.messages == ["initial commit", "Upload p-sp-xx"]
    assert set(repository.head()) == MODEL_FILES | {"README.md", ".gitattributes"}
    assert report.commit == repository.branches["main"] and report.commit in report.url

    repository.commit("main", {".gitattributes": b""}, "what comes later is not read")
    texts = [text for pair in pairs[:20] for text in pair]
    ours = st_paragram.load(f"{NAME}@{report.commit}", device="cpu")
    stock = SentenceTransformer(NAME, revision=report.commit, device="cpu", trust_remote_code=False)
    expected = st_paragram.load(folder, device="cpu").encode(texts)
    np.testing.assert_array_equal(ours.encode(texts), expected)
    assert ours.prompts["query"] == "ba "
    theirs = stock.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(theirs, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_the_same_again_makes_no_commit_and_nothing_is_removed(hub, folder):
    first = push(folder, NAME)
    assert push(folder, NAME).commit == first.commit
    files = dict(hub.repositories[NAME].head())
    hub.repositories[NAME].commit("main", files | {"mine.safetensors": b"mine", "LICENSE": b"mine"}, "more")
    (folder / "README.md").write_text((folder / "README.md").read_text() + "More of it.\n")
    push(folder, NAME, message="a word")
    head = hub.repositories[NAME].head()
    assert set(head) == {*files, "mine.safetensors", "LICENSE"} and hub.repositories[NAME].messages[-1] == "a word"
    assert head["README.md"].endswith(b"More of it.\n")


def test_only_the_model_is_uploaded(folder, capsys):
    for name in (".hidden", "notes.txt"):
        (folder / name).write_text("mine")
    (folder / "checkpoint-10").mkdir()
    shutil.copy(folder / "model.safetensors", folder / "checkpoint-10")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert set(push(folder, NAME).files) == MODEL_FILES | {"README.md"}
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_card_names_repository_licence_datasets_and_keeps_the_rest(hub, folder):
    readme = folder / "README.md"
    readme.write_text(readme.read_text() + "\n## Limits\n\nDo not use it for poems.\n")
    push(folder, NAME, licence="cc-by-4.0", datasets=["their/bitext", "other/bitext", "their/bitext"])
    card = card_on(hub)
    assert 'model = SentenceTransformer("me/p-sp-xx")\n' in card.text and 'st_paragram.load("me/p-sp-xx")' in card.text
    assert "offered under the licence `cc-by-4.0`." in card.text and "No licence" not in card.text
    assert card.text.endswith("## Limits\n\nDo not use it for poems.\n")
    assert (card.data.license, card.data.library_name) == ("cc-by-4.0", "sentence-transformers")
    assert card.data.datasets == ["their/bitext", "other/bitext"] and "st_paragram" in card.data.tags
    assert (card.data.base_model, card.data.language) == ("other/base", ["en", "es"])
    assert [each.metric_value for each in card.data.eval_results] == [50.0, 25.0]
    readme.write_bytes(hub.repositories[NAME].head()["README.md"])
    push(folder, NAME, licence="mit")
    assert "offered under the licence `mit`." in card_on(hub).text and "cc-by" not in str(card_on(hub))


@pytest.mark.parametrize("dtype", ["float32", "int4"])
@pytest.mark.parametrize("record", [None, RECORD])
def test_a_model_without_a_card_gets_one(hub, folder, pairs, dtype, record):
    model_directory.save(model_directory.load(folder), folder, "", True, dtype, training=record)
    (folder / "README.md").unlink(missing_ok=True)
    report, texts = push(folder, NAME, licence="mit"), [a for a, _ in pairs[:20]]
    expected = st_paragram.load(folder, device="cpu").encode(texts)
    np.testing.assert_allclose(st_paragram.load(f"{NAME}@{report.commit}").encode(texts), expected, rtol=1e-6)
    card = card_on(hub)
    assert 'st_paragram.load("me/p-sp-xx")' in card.text and "offered under the licence `mit`" in card.text
    assert ("SentenceTransformer(" in card.text, "## Table of int4" in card.text) == (
        (True, False) if dtype == "float32" else (False, True)
    )
    assert card.data.library_name == ("sentence-transformers" if dtype == "float32" else "st_paragram")


def test_scores_go_on_the_card(hub, folder, capsys):
    readme = folder / "README.md"
    for share in (0.5, 0.6123):  # those of the second time take the place of the first ones
        rows = [("./p-sp-xx", "STS12", share), ("./p-sp-xx", "STS17/es-en", None), ("other", "STS12", 0.1)]
        found = [scores.Score(name, "sts", task, "mteb Spearman", value) for name, task, value in rows]
        scores.write_scores([*found, scores.Score("p-sp-xx", "hard-sts", "all", "Pearson", 0.5)], "scores.json")
        assert main(["push", "p-sp-xx", NAME, "--scores", "scores.json"]) == 0
        readme.write_bytes(hub.repositories[NAME].head()["README.md"])
    card = ModelCard.load(readme)
    entries = {(each.dataset_name, each.metric_type): each.metric_value for each in card.data.eval_results}
    assert entries["MTEB STS12", "cosine_spearman"] == 61.23 and len(entries) == 3
    assert "| MTEB STS12 | cosine_spearman | 61.2 |" in card.text and card.text.count("## Scores on test sets") == 1
    assert "## Citation" in card.text
    scores.write_scores([scores.Score("other", "sts", "STS12", "mteb Spearman", 0.1)], "other.json")
    assert main(["push", "p-sp-xx", NAME, "--scores", "other.json"]) == 1
    assert "other.json: scores of other, and none of p-sp-xx" in capsys.readouterr().err


def test_a_dry_run_sends_nothing(hub, capsys, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert main(["get", "p-sp-mini"]) == 0 and main(["push", "p-sp-mini", NAME, "--dry-run"]) == 0
    shown = capsys.readouterr()
    files = {line.split()[1] for line in shown.out.splitlines()}
    assert {"modules.json", "tokenizer.json", "training.json", "README.md", "model.safetensors"} < files
    assert "would be uploaded to me/p-sp-xx, private if it is new: 8 files" in shown.err and not hub.asked


def test_the_command_uploads(folder, capsys):
    assert main(["push", "p-sp-xx", NAME, "--public", "--licence", "CC0-1.0"]) == 0
    shown = capsys.readouterr()
    assert "me/p-sp-xx (public) has 7 files" in shown.err and "model.safetensors" in shown.out
    assert main(["push", "p-sp-xx", NAME]) == 1
    assert "me/p-sp-xx: is public; push with --public" in capsys.readouterr().err


@pytest.mark.parametrize("system", ["dual encoder", "generative"])
def test_models_with_folders_of_modules(hub, store, tmp_path, pairs, system):
    if system == "dual encoder":
        model = unlike_new(new_model(store, "cnn"))
    else:
        generator = new_generator(store.tokenizer())
        model = GenerativeEncoder.of(generator.semantic.pipeline, ("en", "xx"), store.tokenizer(), generator)
    there = model_directory.save(model, tmp_path / "m", card="# m\n")
    report = push(there, "me/m")
    texts = [text for text, _ in pairs[:5]]
    ours = st_paragram.load(f"me/m@{report.commit}", device="cpu")
    with_our_modules = system == "dual encoder"  # the convolutions
    stock = SentenceTransformer("me/m", revision=report.commit, device="cpu", trust_remote_code=with_our_modules)
    expected = model_directory.load(there, device="cpu").encode(texts)
    np.testing.assert_allclose(ours.encode(texts), expected, atol=1e-6)
    np.testing.assert_allclose(stock.encode(texts), expected, atol=1e-5)


def test_push_to_hub_of_an_encoder(hub, folder, pairs):
    model = st_paragram.load(folder, device="cpu")
    model.push_to_hub(NAME, private=True)
    assert hub.repositories[NAME].private
    texts = [text for text, _ in pairs[:5]]
    np.testing.assert_array_equal(st_paragram.load(NAME, device="cpu").encode(texts), model.encode(texts))


@pytest.mark.parametrize("harm", ["weights", "tokenizer", "card"])
def test_what_is_damaged_is_never_sent(hub, folder, harm):
    path = folder / {"weights": "model.safetensors", "tokenizer": "sentencepiece.model", "card": "README.md"}[harm]
    path.write_bytes(b"---\na: [\n---\n" if harm == "card" else path.read_bytes()[:-4])
    with pytest.raises(ModelDirectoryError, match=path.name):
        push(folder, NAME)
    assert not hub.asked


def refused(folder, name=NAME, **ways):
    """The error's message: one line, and no token."""
    with pytest.raises(HubError) as caught:
        push(folder, name, **ways)
    message = str(caught.value)
    assert "\n" not in message and TOKEN not in message and message.startswith(name)
    return message


def test_refusals_of_the_hub(hub, folder, monkeypatch, capsys):
    assert "under the namespace others (HTTP 403); check the name, HF_TOKEN" in refused(folder, "others/p-sp-xx")
    hub.new("others/open", private=False)
    assert "HTTP 403" in refused(folder, "others/open", public=True)
    assert "license" in refused(folder, licence="nonsense")
    assert "Repo id must" in refused(folder, "me/-x-")
    monkeypatch.setenv("HF_TOKEN", "hf_wrongwrong")
    message = refused(folder, "me/new")
    assert "Invalid credentials" in message and "wrongwrong" not in message
    assert {name: len(one.commits) for name, one in hub.repositories.items()} == {"others/open": 1, NAME: 1}
    monkeypatch.delenv("HF_TOKEN")
    assert "no token; create one" in refused(folder)
    for wrong, expected in ((["p-sp-xx", "me"], "has no owner"), (["nowhere", NAME], "no model 'nowhere'")):
        assert main(["push", *wrong]) == 1
        assert expected in capsys.readouterr().err


def test_a_push_that_failed_is_repeated(hub, folder, monkeypatch):
    hub.new(NAME)
    hub.refusals["POST", f"/api/models/{NAME}/commit"] = (503, {"error": f"no\nto {TOKEN}"})
    assert "no to [token] (HTTP 503)" in refused(folder)
    hub.refusals.clear()
    hub.refusals["POST", "/me/p-sp-xx.git"] = (403, {"error": "no room"})
    assert "no room" in refused(folder)
    hub.refusals.clear()
    push(folder, NAME)
    assert hub.repositories[NAME].messages == ["initial commit", "Upload p-sp-xx"]
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "not uploaded: " in refused(folder)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE" in refused(folder)
