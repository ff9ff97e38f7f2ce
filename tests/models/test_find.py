"""Where models are found: folders, names, the hub."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub.utils import filter_repo_objects
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.errors import ModelDirectoryError
from st_paragram.models import directory as model_directory
from st_paragram.models.encoder import pipeline
from st_paragram.models.find import find, only_model_here
from st_paragram.modules.sentencepiece_embedding import SentencePieceEmbedding


@pytest.fixture
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")


@pytest.fixture
def saved(model, tmp_path):
    return model_directory.save(model, tmp_path / "p-sp-xx", card="# p-sp-xx\n")


def test_the_only_model_here_is_the_default(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert only_model_here() == "p-sp-xx"
    saved.rename(tmp_path / "other")
    with pytest.raises(ModelDirectoryError, match="--model"):
        only_model_here()


def test_models_are_found_by_name(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find("p-sp-xx").samefile(saved)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("ST_PARAGRAM_HOME", str(tmp_path))
    assert find("p-sp-xx") == saved
    with pytest.raises(ModelDirectoryError) as caught:
        find("p-sp-yy")
    assert str(tmp_path / "p-sp-yy") in str(caught.value) and "cache" in str(caught.value)
    assert "st-paragram train" in str(caught.value) and "recipes" not in str(caught.value)


def test_hub_failure_is_one_line(monkeypatch):
    def offline(*args, **kwargs):
        raise OSError("offline\nwith a long explanation")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(ModelDirectoryError, match=r"on the hub \(offline\)$"):
        find("somebody/p-sp-xx")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one repository, `somebody/model`: the folder that it is, and the folder of what was downloaded."""
    there, here = tmp_path / "hub", tmp_path / "snapshot"

    def snapshot_download(name, allow_patterns, revision=None):
        assert name == "somebody/model" and revision is None
        names = [str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()]
        for wanted in filter_repo_objects(names, allow_patterns=allow_patterns):
            (here / wanted).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(there / wanted, here / wanted)
        return str(here)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return there, here


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_an_averaging_model_comes_from_the_hub_without_the_stock_readers_files(model, hub, pairs):
    there, here = hub
    model.prompts["query"] = "ba "
    model_directory.save(model, there, card="# model\n")
    loaded = st_paragram.load("somebody/model", device="cpu")
    texts = [a for a, _ in pairs[:9]]
    np.testing.assert_array_equal(loaded.encode(texts, prompt_name="query"), model.encode(texts, prompt_name="query"))
    assert files(there) - files(here) == {"tokenizer.json", "modules.json"}


def test_a_stock_model_comes_from_the_hub_with_all_of_its_files_but_nothing_pickled(hub, pairs):
    there, here = hub
    texts = [text for pair in pairs for text in pair]
    model = lstm_pipeline(texts)
    model_directory.save(model, there)
    (there / "pytorch_model.bin").write_bytes(b"pickled")
    (there / "modeling.py").write_text("raise SystemExit")
    loaded = st_paragram.load("somebody/model", device="cpu")
    np.testing.assert_array_equal(loaded.encode(texts[:9]), model.encode(texts[:9]))
    assert files(there) - files(here) == {"pytorch_model.bin", "modeling.py"}


def test_another_repository_is_no_model_of_ours(hub):
    there, _ = hub
    there.mkdir()
    (there / "modules.json").write_text("[]")
    with pytest.raises(ModelDirectoryError, match=r"somebody/model is on the hub, but .* st_paragram\.json is missing"):
        find("somebody/model")
