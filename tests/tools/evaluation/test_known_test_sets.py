import json
import random
import runpy
import sys
from pathlib import Path

import pytest

from st_paragram.tools.evaluation import known_test_sets
from st_paragram.tools.evaluation.known_test_sets import (
    known_test_set_in,
    pair_hashes,
    sketch,
    write_known_test_sets,
)

ROOT = Path(__file__).parents[3]
READ = known_test_sets._known  # the tests replace it


def sentences(name, count):
    """`count` pairs, as two lists."""
    return [f"{name}, sentence {i}: don't!" for i in range(count)], [
        f"{name} number {i}" for i in range(count)
    ]


def joined(*parts):
    return [[text for part in parts for text in part[side]] for side in (0, 1)]


def cut(pairs, start, stop):
    return [side[start:stop] for side in pairs]


DEVELOPMENT = sentences("development", 300)
SHARED = cut(DEVELOPMENT, 0, 75)  # a test set that the development set holds
SETS = {"big": sentences("big", 1000), "small": sentences("small", 40), "shared": SHARED}
OTHERS = sentences("other", 400)


@pytest.fixture(autouse=True)
def known(tmp_path, monkeypatch):
    """The sets above, written to a file and read back as the known ones."""
    development = pair_hashes(*DEVELOPMENT)
    pairs = {**SETS, "big": joined(SETS["big"], cut(DEVELOPMENT, 100, 200))}
    sketches = [sketch(name, pair_hashes(*both), development) for name, both in pairs.items()]
    path = tmp_path / "known.json"
    write_known_test_sets(sketches, {"development": development}, path)
    read = READ(path)
    assert read == (sketches, [development])
    monkeypatch.setattr(known_test_sets, "_known", lambda: read)
    return path


@pytest.mark.parametrize("name", SETS)
def test_a_test_set_is_found_whatever_was_done_to_its_form(name):
    first, second = SETS[name]
    changed = [text.upper().replace("'", " ’ ").replace(" ", "  ") for text in first]
    order = random.Random(0).sample(range(len(first)), len(first))
    for one, other in (
        (first, second),
        (second, changed),
        ([first[i] for i in order], [second[i] for i in order]),
    ):
        assert known_test_set_in(one, other).name == name
    match = known_test_set_in(*joined(SETS[name], OTHERS))
    assert (match.name, match.share) == (name, 1.0)


def test_parts_are_found_and_measured():
    half = known_test_set_in(*cut(SETS["big"], 0, 500))
    assert half.name == "big" and half.pairs == 1100 and half.share == pytest.approx(0.5, abs=0.2)
    # a seventh of it, yet nothing else
    assert known_test_set_in(*cut(SETS["big"], 0, 150)).name == "big"
    assert known_test_set_in(*joined(cut(SETS["big"], 0, 100), OTHERS)) is None


def test_development_sets_and_their_parts_pass():
    assert known_test_set_in(*DEVELOPMENT) is None
    assert known_test_set_in(*cut(DEVELOPMENT, 30, 290)) is None
    assert known_test_set_in(*cut(DEVELOPMENT, 100, 200)) is None  # all of which `big` has, too
    assert known_test_set_in(*joined(DEVELOPMENT, OTHERS)) is None
    assert known_test_set_in(*joined(DEVELOPMENT, SETS["small"])).name == "small"


def test_other_pairs_pass():
    assert known_test_set_in(*OTHERS) is None
    assert known_test_set_in([], []) is None
    first, second = SETS["big"]
    # the sentences, but not the pairs
    assert known_test_set_in(first, second[1:] + second[:1]) is None
    with pytest.raises(ValueError):
        known_test_set_in(first, second[1:])


def test_the_shipped_file_has_the_sets_and_no_text():
    tests, developments = READ()
    names = {test.name for test in tests}
    assert len(tests) == len(names) and sum(name.startswith("Tatoeba ") for name in names) == 112
    assert {
        "STS 2012 MSRpar",
        "STS 2016 question-question",
        "STS 2017 track6.tr-en",
        "STS Benchmark test",
    } <= names
    assert "STS 2017 track5.en-en" not in names and sorted(map(len, developments)) == [250, 1496]
    for test in tests:
        assert len(test.hashes) == min(64, test.pairs), test.name
    rows = json.loads(known_test_sets.KNOWN_TEST_SETS.read_text())
    assert {key for row in rows for key in row} == {"test", "development", "pairs", "hashes"}


def test_the_script_makes_the_file_from_folders(tmp_path, monkeypatch, capsys, write):
    graded = {
        "sts2012/MSRpar": SETS["big"],
        "sts2017/track5.en-en": DEVELOPMENT,
        "stsb/en-dev": OTHERS,
    }
    for name, (first, second) in {**graded, "stsb/en-test": SETS["small"]}.items():
        grades = [number % 6 for number in range(len(first))]
        write(tmp_path / f"{name}.tsv", zip(grades, first, second, strict=True))
    write(tmp_path / "tatoeba" / "spa-eng.tsv", zip(*SHARED, strict=True))
    output = tmp_path / "made.json"
    monkeypatch.setattr(sys, "argv", ["make", str(tmp_path), "--output", str(output)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "data_prep/make_known_test_sets.py"), run_name="__main__")
    assert ended.value.code == 0 and "3 test sets, 2 development sets" in capsys.readouterr().out
    rows = json.loads(output.read_text())
    assert [row.get("test") for row in rows[:3]] == [
        "STS 2012 MSRpar",
        "STS Benchmark test",
        "Tatoeba spa-eng",
    ]
    assert [row["pairs"] for row in rows[:3]] == [1000, 40, 75]
    assert not list(tmp_path.glob("*.part"))
