"""Checkpoints of strangers: nothing in them is executed, and what is wrong with them is told in one line."""

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
    assert message.startswith((f"{path}: ", f"{path} is a folder")) and "\n" not in message and len(message) < 700
    return message


@pytest.mark.parametrize("legacy", [False, True])
def test_both_formats_are_read(tmp_path, legacy):
    saved = make_checkpoint(VOCABULARY, lower_case=0, lr=0.001)
    found = read_checkpoint(save(tmp_path / "model.pt", saved, legacy))
    assert torch.equal(found.table, saved["state_dict"]["embedding.weight"])
    assert (found.vocabulary, found.epoch, found.unknown_row) == (VOCABULARY, 10, 3)
    assert found.arguments == vars(saved["args"])


def test_what_a_process_has_allowed_is_not_allowed_here(tmp_path):
    path = save(tmp_path / "model.pt", {**make_checkpoint(VOCABULARY), "epoch": _Nested()})
    with torch.serialization.safe_globals([_Nested]):
        before = set(torch.serialization.get_safe_globals())
        assert "_Nested" in refused(path)
        assert set(torch.serialization.get_safe_globals()) == before


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
@pytest.mark.parametrize("share", [0, 0.3, 0.999])
def test_files_that_were_cut_off_are_refused(tmp_path, legacy, share):
    whole = save(tmp_path / "whole.pt", make_checkpoint(VOCABULARY, dim=200), legacy).read_bytes()
    path = tmp_path / "model.pt"
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "not a checkpoint, or cut off or damaged" in refused(path)


def test_other_files_are_refused(tmp_path):
    assert refused(tmp_path / "none.pt").endswith("no such file or directory; check the path")
    assert refused(tmp_path).endswith("is a folder, where a file is expected; name a file")
    (tmp_path / "text.pt").write_text("hello\n" * 100)
    assert "not a checkpoint" in refused(tmp_path / "text.pt")
    assert "a Tensor, but a checkpoint has" in refused(save(tmp_path / "tensor.pt", torch.zeros(3)))
    assert "a dictionary of ['model'], but" in refused(save(tmp_path / "other.pt", {"model": 1}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"state_dict": {}}, "has no tensor embedding.weight"),
        ({"state_dict": {"embedding.weight": torch.zeros(4)}}, r"of shape \(4,\); rows of numbers are expected"),
        ({"state_dict": {"embedding.weight": torch.zeros(4, 2, dtype=torch.int64)}}, "torch.int64"),
        ({"state_dict": {"embedding.weight": torch.zeros(1).expand(4, 1 << 40)}}, "is larger than the file"),
        ({"state_dict": {"embedding.weight": torch.full((4, 2), float("nan"))}}, "row 0: NaN, infinite or huge"),
        (
            {"state_dict": {"embedding.weight": torch.zeros(4, 2), "lstm.weight_ih_l0": torch.zeros(1)}},
            r"\['lstm.weight_ih_l0'\].*only checkpoints that average",
        ),
        ({"vocab": ["▁ba"]}, "is not a dictionary of strings with a row for UUUNKKK"),
        ({"vocab": {**VOCABULARY, "x": 4}}, "vocab maps 'x' to 4; give strings, and rows below 4"),
        ({"vocab": {**VOCABULARY, "x": 1.0}}, r"maps 'x' to 1\.0; give strings"),
        ({"vocab": {**VOCABULARY, "a\ud800": 1}}, r"vocab names 'a\\ud800', which is not text \(half a character\)"),
        ({"args": 3}, "its args are a int"),
    ],
)
def test_what_is_no_checkpoint_of_averages_is_refused(tmp_path, change, message):
    path = save(tmp_path / "model.pt", {**make_checkpoint(VOCABULARY), **change})
    with pytest.raises(ModelDirectoryError, match=message):
        read_checkpoint(path)


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        ({"pool": "max"}, None, "pool='max'; only the mean"),
        ({"zero_unk": 0}, None, "zero_unk=0; only models that drop"),
        ({"share_vocab": 0}, None, "share_vocab=0; a model with a table for each language"),
        ({"ngrams": 4}, None, "ngrams=4; only windows of 3"),
        ({"ngrams": 3}, "pieces.model", "leave the sentencepiece file out"),
        ({"sp_model": "x.model"}, None, r"args name 'x\.model'\); give that file, too"),
    ],
)
def test_models_of_other_kinds_are_refused(vocabulary, tmp_path, monkeypatch, arguments, given, message):
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
