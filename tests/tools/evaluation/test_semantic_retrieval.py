"""Semantic retrieval: MAP@100 by hand, and runs on made sets."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.benchmarks import report
from st_paragram.tools.evaluation.record import read_records
from st_paragram.tools.evaluation.retrieval_files import RetrievalSet, write_retrieval_set
from st_paragram.tools.evaluation.retrieval_groups import retrieval_set
from st_paragram.tools.evaluation.semantic_retrieval import average_precision, mean_average_precision, own_rows

SCRIPT = Path(__file__).parents[3] / "data_prep" / "make_retrieval_set.py"


def at(*degrees):
    """Unit vectors at these angles."""
    angles = np.deg2rad(np.array(degrees, np.float64))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def rows(*numbers):
    return np.array(numbers, np.int64)


def test_average_precision_by_hand():
    # hits at ranks 1, 3 and 4; a fourth one is not among the ranked
    got = average_precision(rows(7, 2, 5, 9, 4), rows(5, 7, 9, 30))
    assert got == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 4)
    assert average_precision(rows(1, 2), rows(3)) == 0
    assert average_precision(rows(3), rows(3)) == 1


def test_the_query_itself_is_no_candidate():
    corpus = at(0, 10, 25, 90)
    # Of query 0 the nearest are 1, 2, 3: row 2 is at rank 2. Of query 3: 2, 1, 0, and 0 is at rank 3.
    got = mean_average_precision(corpus[[0, 3]], corpus, [rows(2), rows(0)], [{0}, {3}])
    assert got == pytest.approx((1 / 2 + 1 / 3) / 2)
    # With nothing left out each finds itself first.
    assert mean_average_precision(corpus[[0]], corpus, [rows(2)], [set()]) == pytest.approx(1 / 3)


def test_precision_is_cut_and_divided_by_all_that_are_relevant():
    corpus = at(0, 1, 2, 3, 4, 5)
    relevant = [rows(1, 3, 5)]
    for cut, expected in ((1, 1 / 3), (2, 1 / 3), (3, (1 + 2 / 3) / 3), (100, (1 + 2 / 3 + 3 / 5) / 3)):
        assert mean_average_precision(corpus[:1], corpus, relevant, [{0}], cut) == pytest.approx(expected)


def test_the_hundredth_candidate_is_the_last_that_counts():
    corpus = at(*np.linspace(0, 80, 103))  # the query and 102 others, each farther
    assert mean_average_precision(corpus[:1], corpus, [rows(100)], [{0}]) == pytest.approx(1 / 100)
    assert mean_average_precision(corpus[:1], corpus, [rows(101)], [{0}]) == 0
    # more than 100 relevant ones: all of the first 100 are, of 102
    assert mean_average_precision(corpus[:1], corpus, [np.arange(1, 103)], [{0}]) == pytest.approx(100 / 102)


def test_a_query_is_known_by_its_id_or_its_text():
    corpus = {"a": "one", "b": "two", "c": "one", "d": "three"}
    relevant = (rows(1, 2), rows(3))
    found = RetrievalSet("set", {"a": "one", "q": "two"}, corpus, ("",) * 4, relevant)
    assert own_rows(found) == [{0, 2}, {1}]
    alone = RetrievalSet("set", {"a": "one"}, corpus, ("",) * 4, (rows(2),))
    with pytest.raises(EvaluationError, match="query 'a' finds only itself"):
        own_rows(alone)


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary):
    untrained = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    return model_directory.save(untrained, tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def texts(pairs):
    return list(dict.fromkeys(first for first, _ in pairs))[:12]


def test_the_command_prints_and_records(tmp_path, model, texts, capsys):
    # A sentence and its double with another end have nearly one vector; all others are candidates alone.
    corpus = {f"s{row}": text for row, text in enumerate([*texts, f"{texts[0]} {texts[0]}"])}
    write_retrieval_set(retrieval_set("made", corpus, [("s0", "s12")]), tmp_path / "data" / "made")
    file = tmp_path / "record.json"
    options = ("--data", str(tmp_path / "data"), "--untrained", "--json", str(file))
    assert main(["evaluate", str(model), "--benchmarks", "semantic-retrieval", *options]) == 0
    printed = capsys.readouterr().out
    assert f"| {model} | 100.0 |" in printed and "made has 2 queries and 13 candidates." in printed
    assert "published" not in printed
    (record,) = read_records(file)
    assert list(record.run.models) == [str(model), "untrained"]
    assert record.run.models[str(model)].sets["made"].mean_average_precision == 1
    assert all(part in printed for part in report(record.run))
    assert main(["evaluate", str(model), "--data", str(tmp_path / "data"), "--limit", "1"]) == 0
    assert "made has 1 queries and 13 candidates." in capsys.readouterr().out


def test_sets_are_made_of_pairs(tmp_path, model, texts, monkeypatch, capsys):
    pairs, made = tmp_path / "pairs.tsv", tmp_path / "data" / "kept"
    pairs.write_text(f"{texts[0]}\t{texts[0]} {texts[0]}\n" + "".join(f"{text}\n" for text in texts[1:]))
    monkeypatch.setattr(sys, "argv", ["make_retrieval_set", "--pairs", str(pairs), "--output", str(made)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 0 and capsys.readouterr().out == "2 queries, 13 candidates\n"
    arguments = ["evaluate", str(model), "--data", str(made.parent), "--benchmarks", "semantic-retrieval"]
    assert main(arguments) == 0
    assert "kept has 2 queries and 13 candidates." in capsys.readouterr().out
    assert main([*arguments, "--limit", "0"]) == 1
    assert "a limit of 0 queries" in capsys.readouterr().err
