import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram import Encoder
from st_paragram.cli.main import main
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import MiningError, SettingsError, TextError
from st_paragram.tools import score_files
from st_paragram.tools.bitext_mining.background import (
    Background,
    background_of_pairs,
    background_of_texts,
)
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MarginSettings
from st_paragram.tools.bitext_mining.threshold import (
    lowest_threshold,
    read_labels,
    suggest,
    table,
    wilson_lower,
)
from st_paragram.tools.neighbors.vectors import UnitRows

pytest.importorskip("faiss")
MODEL = Encoder()
FOLDER = "p-sp-mini"


@pytest.fixture
def file(tmp_path, pairs):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:200]), encoding="utf-8")
    return path


def units(texts):
    rows = MODEL.encode(texts).astype(float)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def plain_scores(pairs, source, target, k, margin):
    """Sentence by sentence, as the paper has it."""
    source, target = units(list(dict.fromkeys(source))), units(list(dict.fromkeys(target)))
    scores = []
    for first, second in pairs:
        x, y = units([first, second])
        around = (np.sort(target @ x)[-k:].sum() + np.sort(source @ y)[-k:].sum()) / (2 * k)
        scores.append(x @ y / max(around, 1e-6) if margin is Margin.RATIO else x @ y - around)
    return np.array(scores)


def read_scores(path):
    return [float(row.split("\t")[0]) for row in path.read_text(encoding="utf-8").split("\n")[:-1]]


def run(*arguments):
    return main(["score", *map(str, arguments)])


def test_scores_computed_by_hand():
    def text(*angles):
        """Unit vectors of the plane."""
        return UnitRows(np.array([[math.cos(a), math.sin(a)] for a in angles], np.float32))

    right_angle = math.pi / 2
    source, target = text(0, right_angle), text(0, math.pi / 3, -right_angle)
    one = np.array([[1, 0], [1, 0]], dtype=np.float32)
    other = np.array([[1, 0], [0.5, math.sqrt(0.75)]], dtype=np.float32)
    # source (angle 0) with its 2 nearest: (1 + 1/2) / 2; targets with theirs: (1 + 0) / 2 and (1/2
    # + sqrt 3/4) / 2
    around = [(0.75 + 0.5) / 2, (0.75 + (0.5 + math.sqrt(0.75)) / 2) / 2]
    ratio = Background(source, target, Margin.RATIO, 2)(one, other)
    np.testing.assert_allclose(ratio, [1 / around[0], 0.5 / around[1]], atol=1e-6)
    distance = Background(source, target, Margin.DISTANCE, 2)(one, other)
    np.testing.assert_allclose(distance, [1 - around[0], 0.5 - around[1]], atol=1e-6)


@pytest.mark.parametrize(("margin", "block"), [(Margin.RATIO, 7), (Margin.DISTANCE, 1 << 14)])
def test_scores_are_those_of_a_plain_computation(tmp_path, pairs, file, margin, block, monkeypatch):
    monkeypatch.setattr(score_files, "_PAIRS", block)
    texts = [[pair[side] for pair in pairs[300:500]] for side in (0, 1)]
    for name, lines in zip(("a", "b"), texts, strict=True):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    settings = MarginSettings(neighbors=3, margin=margin)
    scorer = background_of_texts(
        str(tmp_path / "a"), str(tmp_path / "b"), FOLDER, settings, tmp_path
    )
    score_files.score_file(
        MODEL, TextSource((str(file),), ("a", "b")), tmp_path / "y.tsv", scorer=scorer
    )
    want = plain_scores(pairs[:200], *texts, 3, margin)
    np.testing.assert_allclose(read_scores(tmp_path / "y.tsv"), want, rtol=2e-3, atol=2e-3)
    rows = (tmp_path / "y.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    assert [tuple(row.split("\t")[1:]) for row in rows] == pairs[:200]


def test_a_files_own_sides_are_its_background(tmp_path, pairs, file):
    settings, source = MarginSettings(margin=Margin.RATIO), TextSource((str(file),), ("a", "b"))
    scorer = background_of_pairs(source, FOLDER, settings, tmp_path, pairs[200:220])
    assert [len(scorer.source), len(scorer.target)] == [
        len({pair[side] for pair in pairs[:220]}) for side in (0, 1)
    ]
    got = [score for score, _, _ in score_files.score_pairs(MODEL, pairs[:200], scorer=scorer)]
    sides = [[pair[side] for pair in pairs[:220]] for side in (0, 1)]
    np.testing.assert_allclose(
        got, plain_scores(pairs[:200], *sides, 4, Margin.RATIO), rtol=2e-3, atol=2e-3
    )


def test_a_small_background_is_used_whole(tmp_path, caplog):
    few = tmp_path / "few"
    few.write_text("ba ce\nfo gu\nba ce\n")
    scorer = background_of_texts(
        str(few), str(few), FOLDER, MarginSettings(margin=Margin.RATIO), tmp_path
    )
    got = [
        score for score, _, _ in score_files.score_pairs(MODEL, [("ba ce", "fo gu")], scorer=scorer)
    ]
    sides = [["ba ce", "fo gu"]] * 2
    np.testing.assert_allclose(
        got, plain_scores([("ba ce", "fo gu")], *sides, 2, Margin.RATIO), rtol=2e-3, atol=2e-3
    )
    assert "few: too few sentences for 4 neighbors each; 2 used instead" in caplog.text


def test_backgrounds_that_cannot_be_one_are_refused(tmp_path, file):
    unknown = tmp_path / "unknown"
    unknown.write_text("გამარჯობა\n", encoding="utf-8")
    with pytest.raises(
        MiningError, match="unknown: too few distinct sentences with a token that the model knows"
    ):
        background_of_texts(str(unknown), str(unknown), FOLDER, MarginSettings(), tmp_path)
    with pytest.raises(SettingsError, match="both backgrounds are standard input"):
        background_of_texts("-", "-", FOLDER, MarginSettings(), tmp_path)
    with pytest.raises(SettingsError, match="cannot be read twice"):
        background_of_pairs(TextSource(("-",), ("a", "b")), FOLDER, MarginSettings(), tmp_path)


samples = st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=40)


@given(samples, st.sampled_from([0.1, 0.5, 0.9, 1.0]), st.booleans())
def test_the_lowest_threshold_is_that_of_trying_all(sample, precision, surely):
    scores, right = np.array([s / 8 for s, _ in sample]), np.array([r for _, r in sample])
    possible = []
    for threshold in set(scores.tolist()):
        taken = right[scores >= threshold]
        share = wilson_lower(taken.sum(), np.array(len(taken))) if surely else taken.mean()
        if share >= precision:
            possible.append(threshold)
    assert lowest_threshold(scores, right, precision, surely) == min(possible, default=math.inf)


def test_wilson_bound_of_published_values():
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81 of 263, 15 of 148, 0 of 20, 29 of 29
    low = wilson_lower(np.array([81, 15, 0, 29, 0]), np.array([263, 148, 20, 29, 0]))
    np.testing.assert_allclose(low, [0.2553, 0.0624, 0, 0.8830, 0], atol=5e-5)


def test_suggested_thresholds_by_hand():
    sample = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    right = np.array([True, True, True, False, True, False])
    precise, sure, best = suggest(sample, right, 0.8, np.array([0.95, 0.65, 0.5, 0.3]))
    assert (
        precise.sample.threshold,
        precise.sample.right,
        precise.sample.extracted,
        precise.kept,
    ) == (0.5, 4, 5, 3)
    assert (
        precise.sample.precision == 0.8
        and precise.sample.recall == 1
        and 30 < float(precise.row()[4]) < 40
    )
    assert math.isinf(sure.sample.threshold) and sure.kept == 0
    assert best.sample.threshold == pytest.approx(0.45) and best.sample.f1 == pytest.approx(8 / 9)
    text = table([precise, sure, best])
    assert "| precision 0.8 | 0.500000 | 4 of 5 | 80.0 |" in text and "3 (75.0 %)" in text
    assert "| precision 0.8, surely | none |" in text


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1\ta\tb\nyes\ta\tb\n", "row 2 has the label 'yes'"),
    ],
)
def test_labels_are_checked(tmp_path, rows, message):
    (tmp_path / "gold.tsv").write_text(rows)
    with pytest.raises(TextError, match=message):
        read_labels(str(tmp_path / "gold.tsv"))


def test_the_command(tmp_path, pairs, file, capsys):
    wrong = [(a, pairs[(i + 7) % 200][1]) for i, (a, _) in enumerate(pairs[:40])]
    gold = [f"1\t{a}\t{b}" for a, b in pairs[:40]] + [f"0\t{a}\t{b}" for a, b in wrong]
    (tmp_path / "gold.tsv").write_text("\n".join(gold), encoding="utf-8")
    out = tmp_path / "y.tsv"
    extra = ["--labels", tmp_path / "gold.tsv", "--precision", "0.6"]
    assert run(file, "--model", FOLDER, "--output", out, "--background", "self", *extra) == 0
    said = capsys.readouterr()
    assert "| precision 0.6 |" in said.out and "| best F1 |" in said.out and "200 pairs" in said.err
    scores = read_scores(out)
    assert len(scores) == 200
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gold.tsv", "pairs.tsv", "y.tsv"]
    # as it always was
    assert run(file, "--model", FOLDER, "--output", tmp_path / "cosines.tsv") == 0
    assert capsys.readouterr() == (
        "",
        f"{tmp_path / 'cosines.tsv'}: 200 pairs; 0 with a blank side\n",
    )
    want = [f"{score:.6f}" for score, _, _ in score_files.score_pairs(MODEL, pairs[:200])]
    got = (tmp_path / "cosines.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    assert [row.split("\t")[0] for row in got] == want


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--margin", "ratio"], "needs a background"),
        (["--margin", "absolute", "--background", "self"], "uses no background"),
        (["--background-source", "x", "--background-target", "y"], "No such file"),
        (["--background", "self", "--index", "PQ7"], "index 'PQ7' cannot be built from "),
    ],
)
def test_bad_commands_are_refused_in_a_line_and_leave_nothing(
    tmp_path, file, arguments, message, capsys
):
    assert run(file, "--model", FOLDER, "--output", tmp_path / "y.tsv", *arguments) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]
