"""`st-paragram push`: what is shown, what is sent, and errors in one line."""

import pytest
from huggingface_hub import ModelCard
from support.hub_server import TOKEN, stub_hub

from st_paragram.cli.main import main
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.bucc import BuccResult, BuccRun, BuccScores, MarginResult
from st_paragram.tools.evaluation.record import new_record, write_records
from st_paragram.tools.evaluation.results import (
    HardStsResult,
    HardStsRun,
    MtebResult,
    MtebRun,
    MtebScores,
    StsResult,
    StsRun,
)

NAME = "me/p-sp-xx"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with stub_hub(monkeypatch, tmp_path / "hub-cache") as server:
        yield server


@pytest.fixture(autouse=True)
def folder(vocabulary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 4), device="cpu"), tmp_path / "p-sp-xx")


def test_a_dry_run_shows_files_with_sizes_and_sends_nothing(hub, folder, capsys, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    assert main(["push", "p-sp-xx", NAME, "--dry-run"]) == 0
    said = capsys.readouterr()
    sizes = {line.split()[1]: line.split()[0] for line in said.out.splitlines()}
    assert sizes["model.safetensors"] == f"{(folder / 'model.safetensors').stat().st_size:,}"
    assert "README.md" in sizes and "would be uploaded to me/p-sp-xx, private if it is new: 7 files" in said.err
    assert not hub.asked


def test_it_uploads_and_then_has_nothing_to_do(hub, capsys):
    assert main(["push", "p-sp-xx", NAME, "--public", "--licence", "CC0-1.0", "--revision", "v1"]) == 0
    said = capsys.readouterr()
    assert "uploaded to me/p-sp-xx (public): 7 files" in said.err and "model.safetensors" in said.out
    assert ModelCard(hub.repositories[NAME].head("v1")["README.md"].decode()).data.license == "cc0-1.0"
    assert main(["push", "p-sp-xx", NAME, "--public", "--licence", "cc0-1.0", "--branch", "v1"]) == 0
    said = capsys.readouterr()
    assert said.out == "" and "has all of it already; nothing was uploaded" in said.err


def test_test_scores_go_on_the_card(hub, tmp_path, capsys):
    sts = StsRun({"./p-sp-xx": StsResult(mteb={"STS12": 0.6123, "STS17/es-en": None}), "other": StsResult()})
    found = BuccScores(9, {"ratio": MarginResult(1.1, 9, 9, 1.0, 0.5, 0.667)})
    bucc = BuccRun({"p-sp-xx": BuccResult({"zh-en": found})}, {}, 4, "max")
    mteb = MtebRun({"p-sp-xx": MtebResult({"SICK-R": {"default": MtebScores(0.7)}})})
    hard = HardStsRun({"p-sp-xx": HardStsResult({})})
    write_records([new_record(run) for run in (sts, bucc, mteb, hard)], tmp_path / "scores.json")
    readme = tmp_path / "p-sp-xx" / "README.md"
    for _ in range(2):  # the scores of the second time take the place of the first ones
        assert main(["push", "p-sp-xx", NAME, "--scores", "scores.json"]) == 0
        readme.write_bytes(hub.repositories[NAME].head()["README.md"])
    card = ModelCard.load(readme)
    found = {(one.dataset_name, one.metric_type): one.metric_value for one in card.data.eval_results}
    assert found == {
        ("MTEB STS12", "cosine_spearman"): 61.23,
        ("BUCC 2018 (zh-en, ratio)", "f1"): 66.7,
        ("MTEB SICK-R (default)", "main_score"): 70.0,
    }
    assert "| STS12 | 61.2 |" in card.text and card.text.count("## Scores on test sets") == 1

    write_records([new_record(StsRun({"other": StsResult()}))], tmp_path / "other.json")
    assert main(["push", "p-sp-xx", NAME, "--scores", "other.json"]) == 1
    assert "other.json: scores of other, none of them of a model called p-sp-xx" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere", NAME], "no model 'nowhere'"),
        (["p-sp-xx", "me"], "has no owner"),
        (["p-sp-xx", "others/p-sp-xx"], "has no write access there"),
        (["p-sp-xx", NAME, "--scores", "none.json"], "none.json"),
    ],
)
def test_errors_are_one_line(hub, capsys, arguments, said):
    assert main(["push", *arguments]) == 1
    error = capsys.readouterr().err
    assert said in error and TOKEN not in error and "Traceback" not in error
    assert not hub.repositories
