import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.bitext_mining.candidates import ScoredPairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.threshold import best_threshold, extract
from st_paragram.tools.evaluation.bucc import (
    bucc_files,
    extractions,
    half_extractions,
    in_gold,
    mine,
    read_bucc,
    thresholds,
)
from st_paragram.tools.evaluation.files import ComparableTexts
from st_paragram.tools.evaluation.scores import read_scores


def write(folder, zh, en, gold, name):
    for ending, text in (("zh", zh), ("en", en), ("gold", gold)):
        (folder / f"{name}.{ending}").write_text(text)


def test_a_folder_gives_its_test_set_first(tmp_path):
    with pytest.raises(EvaluationError, match="no files of BUCC 2018; they are named like"):
        read_bucc(tmp_path)
    for name in ("training", "sample", "test"):
        (tmp_path / f"zh-en.{name}.gold").touch()
        assert bucc_files(tmp_path) == {"zh-en": tmp_path / f"zh-en.{name}"}
    (tmp_path / "de-en").mkdir()
    (tmp_path / "de-en" / "de-en.sample.gold").touch()
    assert bucc_files(tmp_path)["de-en"] == tmp_path / "de-en" / "de-en.sample"
    with pytest.raises(EvaluationError, match="no texts of fr, only de-en, zh-en"):
        read_bucc(tmp_path, ["fr"])


def test_f1_by_hand():
    scores, right = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([True, False, True, False, False])
    # of 4 gold pairs: cuts after 1 .. 5 candidates give F1 2/5, 2/6, 4/7, 4/8, 4/9
    threshold = best_threshold(scores, right, gold=4)
    assert threshold == pytest.approx(0.65)
    got = extract(scores, right, 4, threshold)
    assert (got.right, got.extracted, got.gold) == (2, 3, 4)
    assert (got.precision, got.recall, got.f1) == pytest.approx((2 / 3, 1 / 2, 4 / 7))
    assert got.f1 == pytest.approx(2 * got.precision * got.recall / (got.precision + got.recall))
    assert got.figures == {"threshold": threshold, "precision": got.precision, "recall": got.recall, "f1": got.f1}


def test_candidates_of_one_score_are_taken_together():
    scores, right = np.array([0.5, 0.5, 0.5, 0.2]), np.array([True, False, False, True])
    # all three of 0.5: F1 2/(3+2) = 0.4; all four: 4/(4+2)
    assert best_threshold(scores, right, gold=2) == 0.2
    assert best_threshold(scores[:3], right[:3], gold=1) == 0.5


def test_nothing_right_extracts_nothing():
    scores, right = np.array([0.5, 0.4]), np.array([False, False])
    threshold = best_threshold(scores, right, gold=3)
    assert threshold == math.inf
    got = extract(scores, right, 3, threshold)
    assert (got.extracted, got.precision, got.recall, got.f1) == (0, 0, 0, 0)
    assert best_threshold(scores[:0], right[:0], 3) == math.inf
    assert extract(scores, right, 0, 0.0).recall == 0


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30), st.integers(0, 5))
def test_no_threshold_is_better(candidates, missed):
    scores = np.array([score / 10 for score, _ in candidates])
    right = np.array([value for _, value in candidates])
    gold = int(right.sum()) + missed
    best = extract(scores, right, gold, best_threshold(scores, right, gold)).f1
    assert best == max([0.0] + [extract(scores, right, gold, score).f1 for score in scores])


def texts(n, gold):
    source, target = ({f"{language}-{row}": "" for row in range(n)} for language in ("zh", "en"))
    return ComparableTexts("t", source, target, np.array(gold, dtype=np.int64))


def test_gold_is_matched_by_both_rows():
    pairs = ScoredPairs(np.array([0, 1, 2]), np.array([0, 2, 1]), np.array([0.9, 0.8, 0.7]))
    assert in_gold(pairs, texts(3, [(0, 0), (1, 1), (2, 1)])).tolist() == [True, False, True]


def test_a_threshold_learned_elsewhere_is_applied():
    pairs = ScoredPairs(np.array([0, 1, 2]), np.array([0, 1, 2]), np.array([0.9, 0.8, 0.7]))
    mined, known = {Margin.RATIO: pairs}, texts(3, [(0, 0), (1, 1)])
    assert thresholds(mined, known)[Margin.RATIO] == pytest.approx(0.75)
    got = extractions(mined, known, {Margin.RATIO: 0.85})[Margin.RATIO]
    assert (got.threshold, got.precision, got.recall, got.f1) == pytest.approx((0.85, 1, 1 / 2, 2 / 3))


def test_halves_choose_on_one_and_count_on_the_other():
    n = 400
    right = np.arange(n) % 2 == 0
    scores = np.where(right, 0.6, 0.4) + np.random.default_rng(0).uniform(-0.15, 0.15, n)
    mined = {Margin.RATIO: ScoredPairs(np.arange(n), np.arange(n), scores)}
    known = texts(n, [(row, row) for row in range(0, n, 2)])
    one, again, other = (half_extractions(mined, known, seed)[Margin.RATIO] for seed in (0, 0, 1))
    oracle = extractions(mined, known, thresholds(mined, known))[Margin.RATIO]
    assert one == again != other
    assert 60 < one.gold < 140 and one.extracted < 160  # about half of 200 gold pairs
    assert 0.8 < one.f1 < 1 and abs(one.f1 - oracle.f1) < 0.1


def test_the_counted_half_does_not_choose():
    # Whatever stands in the counted half, the threshold stays: scores there are all above it or all below it.
    known = texts(100, [(row, row) for row in range(100)])
    pairs = ScoredPairs(np.arange(100), np.arange(100), np.linspace(0.5, 1, 100))
    threshold = half_extractions({Margin.RATIO: pairs}, known)[Margin.RATIO].threshold
    counted = np.array([half_gold(known, row) for row in range(100)])
    assert 30 < counted.sum() < 70
    for score in (0.0, 2.0):
        changed = ScoredPairs(pairs.source, pairs.target, np.where(counted, score, pairs.scores))
        got = half_extractions({Margin.RATIO: changed}, known)[Margin.RATIO]
        assert got.threshold == threshold and got.extracted == (counted.sum() if score else 0)


def half_gold(known, row):
    """Whether a source sentence is in the half that is counted."""
    alone = ComparableTexts("t", known.source, known.target, np.array([(row, row)]))
    pairs = ScoredPairs(np.array([row]), np.array([row]), np.array([1.0]))
    return bool(half_extractions({Margin.RATIO: pairs}, alone)[Margin.RATIO].gold)


def test_planted_pairs_are_found_by_every_margin():
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(60, 32)), rng.normal(size=(80, 32))
    target[:20] = source[:20] + 0.3 * rng.normal(size=(20, 32))
    source, target = (
        (side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32) for side in (source, target)
    )
    known = texts(80, [(row, row) for row in range(20)])
    mined = mine(source, target)
    got = extractions(mined, known, thresholds(mined, known))
    assert set(got) == set(Margin)
    assert [row.f1 for row in got.values()] == [1, 1, 1]
    # half of the candidates decide as well as all do
    assert all(row.f1 == 1 for row in half_extractions(mined, known).values())


def test_the_benchmark_says_how_thresholds_were_chosen(tmp_path, capsys, vocabulary, pairs):
    model = model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu"), tmp_path / "tiny")
    sentences = list(dict.fromkeys(first for first, _ in pairs))[:120]
    for name, part in (("sample", sentences[:60]), ("training", sentences[60:])):
        # the first 20 sentences of a side are the other's, the other 20 are not
        zh = "".join(f"zh-{row}\t{text}\n" for row, text in enumerate(part[:40]))
        en = "".join(f"en-{row}\t{text}\n" for row, text in enumerate(part[:20] + part[40:]))
        write(tmp_path, zh, en, "".join(f"zh-{row}\ten-{row}\n" for row in range(20)), f"zh-en.{name}")
    file = tmp_path / "bucc.json"
    command = ["evaluate", str(model), "--benchmarks", "bucc", "--data", str(tmp_path)]
    assert main([*command, "--languages", "zh", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "BUCC zh-en.sample: oracle threshold (chosen on the same gold)" in printed
    assert "threshold chosen on one half of the gold, scored on the other" in printed
    scores = {(score.set, score.measure): score for score in read_scores(file)}
    assert list(dict.fromkeys(name for name, _ in scores)) == ["zh-en", "zh-en half"]
    assert scores["zh-en", "ratio F1"].items == 20 > scores["zh-en half", "ratio F1"].items > 0
    assert scores["zh-en", "cosine F1"].value == 1
    assert all(scores["zh-en", f"{margin} F1"].value > 0.8 for margin in ("ratio", "distance"))
    trained = ["--train-gold", str(tmp_path / "zh-en.training.gold")]
    assert main([*command, *trained]) == 0
    printed = capsys.readouterr().out
    assert "zh-en.sample: threshold chosen on zh-en.training" in printed and "oracle" not in printed
    for end in ("zh", "en", "gold"):
        text = (tmp_path / f"zh-en.sample.{end}").read_text()
        (tmp_path / f"de-en.test.{end.replace('zh', 'de')}").write_text(text.replace("zh-", "de-"))
    assert main([*command, *trained]) == 1
    assert "--train-gold is of one pair of languages, not of de-en, zh-en" in capsys.readouterr().err
