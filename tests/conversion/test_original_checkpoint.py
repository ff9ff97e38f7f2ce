"""Checkpoints of strangers: nothing in them is executed, and what is wrong with them is told in one
line.
"""

from __future__ import annotations

import builtins
import os
import pickle

import pytest
import torch
from support.original import make_checkpoint

from st_paragram.conversion.original_checkpoint import read_checkpoint
from st_paragram.conversion.original_import import ImportSettings, import_checkpoint
from st_paragram.errors import ModelDirectoryError

VOCABULARY = {"▁ba": 0, "▁ce": 1, "di": 2, "UUUNKKK": 3}


def save(path, checkpoint, legacy=False):
    torch.save(checkpoint, path, _use_new_zipfile_serialization=not legacy)
    return path


def refused(path):
    with pytest.raises(ModelDirectoryError) as caught:
        read_checkpoint(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message and len(message) < 700
    return message


class _Attack:
    """Pickles as a call of a function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


class _Nested:
    """A class of somebody's own, deep inside."""


@pytest.mark.parametrize("legacy", [False, True, None], ids=["zip", "legacy", "plain pickle"])
@pytest.mark.parametrize("kind", ["system", "eval", "exec", "nested", "getattr"])
def test_malicious_pickles_are_refused_without_being_executed(tmp_path, legacy, kind, monkeypatch):
    mark = tmp_path / "executed"
    code = f"open({str(mark)!r}, 'w').close()"
    attacks = {
        "system": (_Attack(os.system, f"touch {mark}"), os.system.__module__ + ".system"),
        "eval": (_Attack(builtins.eval, code), "eval"),
        "exec": (_Attack(builtins.exec, code), "exec"),
        "nested": ({"a": [{"b": (_Nested(), 1)}]}, "_Nested"),
        "getattr": (_Attack(getattr, VOCABULARY, "clear"), "getattr"),
    }
    attack, name = attacks[kind]
    checkpoint = {**make_checkpoint(VOCABULARY), "epoch": attack}
    path = tmp_path / "model.pt"
    if legacy is None:
        path.write_bytes(pickle.dumps({"vocab": VOCABULARY, "epoch": attack}, protocol=2))
    else:
        save(path, checkpoint, legacy)
    message = refused(path)
    assert name in message and "nothing was executed" in message
    assert not mark.exists()


@pytest.mark.parametrize("legacy", [False, True])
def test_files_that_were_cut_off_are_refused(tmp_path, legacy):
    path = save(tmp_path / "model.pt", make_checkpoint(VOCABULARY, dim=200), legacy)
    path.write_bytes((whole := path.read_bytes())[: len(whole) // 2])
    assert "not a checkpoint, or damaged" in refused(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state_dict": {}}, "has no tensor embedding.weight"),
        (
            {"state_dict": {"embedding.weight": torch.zeros(1).expand(4, 1 << 40)}},
            "not rows of numbers in the file",
        ),
        (
            {"state_dict": {"embedding.weight": torch.full((4, 2), float("nan"))}},
            "row 0: NaN, infinite or huge",
        ),
        (
            {
                "state_dict": {
                    "embedding.weight": torch.zeros(4, 2),
                    "lstm.weight_ih_l0": torch.zeros(1),
                }
            },
            r"\['lstm.weight_ih_l0'\].*only checkpoints that average",
        ),
        ({"vocab": {**VOCABULARY, "x": 4}}, "vocab maps 'x' to 4, not a string to a row below 4"),
    ],
)
def test_what_is_no_checkpoint_of_averages_is_refused(tmp_path, change, message):
    path = save(tmp_path / "model.pt", {**make_checkpoint(VOCABULARY), **change})
    with pytest.raises(ModelDirectoryError, match=message):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        ({"pool": "max"}, None, "pool='max', but only checkpoints with pool='mean'"),
        ({"share_vocab": 0}, None, "share_vocab=0, but only checkpoints"),
        ({"ngrams": 3}, "pieces.model", "leave out the sentencepiece file"),
        ({"sp_model": "x.model"}, None, r"args name 'x\.model'\); also give that file"),
    ],
)
def test_models_of_other_kinds_are_refused(
    vocabulary, tmp_path, monkeypatch, arguments, given, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pieces.model").write_bytes(vocabulary.content)
    path = save(tmp_path / "model.pt", make_checkpoint(VOCABULARY, **arguments))
    with pytest.raises(ModelDirectoryError, match=message):
        import_checkpoint(path, "new", given)
    assert not (tmp_path / "new").exists()


def test_what_is_asked_for_goes_before_what_the_checkpoint_says(tmp_path):
    pytest.importorskip("sacremoses")
    path = save(tmp_path / "model.pt", make_checkpoint(VOCABULARY, tokenize=1, dropout=2.0))
    for wanted, found in (
        (ImportSettings(), (True, "en")),
        (ImportSettings(lower_case=False, moses="de"), (False, "de")),
        (ImportSettings(moses="none"), (True, None)),
    ):
        report = import_checkpoint(path, tmp_path / "new", settings=wanted, overwrite=True)
        assert (report.lower_case, report.moses) == found
