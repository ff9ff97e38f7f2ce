"""`st-paragram import`: from the command line to a model that other commands read."""

from __future__ import annotations

import pytest
import torch
from support.original import make_checkpoint, vocabulary_of

from st_paragram.cli.main import main


@pytest.fixture
def files(tmp_path, vocabulary, pairs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pieces.model").write_bytes(vocabulary.content)
    tokens = [vocabulary.processor.encode_as_pieces(text) for pair in pairs[:300] for text in pair]
    checkpoint = make_checkpoint(vocabulary_of([*tokens, ["▁", "字字"]]), sp_model="pieces.model")
    torch.save(checkpoint, "model.pt")
    return checkpoint


def test_imports_and_says_what_was_left_out(files, capsys):
    assert main(["import", "model.pt", "pieces.model", "--output", "p-sp", "--name", "theirs"]) == 0
    said = capsys.readouterr().err
    rows = len(files["vocab"]) - 1
    assert f"p-sp: {rows - 1:,} rows of epoch 10, 6 dimensions\n" in said
    assert f"p-sp: 1 of {rows:,} rows ({1 / rows:.2%}) are left out" in said
    assert "p-sp: texts are lower-cased\n" in said
    checkpoint = ["model.pt", "pieces.model"]
    assert main(["import", *checkpoint, "--output", "cased", "--no-lower-case"]) == 0
    assert "cased: texts keep their case\n" in capsys.readouterr().err
    assert main(["info", "cased", "--check"]) == 0
    assert main(["export", "cased", "small", "--dtype", "int8"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model.pt"], "also give that file"),
        (
            ["model.pt", "pieces.model", "--dim", "3"],
            "--dim does not apply to a checkpoint; leave it out",
        ),
        (
            ["use", "--weights", "w.npz"],
            "--weights and --sentencepiece belong together; give both or neither",
        ),
    ],
)
def test_refused_in_one_line(files, tmp_path, arguments, message, capsys):
    assert main(["import", *arguments, "--output", "new"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("st-paragram import: ") and message in said and said.count("\n") == 1
    assert not (tmp_path / "new").exists()
