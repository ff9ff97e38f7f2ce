"""The filter of test sentences, the recognition of test sets, and their files of hashes."""

from __future__ import annotations

import json
import lzma
import pickle
import random
import runpy
import sys
from pathlib import Path

import pytest
import yaml

from st_paragram.errors import EvaluationError
from st_paragram.tools.cleaning import known_sentences
from st_paragram.tools.cleaning.known_sentences import (
    DEFAULT_FAMILIES,
    KNOWN_TEST_SENTENCES,
    KNOWN_TEST_SETS,
    KnownSets,
    KnownTestSentences,
    SetFamily,
    is_distinctive,
    known_test_set_in,
    pair_hashes,
    sentence_hashes,
    sketch,
    write_known_sentences,
    write_known_test_sets,
)

ROOT = Path(__file__).parents[3]
STS = "A zebra paints the harbour wall."
TATOEBA = "My grandmother collects broken hourglasses these days."
(TEST,) = KnownTestSentences.reasons
hashes_of = known_sentences._hashes_of


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A small file in place of the one that comes with the package."""
    path = tmp_path / "known.bin"
    sentences = {SetFamily.STS: [STS, "How old is he?"], SetFamily.TATOEBA: [TATOEBA]}
    assert write_known_sentences(sentences, path) == 2
    monkeypatch.setattr(known_sentences, "_hashes_of", lambda families: hashes_of(families, path))
    yield path
    hashes_of.cache_clear()


def verdicts(rule, *firsts):
    return rule.reject([(first, "x") for first in firsts])


def test_a_test_sentence_goes_from_either_side(shipped):
    rule = KnownTestSentences()
    rows = [
        (STS, "x"),
        ("x", "a ZEBRA paints, the harbour-wall"),
        ("How old is he?", "x"),
        ("x", "y"),
        ("", ""),
    ]
    assert rule.reject(rows) == [TEST, TEST, None, None, None] and rule.reject([]) == []
    # hashes know no neighbors
    assert verdicts(rule, "A zebra paints the old harbour wall.") == [None]
    assert pickle.loads(pickle.dumps(rule)).reject(rows[:1]) == [TEST]


def test_the_shipped_file():
    sts, tatoeba, retrieval = (hashes_of((kind,)) for kind in SetFamily)
    assert (len(sts), len(tatoeba), len(retrieval)) == (25_706, 122_714, 85_730)
    assert (sts[1:] > sts[:-1]).all() and int(tatoeba[-1]) < 2**40
    proverb = "The early bird catches the worm."  # Tatoeba
    said = verdicts(
        KnownTestSentences(), proverb, "The earliest birds catch no worms at all.", "How old is he?"
    )
    assert said == [TEST, None, None]


@pytest.mark.parametrize(
    ("sentence", "changed"),
    [
        ("मुझे समझ में नहीं आ रहा कि क्या करूँ।", "मुझे समझ में नहीं आ रहा कि क्या करूं।"),
        ("ฉันไม่รู้ว่าจะทำอะไรต่อไปดี", "ฉันไม่รู้ว่าจะทำอะไรต้อไปดี"),
        ("আমি জানি না কি করতে হবে এখন এই শহরে।", "আমি জানি না কি করতে হবি এখন এই শহরে।"),
        ("எனக்கு என்ன செய்வது என்று தெரியவில்லை.", "எனக்கு என்ன செய்வது என்று தெரியவில்லி."),
    ],
)
def test_another_vowel_sign_or_tone_mark_is_another_sentence(
    tmp_path, monkeypatch, sentence, changed
):
    path = tmp_path / "known.bin"
    assert write_known_sentences({SetFamily.STS: [sentence], SetFamily.TATOEBA: []}, path) == 1
    monkeypatch.setattr(known_sentences, "_hashes_of", lambda families: hashes_of(families, path))
    assert verdicts(KnownTestSentences(), sentence, f"« {sentence} »", changed) == [
        TEST,
        TEST,
        None,
    ]
    hashes_of.cache_clear()


def test_a_spoilt_file_is_refused(shipped):
    hashes_of.cache_clear()
    shipped.write_bytes(shipped.read_bytes()[:-1])
    with pytest.raises(
        EvaluationError, match=r"known\.bin: not readable .*; install st_paragram again"
    ):
        hashes_of(DEFAULT_FAMILIES, shipped)


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("How old is he?", False),
        ("I am at it.", False),
        ("He collects broken hourglasses.", True),
        ("他失明了。", False),
        ("先生，我想找一份工作。", True),
        ("", False),
        ("मेरी किताबें कहाँ हैं", False),  # 12 letters with 8 marks
    ],
)
def test_everyday_sentences_do_not_count(sentence, answer):
    assert is_distinctive(sentence) is answer


@pytest.fixture
def retrieval(tmp_path):
    """A folder of retrieval and inference, some of it packed."""
    rows = {
        "quora_sr/queries.tsv": "q1\tHow can I sharpen a rusty garden spade?\n",
        "quora_sr/corpus.tsv": "d1\tWhich way sharpens garden spades best?\td2\n",
        "reqa_squad_dev/corpus.tsv": (
            "s1\tthe spade was forged in the old mill.\tIts context is no sentence.\n"
        ),
        "xquad_r/tr/queries.tsv": "q1\tBahçe küreği nerede dövüldü acaba?\n",
        "nli/snli_test.en.tsv": (
            "neutral\tA gardener sharpens a rusty spade.\tHe will dig a very deep hole.\n"
        ),
        "quora_sr/qrels.tsv": "q1\tthis is no sentence of the set\n",
    }
    for name, text in rows.items():
        path = tmp_path / "retrieval" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    packed = tmp_path / "retrieval" / "quora_sr" / "corpus.tsv"
    packed.with_name("corpus.tsv.xz").write_bytes(lzma.compress(packed.read_bytes()))
    packed.unlink()
    return tmp_path / "retrieval"


RETRIEVAL = [
    "the spade was forged in the old mill.",
    "Which way sharpens garden spades best?",
    "How can I sharpen a rusty garden spade?",
    "A gardener sharpens a rusty spade.",
    "He will dig a very deep hole.",
    "Bahçe küreği nerede dövüldü acaba?",
]


def test_the_script_makes_the_file(retrieval, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "sets"
    rows = "".join(
        f"{grade}.0\tsentence {grade} is the first\tsentence {grade} is the second\n"
        for grade in range(6)
    )
    for name in ("sts2015/images.tsv", "sts2017/track5.en-en.tsv", "stsb/en-dev.tsv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(rows)
    (folder / "tatoeba").mkdir()
    (folder / "tatoeba" / "spa-eng.tsv").write_text(
        f"Mi abuela colecciona relojes de arena rotos.\t{TATOEBA}\n"
    )
    before = KNOWN_TEST_SENTENCES.read_bytes()
    options = ["--retrieval", str(retrieval), "--output", str(tmp_path / "sets.json")]
    monkeypatch.setattr(sys, "argv", ["make", str(folder), *options])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "data_prep/make_known_test_sets.py"), run_name="__main__")
    made = tmp_path / "known_test_sentences.bin"
    assert ended.value.code == 0 and f"20 sentences: {made}" in capsys.readouterr().out
    assert (
        len(hashes_of((SetFamily.STS,), made)) == 12
        and len(hashes_of((SetFamily.TATOEBA,), made)) == 2
    )
    assert (
        sorted(sentence_hashes(RETRIEVAL).tolist())
        == hashes_of((SetFamily.RETRIEVAL,), made).tolist()
    )
    assert KNOWN_TEST_SENTENCES.read_bytes() == before  # the installed file is not touched
    digests = yaml.safe_load((tmp_path / "known_sets.yaml").read_text())
    assert list(digests["sts"]) == ["2015/images", "2017/en-en", "stsb/dev"]
    assert list(digests["tatoeba"]) == ["spa"] and "ntrex" not in digests


# --- sets of pairs


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


@pytest.fixture
def known_sets(tmp_path, monkeypatch):
    """The sets above, written to a file and read back as the known ones."""
    development = pair_hashes(*DEVELOPMENT)
    pairs = {**SETS, "big": joined(SETS["big"], cut(DEVELOPMENT, 100, 200))}
    sketches = [sketch(name, pair_hashes(*both), development) for name, both in pairs.items()]
    path = tmp_path / "known.json"
    write_known_test_sets(sketches, {"development": development}, path)
    content = known_sentences._known_sets(path)
    assert content == KnownSets(sketches, [development])
    monkeypatch.setattr(known_sentences, "_known_sets", lambda: content)


@pytest.mark.parametrize("name", SETS)
def test_a_test_set_is_found_whatever_was_done_to_its_form(known_sets, name):
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


def test_parts_are_found_and_measured(known_sets):
    half = known_test_set_in(*cut(SETS["big"], 0, 500))
    assert half.name == "big" and half.pairs == 1100 and half.share == pytest.approx(0.5, abs=0.2)
    # a seventh of it, yet nothing else
    assert known_test_set_in(*cut(SETS["big"], 0, 150)).name == "big"
    assert known_test_set_in(*joined(cut(SETS["big"], 0, 100), OTHERS)) is None


def test_development_sets_and_their_parts_pass(known_sets):
    assert known_test_set_in(*DEVELOPMENT) is None
    assert known_test_set_in(*cut(DEVELOPMENT, 30, 290)) is None
    assert known_test_set_in(*cut(DEVELOPMENT, 100, 200)) is None  # all of which `big` has, too
    assert known_test_set_in(*joined(DEVELOPMENT, OTHERS)) is None
    assert known_test_set_in(*joined(DEVELOPMENT, SETS["small"])).name == "small"


def test_other_pairs_pass(known_sets):
    assert known_test_set_in(*OTHERS) is None
    assert known_test_set_in([], []) is None
    first, second = SETS["big"]
    # the sentences, but not the pairs
    assert known_test_set_in(first, second[1:] + second[:1]) is None
    with pytest.raises(ValueError):
        known_test_set_in(first, second[1:])


def test_the_shipped_file_of_sets_has_no_text():
    content = known_sentences._known_sets()
    tests = content.tests
    names = {test.name for test in tests}
    assert len(tests) == len(names) and sum(name.startswith("Tatoeba ") for name in names) == 112
    assert {
        "STS 2012 MSRpar",
        "STS 2016 question-question",
        "STS 2017 track6.tr-en",
        "STS Benchmark test",
    } <= names
    assert "STS 2017 track5.en-en" not in names and sorted(map(len, content.developments)) == [
        250,
        1496,
    ]
    for test in tests:
        assert len(test.hashes) == min(64, test.pairs), test.name
    rows = json.loads(KNOWN_TEST_SETS.read_text())
    assert {key for row in rows for key in row} == {"test", "development", "pairs", "hashes"}


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def test_the_script_makes_the_file_of_sets(tmp_path, monkeypatch, capsys):
    graded = {
        "sts2012/MSRpar": SETS["big"],
        "sts2017/track5.en-en": DEVELOPMENT,
        "stsb/en-dev": OTHERS,
    }
    for name, (first, second) in {**graded, "stsb/en-test": SETS["small"]}.items():
        grades = [number % 6 for number in range(len(first))]
        write_rows(tmp_path / f"{name}.tsv", zip(grades, first, second, strict=True))
    write_rows(tmp_path / "tatoeba" / "spa-eng.tsv", zip(*SHARED, strict=True))
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


def test_the_script_does_not_replace_the_installed_files_without_all_sets(
    tmp_path, monkeypatch, capsys
):
    for name in ("sts2015/images.tsv", "stsb/en-dev.tsv", "tatoeba/spa-eng.tsv"):
        write_rows(tmp_path / name, [(1, "a sentence", "another sentence")])
    before = KNOWN_TEST_SENTENCES.read_bytes()
    monkeypatch.setattr(sys, "argv", ["make", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "data_prep/make_known_test_sets.py"), run_name="__main__")
    message = capsys.readouterr().err
    assert ended.value.code and message.count("\n") == 1
    assert f"{tmp_path}: no reqa_squad_dev/queries.tsv, so" in message and "--retrieval" in message
    assert KNOWN_TEST_SENTENCES.read_bytes() == before


def test_the_scripts_help_names_the_files_it_writes(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["make", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "data_prep/make_known_test_sets.py"), run_name="__main__")
    option = " ".join(capsys.readouterr().out.partition("--output FILE  ")[2].split())
    assert ended.value.code == 0
    assert "known_test_sentences.bin and known_sets.yaml are written next to it" in option


def test_rows_are_checked_without_a_digest_of_all_sentences(monkeypatch):
    monkeypatch.setattr(known_sentences.hashlib, "sha256", None)
    assert KnownTestSentences().reject([("A sentence of ours.", "Una frase.")]) == [None]
