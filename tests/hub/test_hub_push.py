"""Models go onto a hub and come back: what is uploaded, what is not, and what every refusal says."""

import os
import shutil
from dataclasses import replace

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
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.hub.card import hub_card
from st_paragram.hub.errors import HubError, without_token
from st_paragram.hub.model_files import model_files
from st_paragram.hub.push import push
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.card import from_record, render
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.results import StsResult

NAME = "me/p-sp-xx"
MODEL_FILES = {
    "config_sentence_transformers.json",
    "model.safetensors",
    "modules.json",
    "sentencepiece.model",
    "st_paragram.json",
    "tokenizer.json",
}
CARD = '# p-sp-xx\n\n```python\nmodel = SentenceTransformer("p-sp-xx")  # a path to this directory\n```\n'


@pytest.fixture(autouse=True)
def hub(monkeypatch, tmp_path):
    with stub_hub(monkeypatch, tmp_path / "hub-cache") as server:
        yield server


@pytest.fixture(scope="module")
def made(vocabulary, tmp_path_factory):
    model = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu", prompts={"query": "ba "})
    return model_directory.save(model, tmp_path_factory.mktemp("made") / "p-sp-xx", card=CARD)


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "p-sp-xx")


def test_what_was_pushed_is_loaded_by_its_commit_with_either_reader(hub, folder, pairs):
    report = push(folder, NAME)
    assert (report.private, report.uploaded, report.removed) == (True, tuple(sorted(MODEL_FILES | {"README.md"})), ())
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


def test_the_same_again_sends_nothing_and_a_change_sends_what_changed(hub, folder):
    first = push(folder, NAME)
    before = list(hub.writes())
    again = push(folder, NAME)
    assert (again.uploaded, again.removed, again.commit) == ((), (), first.commit)
    assert hub.writes() == before
    card = folder / "README.md"
    card.write_text(card.read_text() + "More of it.\n")
    assert push(folder, NAME, message="a word").uploaded == ("README.md",)
    assert hub.repositories[NAME].messages[-1] == "a word"
    assert b"More of it." in hub.repositories[NAME].head()["README.md"]


def test_nothing_but_the_model_is_uploaded(hub, folder):
    (folder / ".hidden").write_text("secret")
    (folder / "notes.txt").write_text("mine")
    (folder / "checkpoint-10").mkdir()
    shutil.copy(folder / "model.safetensors", folder / "checkpoint-10")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert set(push(folder, NAME).files) == MODEL_FILES | {"README.md"}
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_card_names_the_repository_and_the_licence(hub, folder):
    push(folder, NAME, licence="cc-by-4.0", datasets=["their/bitext", "other/bitext", "their/bitext"])
    card = ModelCard(hub.repositories[NAME].head()["README.md"].decode())
    assert 'model = SentenceTransformer("me/p-sp-xx")\n' in card.text and "a path to" not in card.text
    assert (card.data.license, card.data.library_name) == ("cc-by-4.0", "sentence-transformers")
    assert card.data.datasets == ["their/bitext", "other/bitext"]
    assert card.data.pipeline_tag == "sentence-similarity" and "st_paragram" in card.data.tags
    assert (folder / "README.md").read_text() == CARD


RECORD = TrainingRecord("p-sp-xx", ("en", "es"), "a text", 3, {}, "none", {"dim": 12}, 1.0, 3.0, [])


def test_the_card_of_a_record_is_rendered_anew_and_keeps_sections_of_other_titles(folder):
    model = model_directory.load(folder)
    card = render(from_record(RECORD)) + "\n## Limits\n\nDo not use it for poems.\n"
    model_directory.save(model, folder, card, overwrite=True, training=RECORD)
    with model_files(folder) as files:
        card = ModelCard(hub_card(folder, files, NAME, "mit"))
    rendered = ModelCard(render(from_record(RECORD, licence="mit", address=NAME)))
    assert card.text == rendered.text + "\n## Limits\n\nDo not use it for poems.\n"
    assert card.data.to_dict() == rendered.data.to_dict()


def test_what_was_written_by_hand_stays_on_the_card(folder):
    mine = "\n## Limits\n\nDo not use it for poems.\n"
    (folder / "README.md").write_text(
        render(from_record(RECORD)).replace("## Data\n", "## Data\n\nFrom my desk.\n") + mine
    )
    sts = StsResult(mteb={"STS12": 0.5})
    with model_files(folder) as files:
        for score in (sts, sts, replace(sts, mteb={"STS12": 0.25})):
            text = hub_card(folder, files, NAME, results=[score])
            (folder / "README.md").write_text(text)
    assert mine in text and "From my desk." in text
    assert "| STS12 | 25.0 |" in text and "50.0" not in text and text.count("## Scores on test sets") == 1
    (folder / "README.md").write_text(text + mine)  # a section after the scores
    with model_files(folder) as files:
        text = hub_card(folder, files, NAME, results=[sts])
    assert "| STS12 | 50.0 |" in text and text.endswith(mine)


@pytest.mark.parametrize("recorded", [False, True])
def test_a_model_without_a_card_gets_one(hub, folder, recorded):
    (folder / "README.md").unlink()
    if recorded:
        scores = [Score("dev", 9, "after training", Correlation(0.5, 0.25))]
        settings = {"dim": 12, "init": "other/base"}
        record = TrainingRecord("p-sp-xx", ("en", "es"), "a text", 3, {}, "none", settings, 1.0, 3.0, scores)
        model_directory.save(model_directory.load(folder), folder, overwrite=True, training=record)
    push(folder, NAME, licence="mit")
    card = ModelCard(hub.repositories[NAME].head()["README.md"].decode())
    assert 'SentenceTransformer("me/p-sp-xx")' in card.text and 'st_paragram.load("me/p-sp-xx")' in card.text
    assert "offered under the licence `mit`" in card.text and card.data.license == "mit"
    if recorded:
        assert [(r.metric_type, r.metric_value) for r in card.data.eval_results] == [
            ("pearson_cosine", 50.0),
            ("spearman_cosine", 25.0),
        ]
        assert (card.data.base_model, card.data.language) == ("other/base", ["en", "es"])


def test_a_table_of_int4_goes_up_with_the_modules_that_read_it(hub, folder, pairs):
    record = TrainingRecord("p-sp-xx", ("en", "es"), "a text", 3, {}, "none", {"dim": 12}, 1.0, 3.0, [])
    model_directory.save(model_directory.load(folder), folder, "", True, "int4", training=record)
    (folder / "README.md").unlink()
    report, texts = push(folder, NAME), [a for a, _ in pairs[:20]]
    expected = st_paragram.load(folder, device="cpu").encode(texts)
    for reader in (
        st_paragram.load(f"{NAME}@{report.commit}", device="cpu"),
        SentenceTransformer(NAME, revision=report.commit, device="cpu", trust_remote_code=True),
    ):
        np.testing.assert_allclose(reader.encode(texts), expected, rtol=1e-6)
    card = ModelCard(hub.repositories[NAME].head()["README.md"].decode())
    assert 'st_paragram.load("me/p-sp-xx")' in card.text and "## Table of int4" in card.text
    assert "SentenceTransformer(" not in card.text and card.data.library_name == "st_paragram"


def test_files_of_an_earlier_model_go(hub, folder):
    push(folder, NAME)
    files = dict(hub.repositories[NAME].head())
    hub.repositories[NAME].commit("main", files | {"old.safetensors": b"old", "LICENSE": b"mine"}, "an older model")
    report = push(folder, NAME)
    assert (report.uploaded, report.removed) == ((), ("old.safetensors",))
    assert set(hub.repositories[NAME].head()) == MODEL_FILES | {"README.md", ".gitattributes", "LICENSE"}


def test_a_branch_is_made_and_main_is_left(hub, folder):
    report = push(folder, NAME, branch="v1", public=True)
    repository = hub.repositories[NAME]
    assert not repository.private and report.private is False
    assert set(repository.head()) == {".gitattributes"} and "modules.json" in repository.head("v1")


@pytest.mark.parametrize("wrong", [b"---\n- a\n- b\n---\n", b"---\na: [\n---\n", b"\xff\xfe"])
def test_a_card_that_cannot_be_read_is_refused(hub, folder, wrong):
    (folder / "README.md").write_bytes(wrong)
    with pytest.raises(ModelDirectoryError, match=r"README\.md: not a model card"):
        push(folder, NAME)
    assert not hub.asked


def test_the_shipped_model_gets_the_files_of_stock_readers(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["get", "p-sp-mini"]) == 0
    report = push("p-sp-mini", "me/mini", dry_run=True)
    assert {"modules.json", "tokenizer.json", "training.json", "README.md"} < set(report.files)
    assert report.commit is None and not hub.asked


def test_what_save_pretrained_wrote_is_pushed(hub, folder):
    st_paragram.load(folder, device="cpu").save_pretrained(str(folder.parent / "saved"))
    assert set(push(folder.parent / "saved", NAME).files) == MODEL_FILES | {"README.md"}


def test_push_to_hub_of_an_encoder(hub, folder, pairs):
    model = st_paragram.load(folder, device="cpu")
    model.push_to_hub(NAME, private=True)
    assert hub.repositories[NAME].private
    texts = [text for text, _ in pairs[:5]]
    np.testing.assert_array_equal(st_paragram.load(NAME, device="cpu").encode(texts), model.encode(texts))


@pytest.mark.parametrize("system", ["dual encoder", "generative"])
def test_models_with_folders_of_modules(hub, store, tmp_path, pairs, system):
    if system == "dual encoder":
        model = unlike_new(new_model(store, "cnn"))
    else:
        generator = new_generator(store.tokenizer())
        model = GenerativeEncoder.of(generator.semantic.pipeline, ("en", "xx"), store.tokenizer(), generator)
    there = model_directory.save(model, tmp_path / "m", card="# m\n")
    report = push(there, "me/m")
    assert any("/" in name for name in report.uploaded)
    texts = [text for text, _ in pairs[:5]]
    ours = st_paragram.load(f"me/m@{report.commit}", device="cpu")
    with_our_modules = system == "dual encoder"  # the convolutions
    stock = SentenceTransformer("me/m", revision=report.commit, device="cpu", trust_remote_code=with_our_modules)
    expected = model_directory.load(there, device="cpu").encode(texts)
    np.testing.assert_allclose(ours.encode(texts), expected, atol=1e-6)
    np.testing.assert_allclose(stock.encode(texts), expected, atol=1e-5)
    assert push(there, "me/m").uploaded == ()


@pytest.mark.parametrize("harm", ["damage", "missing", "no model"])
def test_what_is_no_sound_model_is_never_sent(hub, folder, harm):
    weights = folder / "model.safetensors"
    if harm == "damage":
        weights.write_bytes(weights.read_bytes()[:-4])
    else:
        (folder / ("sentencepiece.model" if harm == "missing" else "st_paragram.json")).unlink()
        (folder / "modules.json").unlink()
    with pytest.raises(ModelDirectoryError):
        push(folder, NAME)
    assert not hub.asked


@pytest.mark.parametrize(
    "wrong",
    [
        {"repository": "p-sp-xx"},
        {"repository": "a/b/c"},
        {"repository": "me/-x-"},
        {"branch": "refs/pr/1"},
        {"branch": "0" * 40},
        {"branch": "a..b"},
        {"licence": "CC BY 4.0"},
        {"datasets": ["their/bitext", "data/en-es.h5/"]},
    ],
)
def test_names_that_no_hub_has(hub, folder, wrong):
    with pytest.raises(SettingsError):
        push(folder, wrong.pop("repository", NAME), **wrong)
    assert not hub.asked


def refused(folder, name=NAME, **ways):
    """What the error says; one line, and no token."""
    with pytest.raises(HubError) as caught:
        push(folder, name, **ways)
    said = str(caught.value)
    assert "\n" not in said and TOKEN not in said and said.startswith(name)
    return said


def test_without_a_token(hub, folder, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert "HF_TOKEN" in refused(folder)
    assert not hub.asked
    assert push(folder, NAME, dry_run=True).uploaded
    assert push(folder, NAME, token=TOKEN).commit


def test_refusals_of_the_hub(hub, folder, monkeypatch):
    assert "has no write access there" in refused(folder, "others/p-sp-xx")
    hub.new("others/open", private=False, **{"st_paragram.json": b"{}"})
    assert "has no write access there" in refused(folder, "others/open", public=True)
    hub.new("others/closed")
    assert "HTTP 403" in refused(folder, "others/closed")
    hub.new("me/open", private=False)
    assert "is public" in refused(folder, "me/open")
    hub.new("me/else", **{"pytorch_model.bin": b"pickled"})
    assert "holds pytorch_model.bin but no model of st_paragram" in refused(folder, "me/else")
    assert "license" in refused(folder, licence="nonsense")
    monkeypatch.setenv("HF_TOKEN", "hf_wrongwrong")
    assert "rejects the token" in refused(folder, "me/new") and "wrongwrong" not in refused(folder, "me/new")
    assert {name: len(one.commits) for name, one in hub.repositories.items() if name != NAME} == {
        "others/open": 1,
        "others/closed": 1,
        "me/open": 1,
        "me/else": 1,
    }


@pytest.mark.parametrize(
    ("status", "said"),
    [(409, "already exists"), (412, "changed in the meantime"), (429, "too many requests"), (503, "internal error")],
)
def test_what_the_hub_answers_is_told(hub, folder, status, said):
    hub.new(NAME)
    hub.refusals["POST", f"/api/models/{NAME}/commit"] = (status, {"error": f"no\nto {TOKEN}"})
    found = refused(folder)
    assert said in found and f"HTTP {status}: no to [token]" in found
    hub.refusals.clear()
    assert push(folder, NAME).commit == hub.repositories[NAME].branches["main"], "and it goes on where it stopped"


def test_an_upload_that_breaks_off_goes_on(hub, folder):
    hub.refusals["POST", "/me/p-sp-xx.git"] = (403, {"error": "no room"})
    assert "no room" in refused(folder)
    assert hub.repositories[NAME].messages == ["initial commit"]
    hub.refusals.clear()
    push(folder, NAME)
    assert hub.repositories[NAME].messages == ["initial commit", "Upload p-sp-xx"]


def test_without_a_network(folder, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert "cannot be reached" in refused(folder)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in refused(folder)


def test_tokens_are_left_out():
    assert without_token("Bearer abc and hf_AbCdEf and\nmine", "mine") == "Bearer [token] and [token] and [token]"
    assert without_token("no way", None) == "no way"
    assert "HF_TOKEN" in os.environ
