"""`SHA256SUMS` of a model directory, and who may read what is saved."""

import os
import shutil
import stat
import subprocess

import numpy as np
import pytest
import torch
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.core.encoding import checksums_file
from st_paragram.core.encoding.checksums_file import CHECKSUMS_FILE
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.learning.training import checkpoint_state


@pytest.fixture
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 12), device="cpu")


@pytest.fixture
def saved(model, tmp_path):
    return model_directory.save(model, tmp_path / "p-sp-xx", card="# p-sp-xx\n")


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640)])
def test_whoever_the_umask_lets_can_read_all_files_of_a_model(model, pairs, tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        for number, each in enumerate((model, lstm_pipeline([a for a, _ in pairs[:20]]))):
            assert modes(model_directory.save(each, tmp_path / f"{number}")) == {mode}
        model.save_pretrained(str(tmp_path / "pretrained"))
        model[0].save(str(tmp_path / "pretrained"))
        checkpoint_state.save_losses({"loss": torch.nn.Linear(2, 2)}, model, tmp_path / "pretrained")
    finally:
        os.umask(before)
    assert modes(tmp_path / "pretrained") == {mode}


def test_sha256sum_reads_them(saved):
    lines = (saved / CHECKSUMS_FILE).read_text().splitlines()
    assert [line.split()[1] for line in lines] == [
        "model.safetensors",
        "modules.json",
        "sentencepiece.model",
        "st_paragram.json",
        "tokenizer.json",
    ]
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--check", "--strict", CHECKSUMS_FILE], cwd=saved, check=True, capture_output=True)
    assert checksums_file.check(saved)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "st_paragram.json", "modules.json"])
def test_a_file_that_is_not_what_was_saved_is_refused_by_name(saved, name):
    data = bytearray((saved / name).read_bytes())
    if name == "model.safetensors":
        data[-100] ^= 1  # the last bit of a number
    else:
        data = data.replace(b"\n", b"\n\n", 1) + b" "
    (saved / name).write_bytes(data)
    with pytest.raises(ModelDirectoryError, match=f"{name}: not what was saved there") as caught:
        st_paragram.load(saved)
    assert "\n" not in str(caught.value)
    with pytest.raises(ModelDirectoryError, match=f"{name}: not what was saved there"):
        checksums_file.check(saved)
    (saved / CHECKSUMS_FILE).unlink()
    assert st_paragram.load(saved) is not None and not checksums_file.check(saved)


def test_what_people_write_themselves_may_change(saved):
    (saved / "README.md").write_text("# mine\n")
    (saved / "config_sentence_transformers.json").write_text('{"prompts": {"query": "ba "}}')
    assert st_paragram.load(saved).prompts["query"] == "ba "


def test_saving_over_a_directory_leaves_no_checksums_of_earlier_files(saved, model):
    with torch.no_grad():
        model[0].embedding.weight.mul_(2)
    model.save_pretrained(str(saved))
    np.testing.assert_array_equal(st_paragram.load(saved).encode(["ba"]), model.encode(["ba"]))


@pytest.mark.parametrize(
    "content",
    ["x", "", "0" * 64 + "  ../x\n", "0" * 64 + "  /x\n", "0" * 64 + "  a\\b\n", "\xff\n", "0" * 63 + "  x\n"],
)
def test_damaged_checksums_are_refused(saved, content):
    (saved / CHECKSUMS_FILE).write_bytes(content.encode("latin-1"))
    with pytest.raises(ModelDirectoryError, match="cannot be compared") as caught:
        st_paragram.load(saved)
    assert "\n" not in str(caught.value)


def test_files_that_were_not_fetched_are_not_missed(saved):
    (saved / "tokenizer.json").unlink()
    (saved / "modules.json").unlink()
    assert checksums_file.check(saved) and st_paragram.load(saved) is not None
