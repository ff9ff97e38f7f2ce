import json
import runpy
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from harness.mining import peers, scaling
from harness.mining.peers import agreement, read_scored
from harness.mining.process import WatchedMining
from harness.mining.simple import mine_baseline, mine_files_baseline, mine_paraphrases
from harness.processes import Run
from harness.texts import write_distinct
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import TextError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.bitext_mining.candidates import candidate_pairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.neighbors.exact import nearest_both_ways

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "mining.py"


def units(rng, rows, dim=16):
    vectors = rng.normal(size=(rows, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def write_rows(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def model(tmp_path, vocabulary):
    return model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu"), tmp_path / "tiny")


# --- texts


def test_texts_are_distinct_and_of_the_size_asked_for(tmp_path, pairs):
    bitext = write_rows(tmp_path / "bitext.tsv", pairs[:60])
    paths = write_distinct(bitext, tmp_path / "", 300)
    for column, path in enumerate(paths):
        lines = path.read_text().removesuffix("\n").split("\n")
        assert len(lines) == len(set(lines)) == 300
        assert lines[0] == pairs[0][column]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["300.source", "300.target", "bitext.tsv"]
    before = paths[0].read_bytes()
    assert write_distinct(bitext, tmp_path, 300) == paths and paths[0].read_bytes() == before


def test_a_bitext_of_blanks_gives_no_large_text(tmp_path):
    bitext = write_rows(tmp_path / "bitext.tsv", [("", "")])
    with pytest.raises(TextError, match="only 0 distinct sentences in column 1, not 1000"):
        write_distinct(bitext, tmp_path, 1000)


# --- agreement


def test_agreement_counts_both_ways():
    ours = {("a", "x"): 1.2, ("b", "y"): 1.1, ("c", "z"): 0.8}
    theirs = {("a", "x"): 1.21, ("b", "z"): 1.1}
    whole = agreement(ours, theirs)
    assert (whole.ours, whole.theirs) == (3, 2)
    assert (whole.ours_found, whole.theirs_found) == (pytest.approx(1 / 3), 0.5)
    assert whole.difference == pytest.approx(0.01)
    high = agreement(ours, theirs, 1.15)
    assert (high.ours, high.theirs, high.ours_found, high.theirs_found) == (1, 1, 1, 1)
    nothing = agreement(ours, theirs, 2)
    assert (nothing.ours, nothing.ours_found, nothing.difference) == (0, 1, 0)


def test_pairs_of_one_text_are_the_same_both_ways_round(tmp_path):
    one = write_rows(tmp_path / "one.tsv", [("0.500000", "b", "a")])
    other = write_rows(tmp_path / "other.tsv", [("0.500000", "a", "b")])
    assert read_scored(one, ordered=False) == read_scored(other, ordered=False) == {("a", "b"): 0.5}
    assert read_scored(one) != read_scored(other)
    with pytest.raises(TextError, match="line 1 has 2 columns"):
        read_scored(write_rows(tmp_path / "bad.tsv", [("0.5", "a")]))


# --- peers


@given(st.integers(0, 10_000), st.integers(4, 40), st.integers(4, 40), st.integers(1, 4))
def test_the_baseline_finds_what_the_margin_does(seed, n, m, k):
    pytest.importorskip("faiss")
    rng = np.random.default_rng(seed)
    # In a cone, where backgrounds are positive as those of sentences are.
    source, target = (np.abs(units(rng, rows)) for rows in (n, m))
    expected = candidate_pairs(*nearest_both_ways(source, target, k), Margin.RATIO)
    got = mine_baseline(source, target, k)
    assert [pair[1:] for pair in got] == list(zip(expected.source.tolist(), expected.target.tolist(), strict=True))
    assert [pair[0] for pair in got] == pytest.approx(expected.scores.tolist(), abs=1e-5)


def test_peers_write_what_they_find(tmp_path, model, pairs):
    pytest.importorskip("faiss")
    encoder = model_directory.load(model)
    bitext = write_rows(tmp_path / "bitext.tsv", pairs)
    source, target = write_distinct(bitext, tmp_path, 80)
    times = mine_files_baseline(source, source, encoder, tmp_path / "baseline.tsv")
    found = read_scored(tmp_path / "baseline.tsv")
    assert times["pairs"] == len(found) > 60
    assert all(one == other for one, other in list(found)[:60])  # a text beside itself
    count = mine_paraphrases(target, encoder, tmp_path / "peer.tsv", 3)
    found = read_scored(tmp_path / "peer.tsv", ordered=False)
    assert len(found) == count and 80 * 3 / 2 <= count <= 80 * 3
    assert max(found.values()) <= 1.00001


def test_rows_of_a_comparison_are_medians_and_ratios():
    runs = {
        "ours": [Run("", seconds, 100.0) for seconds in (1.0, 2.0, 9.0)],
        "theirs": [Run("", seconds, 250.0) for seconds in (3.0, 5.0, 4.0)],
    }
    comparison = peers.Comparison("bitext", runs, [agreement({("a", "b"): 1.0}, {("a", "b"): 1.0})])
    assert comparison.rows() == [
        ["ours", "2.0", "9.0", "100", "1.00", "1.00"],
        ["theirs", "4.0", "5.0", "250", "2.00", "2.50"],
    ]
    assert peers.agreement_rows(comparison.agreements) == [["all", "1", "1", "100.000 %", "100.000 %", "0.00000"]]
    run = asdict(comparison)["runs"]["theirs"][1]
    assert (run["seconds"], run["peak_anonymous_mb"]) == (5.0, 250.0)


# --- sizes


def watched(search=8.0, effort=None, recall=1.0):
    found = {"effort": effort, "recall": recall}
    one = {"index": "IVF64,SQfp16", "effort": found} if effort else {"index": None, "effort": None}
    report = {"seconds": {"embed": 2.0, "search": search}, "searched": [one, one], "pairs": 90}
    return WatchedMining(Run("", 12.0, 345.6), report)


def test_a_size_is_a_row():
    size = scaling.size_of(1000, watched())
    assert size.embedded_per_second == 1000 and size.recall == (1.0, 1.0)
    row = dict(zip(scaling.HEAD, scaling.size_row(size), strict=True))
    assert row["sentences a side"] == "1,000" and row["search"] == "8.0"
    assert (row["effort"], row["recall"], row["peak, MB"], row["embedded/s"]) == ("-", "1.0000", "346", "1,000")
    inexact = scaling.size_row(scaling.size_of(1000, watched(effort=8, recall=0.96)))
    assert inexact[-3:] == ["IVF64,SQfp16", "8", "0.9600"]
    assert scaling.growth([size]) == ["1,000: search, 67 % of the time"]


def test_a_plot_of_sizes(tmp_path):
    pytest.importorskip("matplotlib")
    sizes = [scaling.size_of(count, watched(count / 100)) for count in (1000, 3000)]
    path = scaling.plot_scaling(sizes, tmp_path / "a" / "s.png")
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_size > 5000


# --- the script


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["mining.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    return stopped.value.code


def test_the_script_measures_sizes(tmp_path, monkeypatch, capsys, model, pairs):
    pytest.importorskip("faiss")
    monkeypatch.setattr(scaling, "watch_mining", lambda texts, output, *_, **__: (output.touch(), watched())[1])
    bitext, file = write_rows(tmp_path / "bitext.tsv", pairs), tmp_path / "found.json"
    common = ["--model", model, "--bitext", bitext, "--folder", tmp_path, "--json", file]
    assert run(monkeypatch, "scaling", *common, "--sizes", 50, 80) == 0
    printed = capsys.readouterr().out
    assert "## Mining of N x N sentences, memory 4G" in printed and "| 80 |" in printed
    written = json.loads(file.read_text())
    assert written["part"] == "scaling" and written["options"]["model"] == str(model)
    assert [size["sentences"] for size in written["found"]["sizes"]] == [50, 80]


def test_the_script_reports_errors_in_a_line(tmp_path, monkeypatch, capsys, model):
    arguments = ["--model", model, "--bitext", tmp_path / "none.tsv"]
    assert run(monkeypatch, "scaling", *arguments, "--folder", tmp_path) == 1
    assert "No such file or directory; check the path" in capsys.readouterr().err
