"""Model directories of strangers: what they may not make the reader do."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.models import directory as model_directory


@pytest.fixture
def folder(pairs, tmp_path):
    return model_directory.save(lstm_pipeline([a for a, _ in pairs[:20]]), tmp_path / "model")


def refused(folder, message):
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(folder, device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "os.path.join"}, "os.path.join is not a module of st_paragram or sentence-transformers"),
        ({"type": "st_paragram_evil.Module"}, "not a module of st_paragram"),
        ({"type": "modeling.Evil"}, "not a module of st_paragram"),
        ({"type": "st_paragram.core.files.write_text"}, "not a module of a pipeline"),
        ({"type": "sentence_transformers.base.model.pickle"}, "not a module of a pipeline"),
        ({"type": 3}, "its modules cannot be read"),
        ({"path": "../elsewhere"}, "the folder ../elsewhere is outside the model's"),
        ({"path": "/etc"}, "outside the model's"),
        ({"path": "..\\x"}, "outside the model's|without '..' components"),
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


@pytest.mark.parametrize("name", ["modules.json", "model.safetensors", "1_LSTM/model.safetensors"])
def test_damage_is_one_line(folder, name):
    (folder / name).write_bytes(b"x")
    refused(folder, "its modules cannot be read")


@pytest.mark.parametrize(
    ("content", "message"), [("{", "not settings of a module"), ('{"num_layers": 9999}', "9999 layers")]
)
def test_settings_that_cannot_be_are_named_before_a_module_is_made(folder, content, message):
    (folder / "1_LSTM" / "lstm_config.json").write_text(content)
    refused(folder, f"1_LSTM/lstm_config.json.* {message}")


def test_pickled_weights_are_not_read(folder):
    (folder / "1_LSTM" / "model.safetensors").rename(folder / "1_LSTM" / "pytorch_model.bin")
    refused(folder, r"1_LSTM/pytorch_model.bin is pickled")


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused(folder, value):
    tensors = load_file(folder / "1_LSTM" / "model.safetensors")
    next(iter(tensors.values())).view(-1)[0] = value
    save_file(tensors, folder / "1_LSTM" / "model.safetensors")
    refused(folder, "NaN or infinite")
