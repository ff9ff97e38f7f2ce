import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.tools.bitext_mining.candidates import ScoredPairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.threshold import best_threshold, extract
from st_paragram.tools.evaluation.bucc import (
    BuccData,
    ComparableTexts,
    by_halves,
    find,
    in_gold,
    score,
    tables,
)


def test_a_folder_gives_its_test_set_first(tmp_path, write):
    for name in ("training", "sample", "test"):
        write(tmp_path / f"zh-en.{name}.gold", "")
        assert find(tmp_path, "bucc") == {"zh-en": tmp_path / f"zh-en.{name}"}
    write(tmp_path / "de-en" / "de-en.sample.gold", "")
    assert find(tmp_path, "bucc")["de-en"] == tmp_path / "de-en" / "de-en.sample"


def test_f1_and_thresholds_by_hand():
    scores, right = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([True, False, True, False, False])
    # of 4 gold pairs: cuts after 1 .. 5 candidates give F1 2/5, 2/6, 4/7, 4/8, 4/9
    threshold = best_threshold(scores, right, gold=4)
    got = extract(scores, right, 4, threshold)
    assert threshold == pytest.approx(0.65) and (got.right, got.extracted, got.gold) == (2, 3, 4)
    assert got.figures == pytest.approx(
        {"threshold": 0.65, "precision": 2 / 3, "recall": 1 / 2, "f1": 4 / 7}
    )
    # Candidates of one score are taken together: all three of 0.5 have F1 2/(3+2) = 0.4; all four
    # 4/(4+2).
    scores, right = np.array([0.5, 0.5, 0.5, 0.2]), np.array([True, False, False, True])
    assert (
        best_threshold(scores, right, gold=2) == 0.2
        and best_threshold(scores[:3], right[:3], gold=1) == 0.5
    )
    # Nothing is right: nothing is extracted.
    scores, right = np.array([0.5, 0.4]), np.array([False, False])
    threshold = best_threshold(scores, right, gold=3)
    got = extract(scores, right, 3, threshold)
    assert (threshold, got.extracted, got.precision, got.recall, got.f1) == (math.inf, 0, 0, 0, 0)
    assert (
        best_threshold(scores[:0], right[:0], 3) == math.inf
        and extract(scores, right, 0, 0.0).recall == 0
    )


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30),
    st.integers(0, 5),
)
def test_no_threshold_is_better(candidates, missed):
    scores = np.array([score / 10 for score, _ in candidates])
    right = np.array([value for _, value in candidates])
    gold = int(right.sum()) + missed
    best = extract(scores, right, gold, best_threshold(scores, right, gold)).f1
    assert best == max([0.0] + [extract(scores, right, gold, score).f1 for score in scores])


def texts_of(n, m, gold):
    source, target = (
        {f"{side}-{row}": f"{side}{row}" for row in range(size)}
        for side, size in (("zh", n), ("en", m))
    )
    return ComparableTexts("t", source, target, np.array(gold, dtype=np.int64))


def test_gold_is_matched_by_both_rows():
    pairs = ScoredPairs(np.array([0, 1, 2]), np.array([0, 2, 1]), np.array([0.9, 0.8, 0.7]))
    assert in_gold(pairs, texts_of(3, 3, [(0, 0), (1, 1), (2, 1)])).tolist() == [True, False, True]


def test_a_threshold_of_one_half_is_scored_on_the_other():
    rows, right = np.arange(400), np.arange(400) % 2 == 0
    known = texts_of(400, 400, [(row, row) for row in rows[right]])
    scores = np.where(right, 0.6, 0.4) + np.random.default_rng(0).uniform(-0.15, 0.15, 400)
    pairs = ScoredPairs(rows, rows, scores)
    one, again, other = (by_halves(pairs, right, known, seed) for seed in (0, 0, 1))
    oracle = extract(scores, right, 200, best_threshold(scores, right, 200))
    assert one == again != other and 60 < one.gold < 140  # about half of 200 gold pairs
    assert 0.8 < one.f1 < 1 and abs(one.f1 - oracle.f1) < 0.1
    # Whatever the scores of the half that is counted are, the threshold stays.
    nothing = ScoredPairs(rows[:0], rows[:0], scores[:0])
    alone = [
        ComparableTexts("t", known.source, known.target, np.array([(row, row)])) for row in rows
    ]
    counted = np.array([bool(by_halves(nothing, right[:0], of).gold) for of in alone])
    for score_there in (0.0, 2.0):
        got = by_halves(
            ScoredPairs(rows, rows, np.where(counted, score_there, scores)), right, known
        )
        assert got.threshold == one.threshold and got.extracted == (
            counted.sum() if score_there else 0
        )


def test_planted_pairs_are_found_by_every_margin_and_thresholds_may_be_learned_elsewhere(named):
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(60, 32)), rng.normal(size=(80, 32))
    target[:20] = source[:20] + 0.3 * rng.normal(size=(20, 32))
    known = texts_of(60, 80, [(row, row) for row in range(20)])
    vectors = {f"zh{row}": of for row, of in enumerate(source)} | {
        f"en{row}": of for row, of in enumerate(target)
    }
    found = {
        (s.set, s.measure): s.value for s in score("m", named(vectors), BuccData({"zh-en": known}))
    }
    f1 = {name: value for name, value in found.items() if name[1].endswith(" F1")}
    # half of the candidates decide as well as all do
    assert len(f1) == 2 * len(Margin) and set(f1.values()) == {1}
    learned = {
        (s.set, s.measure): s.value
        for s in score("m", named(vectors), BuccData({"zh-en": known}, known))
    }
    assert learned == {name: value for name, value in found.items() if name[0] == "zh-en"}


def test_the_benchmark_says_how_thresholds_were_chosen(tmp_path, tiny, texts, write, evaluate):
    for name, part in (
        ("zh-en.sample", texts[:60]),
        ("zh-en.training", texts[60:120]),
        ("de-en.test", texts[:60]),
    ):
        # its first 20 sentences are those of the other side, and its other 20 are not
        side = name[:2]
        write(
            tmp_path / f"{name}.{side}",
            [(f"{side}-{row}", text) for row, text in enumerate(part[:40])],
        )
        write(
            tmp_path / f"{name}.en",
            [(f"en-{row}", text) for row, text in enumerate(part[:20] + part[40:])],
        )
        write(tmp_path / f"{name}.gold", [(f"{side}-{row}", f"en-{row}") for row in range(20)])
    command = [tiny, "--benchmarks", "bucc", "--data", tmp_path]
    printed, scores = evaluate(*command, "--languages", "zh")
    assert "BUCC zh-en.sample: oracle threshold (chosen on the same gold)" in printed
    assert "threshold chosen on one half of the gold, scored on the other" in printed
    scores = {(score.set, score.measure): score for score in scores}
    assert scores["zh-en", "ratio F1"].items == 20 > scores["zh-en half", "ratio F1"].items > 0
    assert scores["zh-en", "cosine F1"].value == 1 and scores["zh-en", "ratio F1"].value > 0.8
    trained = ["--train-gold", tmp_path / "zh-en.training.gold"]
    printed, _ = evaluate(*command, "--languages", "zh", *trained)
    assert "zh-en.sample: threshold chosen on zh-en.training" in printed and "oracle" not in printed
    assert "applies to one language pair, not to de-en, zh-en; choose" in evaluate(
        *command, *trained, refused=True
    )


def test_published_rows_are_next_to_the_languages_that_have_them(named):
    side = {"d1": "x", "d2": "y"}
    data = BuccData(
        {"de-en": ComparableTexts("de-en.test", side, side, np.array([[0, 0], [1, 1]]))}
    )
    model = named({"x": np.array([1.0, 0]), "y": np.array([0.0, 1])})
    *_, last = tables(list(score("m", model, data)), data)
    assert last.startswith("### BUCC: F1 x 100 by cosine, with published rows")
    assert "| m | 100.0 |" in last and "| SP 40k (published, ACL 2019) | 77.5 |" in last
    assert "not compared with these data" in last
