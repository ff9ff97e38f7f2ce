"""Models go onto a hub: what is uploaded, what is not, and what every refusal says."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from huggingface_hub import ModelCard
from huggingface_hub.errors import HfHubHTTPError
from sentence_transformers import SentenceTransformer

import st_paragram
from st_paragram import hub as hub_module
from st_paragram.cli.main import main
from st_paragram.core.model_directory.card import render
from st_paragram.core.model_directory.model_files import model_digest
from st_paragram.core.model_directory.record import Correlation, Score, TrainingRecord
from st_paragram.errors import EvaluationError, ModelDirectoryError
from st_paragram.hub import HubError, push
from st_paragram.learning.models import load_save
from st_paragram.learning.models.card import from_record
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.runs.families import facts_of
from st_paragram.tools.evaluation import scores

NAME, TOKEN = "me/p-sp-xx", "hf_tokenoftests"
MODEL_FILES = {
    "config_sentence_transformers.json", "model.safetensors", "modules.json", "sentencepiece.model",
    "st_paragram.json", "tokenizer.json", "README.md",
}  # fmt: skip
SCORES = [Score("dev", 9, "after training", Correlation(0.5, 0.25))]
SETTINGS = {"dim": 12, "init": "other/base"}
RECORD = TrainingRecord(
    "p-sp-xx", ("en", "es"), "a text", 3, {}, "none", SETTINGS, 1.0, 3.0, SCORES
)


class Hub:
    """In place of the hub's client: one repository, its files, commits and refusals."""

    def __init__(self):
        self.private, self.files, self.messages, self.refusal = None, {}, [], None

    def __call__(self, token):
        assert token == TOKEN
        return self

    def create_repo(self, name, private, exist_ok):
        if self.refusal:
            raise self.refusal
        self.private = private if self.private is None else self.private

    def model_info(self, name):
        return SimpleNamespace(private=self.private, sha=f"commit{len(self.messages)}")

    def create_commit(self, name, added, commit_message, parent_commit):
        assert parent_commit == f"commit{len(self.messages)}"
        self.messages.append(commit_message)
        for each in added:
            with each.as_file() as file:
                self.files[each.path_in_repo] = file.read()
        return SimpleNamespace(oid=f"commit{len(self.messages)}")

    def card(self):
        return ModelCard(self.files["README.md"].decode())

    def written(self, folder):
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder


@pytest.fixture(autouse=True)
def hub(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(hub_module, "HfApi", made := Hub())
    return made


@pytest.fixture
def folder(vocabulary, tmp_path):
    model = pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu", prompts={"query": "ba "})
    return load_save.save(
        model, tmp_path / "p-sp-xx", card=render(from_record(RECORD, facts_of(RECORD)))
    )


def test_only_the_model_is_uploaded_private_and_opens_with_either_reader(
    hub, folder, tmp_path, pairs
):
    for name in (".hidden", "notes.txt"):
        (folder / name).write_text("mine")
    shutil.copytree(folder, folder / "checkpoint-10")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    report = push(folder, NAME)
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert (
        report.private
        and set(report.files) == set(hub.files) == MODEL_FILES
        and hub.messages == ["Upload p-sp-xx"]
    )
    assert report.commit == "commit1" and report.url.endswith("/me/p-sp-xx/tree/commit1")
    ours = st_paragram.load(there := hub.written(tmp_path / "there"), device="cpu")
    stock = SentenceTransformer(str(there), device="cpu", trust_remote_code=False)
    texts = [text for pair in pairs[:20] for text in pair]
    expected = st_paragram.load(folder, device="cpu").encode(texts)
    np.testing.assert_array_equal(ours.encode(texts), expected)
    np.testing.assert_allclose(stock.encode(texts), expected, atol=1e-6)
    assert ours.prompts["query"] == "ba "


def test_the_card_names_repository_license_datasets_and_keeps_the_rest(hub, folder):
    readme = folder / "README.md"
    readme.write_text(readme.read_text() + "\n## Limits\n\nDo not use it for poems.\n")
    push(
        folder, NAME, license="cc-by-4.0", datasets=["their/bitext", "other/bitext", "their/bitext"]
    )
    card = hub.card()
    assert (
        'model = SentenceTransformer("me/p-sp-xx")\n' in card.text
        and 'st_paragram.load("me/p-sp-xx")' in card.text
    )
    assert "offered under the license `cc-by-4.0`." in card.text and "No license" not in card.text
    assert card.text.endswith("## Limits\n\nDo not use it for poems.\n")
    assert (card.data.license, card.data.library_name) == ("cc-by-4.0", "sentence-transformers")
    assert (
        card.data.datasets == ["their/bitext", "other/bitext"] and "st_paragram" in card.data.tags
    )
    assert (card.data.base_model, card.data.language) == ("other/base", ["en", "es"])
    assert [each.metric_value for each in card.data.eval_results] == [50.0, 25.0]


def test_a_model_without_a_card_gets_one(hub, folder):
    load_save.save(st_paragram.load(folder), folder, "", True, "int4")
    (folder / "README.md").unlink()
    push(folder, NAME, license="mit")
    text = hub.card().text
    assert 'st_paragram.load("me/p-sp-xx")' in text and "offered under the license `mit`" in text
    assert "SentenceTransformer(" not in text and "## Table of int4" in text


def score(name, value, digest, task="STS12"):
    return scores.Score(name, "sts", task, "mteb Spearman", value, digest=digest)


def test_scores_go_on_the_card(hub, folder):
    digest = model_digest(folder)
    for share in (0.5, 0.6123):  # those of the second time take the place of the first ones
        own = [score("./p-sp-xx", share, digest), score("./p-sp-xx", None, digest, "STS17/es-en")]
        others = [
            score("other", 0.1, "0" * 64),
            scores.Score("p-sp-xx", "hard-sts", "all", "Pearson", 0.5),
        ]
        scores.write_scores([*own, *others], "scores.json")
        assert main(["push", "p-sp-xx", NAME, "--scores", "scores.json"]) == 0
        (folder / "README.md").write_bytes(hub.files["README.md"])
    card = hub.card()
    entries = {
        (each.dataset_name, each.metric_type): each.metric_value for each in card.data.eval_results
    }
    assert entries["MTEB STS12", "cosine_spearman"] == 61.23 and len(entries) == 3
    assert (
        "| MTEB STS12 | cosine_spearman | 61.2 |" in card.text
        and card.text.count("## Scores on test sets") == 1
    )


def test_scores_belong_to_weights_not_to_names(hub, folder, capsys, caplog):
    digest = model_digest(folder)
    scores.write_scores(
        [score("other/name", 0.5, digest), score("p-sp-xx", 0.9, "1" * 64)], "scores.json"
    )
    push(folder, NAME, scores=["scores.json"])
    assert (
        "| MTEB STS12 | cosine_spearman | 50.0 |" in hub.card().text
        and "90.0" not in hub.card().text
    )
    unused = "1 score of p-sp-xx with other weights or settings, or without their digest: not used"
    assert f"scores.json: {unused}" in caplog.text
    for other in ("", "1" * 64):
        scores.write_scores([score("p-sp-xx", 0.9, other), score("b", 0.9, other)], "other.json")
        assert main(["push", "p-sp-xx", NAME, "--scores", "other.json"]) == 1
        message = "other.json: it has no scores of the weights and settings of p-sp-xx; make it"
        assert message in capsys.readouterr().err
    scores.write_scores([score("p-sp-xx", 0.9, ""), score("p-sp-xx", 0.5, digest)], "scores.json")
    caplog.clear()
    push(folder, NAME, scores=["scores.json"])
    assert f"scores.json: {unused}" in caplog.text
    config = folder / "config_sentence_transformers.json"
    config.write_text(config.read_text().replace('"ba "', '"be "'))
    assert model_digest(folder) != digest  # a prompt is part of the model


def test_wrong_scores_are_refused_in_a_line(hub, folder):
    digest = model_digest(folder)
    Path("scores.json").write_text("[]")
    with pytest.raises(EvaluationError, match=r"scores.json: it has no scores of .*; make it with"):
        push(folder, NAME, scores=["scores.json"])
    for value in (85.3, -1.1):
        scores.write_scores([score("p-sp-xx", value, digest)], "scores.json")
        with pytest.raises(
            EvaluationError,
            match=f"STS12, mteb Spearman: value is {value}; scores are from -1 to 1",
        ):
            push(folder, NAME, scores=["scores.json"])
    text = Path("scores.json").read_text()
    for value in ("NaN", "Infinity", "1e400"):
        Path("scores.json").write_text(text.replace("-1.1", value))
        with pytest.raises(
            EvaluationError,
            match=r"scores.json: not a list of scores \(row 1: value is (nan|inf)\)",
        ):
            push(folder, NAME, scores=["scores.json"])


def test_evaluate_records_the_digest_that_push_needs(hub, folder, tmp_path, pairs):
    (tmp_path / "sts2012").mkdir()
    rows = "".join(f"{number % 6}\t{a}\t{b}\n" for number, (a, b) in enumerate(pairs[:30]))
    (tmp_path / "sts2012" / "MSRpar.tsv").write_text(rows, encoding="utf-8")
    assert (
        main(["evaluate", "p-sp-xx", "--data", ".", "--benchmarks", "sts", "--json", "scores.json"])
        == 0
    )
    assert {row.digest for row in scores.read_scores("scores.json")} == {model_digest(folder)}
    folder.rename(tmp_path / "renamed")
    push("renamed", NAME, scores=["scores.json"])
    other = pipeline(
        SentencePieceEmbedding(st_paragram.Encoder("renamed").tokenizer, 12), device="cpu"
    )
    load_save.save(other, tmp_path / "p-sp-xx")
    with pytest.raises(EvaluationError, match=r"no scores of the weights and settings of p-sp-xx"):
        push("p-sp-xx", NAME, scores=["scores.json"])


def test_the_command_uploads_and_a_dry_run_sends_nothing(hub, folder, capsys, monkeypatch):
    assert main(["push", "p-sp-xx", NAME, "--public", "--license", "CC0-1.0"]) == 0
    shown = capsys.readouterr()
    assert "uploaded 7 files, " in shown.err and "me/p-sp-xx (public): " in shown.err
    assert "no license" not in shown.err
    assert "model.safetensors" in shown.out
    assert main(["push", "p-sp-xx", NAME]) == 1
    assert "me/p-sp-xx is public; push with --public" in capsys.readouterr().err
    monkeypatch.delenv("HF_TOKEN")
    assert main(["push", "p-sp-xx", NAME, "--dry-run"]) == 0
    messages = capsys.readouterr().err
    assert "would upload 7 files" in messages and "the card names no license" in messages
    assert len(hub.messages) == 1
    for words, said in (([NAME], "no token; create one"), (["me"], "has no owner")):
        assert main(["push", "p-sp-xx", *words]) == 1
        assert said in capsys.readouterr().err


def test_what_is_damaged_is_never_sent(hub, folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ModelDirectoryError, match=path.name):
        push(folder, NAME)
    assert hub.private is None


def test_a_refusal_is_one_line_without_the_token(hub, folder):
    answer = httpx.Response(403, request=httpx.Request("POST", "https://hub"))
    refused = HfHubHTTPError("x", response=answer, server_message=f"no\nroom for {TOKEN}")
    for hub.refusal, said in (
        (refused, "no room for [token] (HTTP 403); check the name, HF_TOKEN"),
        (OSError(f"no route with Bearer {TOKEN}"), "not uploaded: no route with Bearer [token]"),
    ):
        with pytest.raises(HubError) as caught:
            push(folder, NAME)
        message = str(caught.value)
        assert (
            message.startswith(f"{NAME}: ")
            and said in message
            and "\n" not in message
            and TOKEN not in message
        )
