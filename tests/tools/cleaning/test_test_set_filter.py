"""The filter of test sentences, and the file of hashes by which it knows them."""

from __future__ import annotations

import lzma
import pickle
import runpy
import sys
from pathlib import Path

import pytest

from st_paragram.errors import EvaluationError
from st_paragram.tools.cleaning import known_sentences
from st_paragram.tools.cleaning.known_sentences import (
    DEFAULT_FAMILIES,
    KNOWN_TEST_SENTENCES,
    KnownTestSentences,
    SetFamily,
    sentence_hashes,
    telling,
    write_known_sentences,
)

ROOT = Path(__file__).parents[3]
STS = "A zebra paints the harbour wall."
TATOEBA = "My grandmother collects broken hourglasses these days."
(TEST,) = KnownTestSentences.reasons
known = known_sentences._known


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A small file in place of the one that comes with the package."""
    path = tmp_path / "known.bin"
    sentences = {SetFamily.STS: [STS, "How old is he?"], SetFamily.TATOEBA: [TATOEBA]}
    assert write_known_sentences(sentences, path) == 2
    monkeypatch.setattr(known_sentences, "_known", lambda families: known(families, path))
    yield path
    known.cache_clear()


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
    sts, tatoeba, retrieval = (known((kind,)) for kind in SetFamily)
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
    monkeypatch.setattr(known_sentences, "_known", lambda families: known(families, path))
    assert verdicts(KnownTestSentences(), sentence, f"« {sentence} »", changed) == [
        TEST,
        TEST,
        None,
    ]
    known.cache_clear()


def test_a_spoilt_file_is_refused(shipped):
    known.cache_clear()
    shipped.write_bytes(shipped.read_bytes()[:-1])
    with pytest.raises(
        EvaluationError, match=r"known\.bin: not readable .*; install st_paragram again"
    ):
        known(DEFAULT_FAMILIES, shipped)


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
    assert telling(sentence) is answer


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
    assert len(known((SetFamily.STS,), made)) == 12 and len(known((SetFamily.TATOEBA,), made)) == 2
    assert (
        sorted(sentence_hashes(RETRIEVAL).tolist()) == known((SetFamily.RETRIEVAL,), made).tolist()
    )
    assert KNOWN_TEST_SENTENCES.read_bytes() == before  # the installed file is not touched
