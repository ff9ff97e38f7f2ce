"""Scores of pairs are cosines, in the order of the pairs."""

import numpy as np
import pytest

from st_paragram.cli.main import main
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import TextError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools import score_files


@pytest.fixture
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 6), device="cpu")


def test_rows_that_cannot_be_scored_are_refused(model, tmp_path):
    source = tmp_path / "nul.tsv"
    source.write_bytes(b"ba\tce\nba\0\tce\n")
    with pytest.raises(TextError, match="1 rows have NUL bytes"):
        score_files.score_file(model, TextSource((str(source),), ("a", "b")), tmp_path / "y.tsv")
    assert not list(tmp_path.glob("y.tsv*"))


def test_scores_are_cosines_in_order(model, tmp_path, pairs):
    source = tmp_path / "pairs.tsv"
    source.write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:20]) + "\tba\n")
    report = score_files.score_file(
        model, TextSource((str(source),), ("a", "b")), tmp_path / "y.tsv"
    )
    assert (report.pairs, report.blank, report.unknown) == (21, 1, 0)
    rows = [line.split("\t") for line in (tmp_path / "y.tsv").read_text().splitlines()]
    assert [(a, b) for _, a, b in rows] == [*pairs[:20], ("", "ba")]
    assert rows[-1][0] == "0.000000"
    for score, a, b in rows[:-1]:
        x, y = model.encode([a, b])
        assert float(score) == pytest.approx(
            x @ y / np.linalg.norm(x) / np.linalg.norm(y), abs=2e-6
        )


def test_the_command(model, tmp_path, capsys):
    load_save.save(model, tmp_path / "m")
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("ba\tce\n")
    assert (
        main(
            [
                "score",
                str(pairs),
                "--model",
                str(tmp_path / "m"),
                "--output",
                str(tmp_path / "y.tsv"),
            ]
        )
        == 0
    )
    assert (tmp_path / "y.tsv").read_text().endswith("\tba\tce\n")
    pairs.write_text("ba ce\n")
    failing = [
        "score",
        str(pairs),
        "--model",
        str(tmp_path / "m"),
        "--output",
        str(tmp_path / "w.tsv"),
    ]
    assert main(failing) == 1
    assert "row 1 has 1 column" in capsys.readouterr().err
    assert not (tmp_path / "w.tsv").exists() and not (tmp_path / "w.tsv.part").exists()
