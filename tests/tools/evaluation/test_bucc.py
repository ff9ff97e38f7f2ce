import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError
from st_paragram.tools.bitext_mining.candidates import ScoredPairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.threshold import best_threshold, extract
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.bucc import bucc_files, by_halves, in_gold, read, score
from st_paragram.tools.evaluation.files import ComparableTexts
from st_paragram.tools.evaluation.scores import read_scores


def write(folder, zh, en, gold, name):
    for ending, text in (("zh", zh), ("en", en), ("gold", gold)):
        (folder / f"{name}.{ending}").write_text(text)


def test_a_folder_gives_its_test_set_first(tmp_path):
    with pytest.raises(EvaluationError, match="no files of BUCC; they are named like"):
        read(Request([], data=tmp_path))
    for name in ("training", "sample", "test"):
        (tmp_path / f"zh-en.{name}.gold").touch()
        assert bucc_files(tmp_path) == {"zh-en": tmp_path / f"zh-en.{name}"}
    (tmp_path / "de-en").mkdir()
    (tmp_path / "de-en" / "de-en.sample.gold").touch()
    assert bucc_files(tmp_path)["de-en"] == tmp_path / "de-en" / "de-en.sample"
    with pytest.raises(EvaluationError, match="no texts of fr, only de-en, zh-en"):
        read(Request([], data=tmp_path, languages=["fr"]))


def test_f1_and_thresholds_by_hand():
    scores, right = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([True, False, True, False, False])
    # of 4 gold pairs: cuts after 1 .. 5 candidates give F1 2/5, 2/6, 4/7, 4/8, 4/9
    threshold = best_threshold(scores, right, gold=4)
    got = extract(scores, right, 4, threshold)
    assert threshold == pytest.approx(0.65) and (got.right, got.extracted, got.gold) == (2, 3, 4)
    assert got.figures == pytest.approx({"threshold": 0.65, "precision": 2 / 3, "recall": 1 / 2, "f1": 4 / 7})
    # Candidates of one score are taken together: all three of 0.5 have F1 2/(3+2) = 0.4; all four 4/(4+2).
    scores, right = np.array([0.5, 0.5, 0.5, 0.2]), np.array([True, False, False, True])
    assert best_threshold(scores, right, gold=2) == 0.2 and best_threshold(scores[:3], right[:3], gold=1) == 0.5
    # Nothing is right: nothing is extracted.
    scores, right = np.array([0.5, 0.4]), np.array([False, False])
    threshold = best_threshold(scores, right, gold=3)
    got = extract(scores, right, 3, threshold)
    assert (threshold, got.extracted, got.precision, got.recall, got.f1) == (math.inf, 0, 0, 0, 0)
    assert best_threshold(scores[:0], right[:0], 3) == math.inf and extract(scores, right, 0, 0.0).recall == 0


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30), st.integers(0, 5))
def test_no_threshold_is_better(candidates, missed):
    scores = np.array([score / 10 for score, _ in candidates])
    right = np.array([value for _, value in candidates])
    gold = int(right.sum()) + missed
    best = extract(scores, right, gold, best_threshold(scores, right, gold)).f1
    assert best == max([0.0] + [extract(scores, right, gold, score).f1 for score in scores])


def texts_of(n, gold):
    source, target = ({f"{language}-{row}": f"{language}{row}" for row in range(n)} for language in ("zh", "en"))
    return ComparableTexts("t", source, target, np.array(gold, dtype=np.int64))


def test_gold_is_matched_by_both_rows():
    pairs = ScoredPairs(np.array([0, 1, 2]), np.array([0, 2, 1]), np.array([0.9, 0.8, 0.7]))
    assert in_gold(pairs, texts_of(3, [(0, 0), (1, 1), (2, 1)])).tolist() == [True, False, True]


def test_halves_choose_on_one_and_count_on_the_other():
    known = texts_of(400, [(row, row) for row in range(0, 400, 2)])
    right = np.arange(400) % 2 == 0
    scores = np.where(right, 0.6, 0.4) + np.random.default_rng(0).uniform(-0.15, 0.15, 400)
    pairs = ScoredPairs(np.arange(400), np.arange(400), scores)
    one, again, other = (by_halves(pairs, right, known, seed) for seed in (0, 0, 1))
    oracle = extract(scores, right, 200, best_threshold(scores, right, 200))
    assert one == again != other and 60 < one.gold < 140 and one.extracted < 160  # about half of 200 gold pairs
    assert 0.8 < one.f1 < 1 and abs(one.f1 - oracle.f1) < 0.1


def test_the_counted_half_does_not_choose():
    # Whatever stands in the counted half, the threshold stays: scores there are all above it or all below it.
    known, rows, right = texts_of(100, [(row, row) for row in range(100)]), np.arange(100), np.full(100, True)
    scores = np.linspace(0.5, 1, 100)
    threshold = by_halves(ScoredPairs(rows, rows, scores), right, known).threshold
    nothing = ScoredPairs(rows[:0], rows[:0], scores[:0])
    alone = [ComparableTexts("t", known.source, known.target, np.array([(row, row)])) for row in rows]
    counted = np.array([bool(by_halves(nothing, right[:0], of).gold) for of in alone])
    assert 30 < counted.sum() < 70
    for score_there in (0.0, 2.0):
        changed = ScoredPairs(rows, rows, np.where(counted, score_there, scores))
        got = by_halves(changed, right, known)
        assert got.threshold == threshold and got.extracted == (counted.sum() if score_there else 0)


def test_planted_pairs_are_found_by_every_margin_and_thresholds_may_be_learned_elsewhere(named):
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(60, 32)), rng.normal(size=(80, 32))
    target[:20] = source[:20] + 0.3 * rng.normal(size=(20, 32))
    known = texts_of(80, [(row, row) for row in range(20)])
    known = ComparableTexts("t", dict(list(known.source.items())[:60]), known.target, known.gold)
    vectors = {f"zh{row}": of for row, of in enumerate(source)} | {f"en{row}": of for row, of in enumerate(target)}
    found = {(s.set, s.measure): s.value for s in score("m", named(vectors), ({"zh-en": known}, None))}
    f1 = {name: value for name, value in found.items() if name[1].endswith(" F1")}
    assert len(f1) == 2 * len(Margin) and set(f1.values()) == {1}  # half of the candidates decide as well as all do
    learned = {(s.set, s.measure): s.value for s in score("m", named(vectors), ({"zh-en": known}, known))}
    assert learned == {name: value for name, value in found.items() if name[0] == "zh-en"}


def test_the_benchmark_says_how_thresholds_were_chosen(tmp_path, capsys, tiny, texts):
    for name, part in (("sample", texts[:60]), ("training", texts[60:120])):
        # the first 20 sentences of a side are the other's, the other 20 are not
        zh = "".join(f"zh-{row}\t{text}\n" for row, text in enumerate(part[:40]))
        en = "".join(f"en-{row}\t{text}\n" for row, text in enumerate(part[:20] + part[40:]))
        write(tmp_path, zh, en, "".join(f"zh-{row}\ten-{row}\n" for row in range(20)), f"zh-en.{name}")
    file = tmp_path / "bucc.json"
    command = ["evaluate", str(tiny), "--benchmarks", "bucc", "--data", str(tmp_path)]
    assert main([*command, "--languages", "zh", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "BUCC zh-en.sample: oracle threshold (of the same gold)" in printed
    assert "threshold chosen on one half of the gold, scored on the other" in printed
    scores = {(score.set, score.measure): score for score in read_scores(file)}
    assert scores["zh-en", "ratio F1"].items == 20 > scores["zh-en half", "ratio F1"].items > 0
    assert scores["zh-en", "cosine F1"].value == 1 and scores["zh-en", "ratio F1"].value > 0.8
    trained = ["--train-gold", str(tmp_path / "zh-en.training.gold")]
    assert main([*command, *trained]) == 0
    printed = capsys.readouterr().out
    assert "zh-en.sample: threshold chosen on zh-en.training" in printed and "oracle" not in printed
    for end in ("zh", "en", "gold"):
        text = (tmp_path / f"zh-en.sample.{end}").read_text()
        (tmp_path / f"de-en.test.{end.replace('zh', 'de')}").write_text(text.replace("zh-", "de-"))
    assert main([*command, *trained]) == 1
    assert "--train-gold is of one pair of languages, not of de-en, zh-en" in capsys.readouterr().err
