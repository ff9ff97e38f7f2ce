"""Model directories of strangers: what they may not make the reader do."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.models import load_save


@pytest.fixture
def folder(pairs, tmp_path):
    return load_save.save(lstm_pipeline([a for a, _ in pairs[:20]]), tmp_path / "model")


def refused(folder, message):
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(folder, device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"type": "os.path.join"},
            "os.path.join is not a module of st_paragram or sentence-transformers",
        ),
        ({"type": "modeling.Evil"}, "not a module of st_paragram"),
        ({"type": "st_paragram.core.files.write_text"}, "not a pipeline module"),
        ({"path": "../elsewhere"}, "the folder ../elsewhere is outside the model's"),
        ({"path": "link"}, "the folder link is outside the model's"),
    ],
)
def test_modules_are_checked_before_they_are_imported(folder, tmp_path, change, message):
    (folder / "link").symlink_to(tmp_path, target_is_directory=True)
    (folder / "modeling.py").write_text("raise SystemExit('run')")
    entries = json.loads((folder / "modules.json").read_text())
    entries[1] |= change
    (folder / "modules.json").write_text(json.dumps(entries))
    refused(folder, message)
    (folder / "st_paragram.json").unlink()  # no safer without it
    refused(folder, message)


def test_damage_is_one_line(folder):
    (folder / "1_LSTM/model.safetensors").write_bytes(b"x")
    refused(folder, "its modules cannot be read")


def test_pickled_weights_are_not_read(folder):
    (folder / "1_LSTM" / "model.safetensors").rename(folder / "1_LSTM" / "pytorch_model.bin")
    refused(folder, r"1_LSTM/pytorch_model.bin is pickled")


def test_weights_that_are_no_numbers_are_refused(folder):
    tensors = load_file(folder / "1_LSTM" / "model.safetensors")
    next(iter(tensors.values())).view(-1)[0] = torch.nan
    save_file(tensors, folder / "1_LSTM" / "model.safetensors")
    refused(folder, "NaN or infinite")
