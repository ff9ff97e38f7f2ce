"""Where models are found: folders, names, the hub."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from huggingface_hub.utils import filter_repo_objects
from support.stock import lstm_pipeline

import st_paragram
from st_paragram import Encoder
from st_paragram.cli.main import main
from st_paragram.core.files import describe_files
from st_paragram.core.languages import LARGE_LANGUAGES
from st_paragram.core.model_directory import find as finding
from st_paragram.core.model_directory.find import (
    LANGUAGE_MODELS,
    LARGE,
    SHIPPED,
    WHOLE,
    default_model,
    find,
    whole_model,
    with_commit,
)
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


@pytest.fixture
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")


@pytest.fixture
def saved(model, tmp_path):
    return load_save.save(model, tmp_path / "p-sp-xx", card="# p-sp-xx\n")


def test_the_only_model_here_is_the_default(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_model() == "p-sp-xx"
    shutil.copytree(saved, tmp_path / "p-sp-yy")
    with pytest.raises(
        ModelDirectoryError,
        match=r"2 models in this folder \(p-sp-xx, p-sp-yy\); choose one with --model",
    ):
        default_model()


def test_without_a_model_here_the_shipped_one_is_the_default(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    with caplog.at_level("INFO"):
        assert default_model() == SHIPPED
    assert (
        "no p-sp-* model in this folder; using p-sp-mini, which is included in st_paragram"
        in caplog.text
    )
    assert default_model(["en", "it"]) == LARGE and default_model(["de", "xx"]) == SHIPPED
    (tmp_path / SHIPPED).mkdir()
    assert find(SHIPPED).samefile(tmp_path / SHIPPED)  # what the user has goes first


def test_models_are_found_by_name(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find("p-sp-xx").samefile(saved)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find("~/p-sp-xx") == saved
    for name in ("p-sp-yy", "~/p-sp-yy"):
        with pytest.raises(
            ModelDirectoryError, match=f"no model '{name}': no such folder; give a path.*train"
        ):
            find(name)


def test_there_is_a_model_for_each_language_of_the_largest_model():
    assert list(LANGUAGE_MODELS) == [f"p-sp-{code}" for code in LARGE_LANGUAGES[1:]]
    assert {whole_model(LANGUAGE_MODELS[name]) for name in TEXTS} == {WHOLE, LARGE}
    assert whole_model(["en", "es", "it"]) == LARGE


TEXTS = {
    "p-sp-it": "Dov'è la stazione?",
    "p-sp-ja": "駅はどこですか。",
    "p-sp-ar": "أين المحطة؟",
    "p-sp-zh": "车站在哪里？",
}


@pytest.fixture(scope="module")
def whole_encoders():
    """The models whose tokens those of two languages have."""
    return {name: Encoder(name) for name in (WHOLE, LARGE)}


@pytest.mark.parametrize("name", TEXTS)
def test_a_model_of_two_languages_needs_no_folder(name, whole_encoders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder = Encoder(name)
    whole = whole_encoders[whole_model(LANGUAGE_MODELS[name])]
    assert len(encoder.tokenizer) < len(whole.tokenizer) / 2
    texts = ["Where is the station?", TEXTS[name]]
    np.testing.assert_array_equal(encoder.encode(texts), whole.encode(texts))
    assert find(name).name == name and not list(tmp_path.iterdir())


def test_it_is_the_model_that_get_writes_and_a_folder_comes_first(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    finding._log_cut.cache_clear()
    with caplog.at_level("INFO"):
        cut = find("p-sp-es")
        assert find("p-sp-es") == cut
    assert caplog.text.count("no folder p-sp-es; using p-sp-base with the tokens of en and es") == 1
    vectors = st_paragram.load("p-sp-es", device="cpu").encode(["la estación"])
    assert main(["get", "p-sp-es"]) == 0
    assert describe_files(Path("p-sp-es")) == describe_files(cut)
    assert find("p-sp-es") == Path("p-sp-es")
    np.testing.assert_array_equal(Encoder("p-sp-es").encode(["la estación"]), vectors)


def test_commands_take_it_in_both_ways(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lines.txt").write_text("Where is the station?\nla estación\n", encoding="utf-8")
    assert main(["embed", "p-sp-es", "lines.txt", "--output", "a.npy"]) == 0
    assert main(["embed", "lines.txt", "--model", "p-sp-es", "--output", "b.npy"]) == 0
    vectors = np.load("a.npy")
    assert vectors.shape == (2, 512)
    np.testing.assert_array_equal(vectors, np.load("b.npy"))


def test_other_languages_have_no_such_model():
    with pytest.raises(ModelDirectoryError) as caught:
        find("p-sp-is")
    assert str(caught.value) == (
        "no model 'p-sp-is': no such folder; give a path, p-sp-mini, p-sp-base, p-sp-large,"
        " p-sp-LANG for one of 48 languages, such as p-sp-es, or a hub id (owner/name), or train"
        " one with `st-paragram train`"
    )


def test_without_a_cache_get_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ST_PARAGRAM_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelDirectoryError, match="the cache is not writable") as caught:
        find("p-sp-es")
    assert str(caught.value).endswith("; write it with `st-paragram get p-sp-es`")
    assert "\n" not in str(caught.value)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one repository, `somebody/model`: the folder that it is, and the folder of what
    was downloaded.
    """
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
    load_save.save(model, there, card="# model\n")
    loaded = st_paragram.load("somebody/model", device="cpu")
    texts = [a for a, _ in pairs[:9]]
    np.testing.assert_array_equal(
        loaded.encode(texts, prompt_name="query"), model.encode(texts, prompt_name="query")
    )
    assert files(there) - files(here) == {"tokenizer.json"}


@pytest.mark.parametrize("of_others", [False, True])
def test_a_stock_model_comes_from_the_hub_with_all_of_its_files_but_nothing_pickled(
    hub, pairs, of_others
):
    there, here = hub
    texts = [text for pair in pairs for text in pair]
    model = lstm_pipeline(texts)
    load_save.save(model, there)
    if of_others:
        (there / "st_paragram.json").unlink()
    (there / "pytorch_model.bin").write_bytes(b"pickled")
    (there / "modeling.py").write_text("raise SystemExit")
    loaded = st_paragram.load("somebody/model", device="cpu")
    np.testing.assert_array_equal(loaded.encode(texts[:9]), model.encode(texts[:9]))
    assert files(there) - files(here) == {"pytorch_model.bin", "modeling.py"}


COMMITS = "1" * 40, "2" * 40


@pytest.fixture
def cache(model, tmp_path, monkeypatch):
    """The hub's cache as it is laid out on disk, with two commits of a model: a tag, and the newer
    main.
    """
    repository = tmp_path / "hub-cache" / "models--somebody--model"
    for commit in COMMITS:
        load_save.save(model, repository / "snapshots" / commit)
        with torch.no_grad():
            model[0].embedding.weight.mul_(2)
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(COMMITS[0])
    (repository / "refs" / "main").write_text(COMMITS[1])
    asked = []

    def snapshot_download(name, allow_patterns, revision=None):
        asked.append(revision)
        reference = repository / "refs" / (revision or "main")
        folder = (
            repository / "snapshots" / (reference.read_text() if reference.exists() else revision)
        )
        if not folder.is_dir():
            raise OSError(f"no revision {revision}")
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(repository.parent))
    return repository / "snapshots", asked


@pytest.mark.parametrize(
    ("name", "commit"),
    [("somebody/model", 1), ("somebody/model@v1", 0), (f"somebody/model@{COMMITS[0]}", 0)],
)
def test_a_hub_id_may_name_a_revision_and_the_commit_is_told(cache, name, commit, caplog):
    with caplog.at_level("INFO"):
        assert find(name) == cache[0] / COMMITS[commit]
    # all files are of one commit, also when the branch moves meanwhile
    assert cache[1][1] == COMMITS[commit]
    assert f"somebody/model: commit {COMMITS[commit]} of the hub" in caplog.text
    assert with_commit(name, find(name)) == f"somebody/model@{COMMITS[commit]}"


@pytest.mark.parametrize("name", ["somebody/model@v9", "a/b/c"])
def test_other_names_are_of_no_commit(cache, name, tmp_path):
    assert with_commit(name, tmp_path) == name
    with pytest.raises(ModelDirectoryError, match="no model") as caught:
        find(name)
    assert "\n" not in str(caught.value)
