"""Sentences of test sets in training data: those shipped as hashes, those of a folder, and those near them."""

from __future__ import annotations

import hashlib
import lzma
import pickle
import runpy
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.cleaning import known_test_sentences, test_sets
from st_paragram.tools.cleaning.known_sentence_files import LAYOUTS, files_digest, read_sentences
from st_paragram.tools.cleaning.known_sentence_files import known_sentence_files as files_of
from st_paragram.tools.cleaning.known_test_sentences import (
    DEFAULT_FAMILIES,
    KNOWN_TEST_SENTENCES,
    SetFamily,
    digest,
    known_hashes,
    sentence_hashes,
    telling,
    write_known_sentences,
)
from st_paragram.tools.cleaning.near_sentences import NearSentences
from st_paragram.tools.cleaning.normalized_key import normalized_key
from st_paragram.tools.cleaning.test_sets import KnownTestSentences

ROOT = Path(__file__).parents[3]
STS = [("A zebra paints the harbour wall.", "Nobody ever saw that purple lighthouse again")]
TATOEBA = {
    "spa": [("Mi abuela colecciona relojes de arena rotos.", "My grandmother collects broken hourglasses these days.")],
    "cmn": [("我的祖母喜欢收集坏掉的沙漏。", "The lighthouse keeper forgot his umbrella again.")],
}
TEST, NEAR = KnownTestSentences.reasons


@pytest.fixture
def folder(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")

    write("sts2015/images.tsv", [("3.5", *row) for row in STS])
    write("stsb/en-dev.tsv", [("1.0", "Seven gardeners argue about a tulip.", "How old is he?")])
    for code, rows in TATOEBA.items():
        write(f"tatoeba/{code}-eng.tsv", rows)
    return tmp_path


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A small file in place of the one that comes with the package."""
    path = tmp_path / "known.bin"
    sentences = {SetFamily.STS: [STS[0][0], "How old is he?"], SetFamily.TATOEBA: [TATOEBA["spa"][0][1]]}
    assert write_known_sentences(sentences, path) == 2
    monkeypatch.setattr(test_sets, "known_hashes", lambda sets: known_hashes(sets, path))
    test_sets._known.cache_clear()
    yield path
    test_sets._known.cache_clear()


def verdicts(rule, *firsts):
    return rule.reject([(first, "x") for first in firsts])


def test_a_test_sentence_goes_from_either_side(shipped):
    rule = KnownTestSentences(("en", "es"))
    rows = [(STS[0][0], "x"), ("x", "a ZEBRA paints, the harbour-wall"), ("How old is he?", "x"), ("x", "y"), ("", "")]
    assert rule.reject(rows) == [TEST, TEST, None, None, None] and rule.reject([]) == []
    near = "A zebra paints the old harbour wall."
    assert verdicts(rule, near) == [None]  # hashes know no neighbours
    assert pickle.loads(pickle.dumps(rule)).reject(rows[:1]) == [TEST]


def test_families_of_test_sets(shipped):
    texts = STS[0][0], TATOEBA["spa"][0][1]
    assert verdicts(KnownTestSentences(("en", "es")), *texts) == [TEST, TEST]
    assert verdicts(KnownTestSentences(("en", "es"), sets="sts"), *texts) == [TEST, None]
    assert verdicts(KnownTestSentences(("en", "es"), sets=["tatoeba"]), *texts) == [None, TEST]


def test_a_folder_adds_what_is_near(shipped, folder):
    rule = KnownTestSentences(("en", "es"), folder=str(folder))
    sentence = STS[0][0]
    assert verdicts(rule, sentence, STS[0][1], TATOEBA["spa"][0][0]) == [TEST] * 3
    assert verdicts(rule, "A zebra paints the harbour gate.", "One zebra paints the harbour wall.") == [NEAR, NEAR]
    assert verdicts(rule, "A zebra paints harbour wall.", "A big zebra paints the harbour wall!") == [NEAR, NEAR]
    assert verdicts(rule, "A zebra paints a garden wall.", "The zebra paints the harbour gate.") == [None, None]
    assert verdicts(rule, "How old is she?", "How old is he?") == [None, None]
    assert rule.reject([(sentence, "A zebra paints the harbour gate.")]) == [TEST]


def test_tatoeba_files_of_the_languages_alone(shipped, folder):
    chinese, english = TATOEBA["cmn"][0]
    assert verdicts(KnownTestSentences(("en", "es"), folder=str(folder)), chinese, english) == [None, None]
    assert verdicts(KnownTestSentences(("en", "zh_cn"), folder=str(folder)), chinese, english) == [TEST, TEST]
    assert verdicts(KnownTestSentences(("en", "zh"), folder=str(folder)), chinese.replace("坏", "旧")) == [NEAR]
    assert verdicts(KnownTestSentences(("en", "en"), folder=str(folder)), english) == [TEST]
    assert [path.name for path in files_of(folder, SetFamily.TATOEBA, ("en", "spa"))] == ["spa-eng.tsv"]
    assert [path.name for path in files_of(folder, SetFamily.STS, ("en", "spa"))] == ["images.tsv", "en-dev.tsv"]


def test_identity_follows_what_the_files_say(shipped, folder):
    first = KnownTestSentences(("en", "es"), folder=str(folder))
    assert first.identity() == KnownTestSentences(("en", "es"), folder=str(folder)).identity()
    others = [KnownTestSentences(("en", "es")), KnownTestSentences(("en", "es"), sets=["sts"], folder=str(folder))]
    others.append(KnownTestSentences(("en", "zh"), folder=str(folder)))
    digests = [rule.identity() for rule in (first, *others)]
    assert all(a != b for i, a in enumerate(digests) for b in digests[:i])
    before = files_digest(files_of(folder, SetFamily.STS))
    (folder / "stsb" / "en-dev.tsv").write_text("1\ta\tb\n")
    assert files_digest(files_of(folder, SetFamily.STS)) != before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\tb\n\xff\tb\n", "not readable as a test set"),
        (b"a b\n", "row 1 has 1 columns, where 2 or 3 are expected"),
        (b"1\ta\tb\n\n1\ta\tb\tc\n", "row 3 has 4 columns, where 2 or 3 are expected"),
    ],
)
def test_broken_files_are_named(tmp_path, content, message):
    (tmp_path / "stsb").mkdir()
    (tmp_path / "stsb" / "en-dev.tsv").write_bytes(content)
    with pytest.raises(SettingsError, match=rf"en-dev\.tsv: .*{message}" if "row" not in message else message):
        KnownTestSentences(("en", "es"), folder=str(tmp_path)).reject([("a", "b")])


def test_rows_end_at_newlines_alone(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes("\ufeff1\ta\u2028b\tc\x85d\r\n".encode())
    assert list(read_sentences([path])) == ["a\u2028b", "c\x85d"]


def test_options_are_checked(tmp_path):
    with pytest.raises(SettingsError, match="test_sets: sets is 'bucc'; it must be 'sts', 'tatoeba' or 'retrieval'"):
        KnownTestSentences(("en", "es"), sets=["bucc"])
    with pytest.raises(SettingsError, match=r"test_sets: folder is .*; it must be a folder with"):
        KnownTestSentences(("en", "es"), folder=str(tmp_path))


# ---- the file of hashes


def test_the_shipped_file():
    sts, tatoeba, retrieval = (known_hashes([kind]) for kind in SetFamily)
    assert 25_000 < len(sts) < 27_000 and 110_000 < len(tatoeba) < 125_000
    assert (sts[1:] > sts[:-1]).all() and int(tatoeba[-1]) < 2**40
    assert 80_000 < len(retrieval) < 95_000
    assert len(KNOWN_TEST_SENTENCES.read_bytes()) < 5 * (len(sts) + len(tatoeba) + len(retrieval)) + 120
    test_sets._known.cache_clear()
    rule = KnownTestSentences(("en", "es"))
    assert 0x4265FB664A in sts  # of a sentence of STS 2012, which may not be passed on
    proverb = "The early bird catches the worm."  # Tatoeba
    said = verdicts(rule, proverb, "The earliest birds catch no worms at all.", "How old is he?")
    assert said == [TEST, None, None]


def test_the_script_makes_the_file(folder, retrieval, tmp_path, monkeypatch, capsys):
    rows = "".join(f"{grade}.0\tsentence {grade} is the first\tsentence {grade} is the second\n" for grade in range(6))
    for name in ("sts2015/images.tsv", "sts2017/track5.en-en.tsv", "stsb/en-dev.tsv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(rows)
    before = KNOWN_TEST_SENTENCES.read_bytes()
    options = ["--retrieval", str(retrieval), "--output", str(tmp_path / "sets.json")]
    monkeypatch.setattr(sys, "argv", ["make", str(folder), *options])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "data_prep/make_known_test_sets.py"), run_name="__main__")
    made = tmp_path / "known_test_sentences.bin"
    assert ended.value.code == 0 and f"22 sentences: {made}" in capsys.readouterr().out
    assert len(known_hashes([SetFamily.STS], made)) == 12 and len(known_hashes([SetFamily.TATOEBA], made)) == 4
    assert sorted(sentence_hashes(RETRIEVAL).tolist()) == known_hashes([SetFamily.RETRIEVAL], made).tolist()
    assert KNOWN_TEST_SENTENCES.read_bytes() == before  # the installed file is not touched


@given(st.lists(st.text(alphabet="abcdefgh 中文字", min_size=12, max_size=40), max_size=8))
def test_the_file_gives_back_what_was_written(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("known") / "known.bin"
    count = write_known_sentences({SetFamily.STS: sentences, SetFamily.TATOEBA: sentences[:2]}, path)
    expected = sorted(set(sentence_hashes([text for text in sentences if telling(text)]).tolist()))
    assert known_hashes([SetFamily.STS], path).tolist() == expected and count >= len(expected)
    assert not list(path.parent.glob("*.part"))


@pytest.mark.parametrize(
    "spoil",
    [lambda d: d[:-1], lambda d: b"x" + d, lambda d: d.replace(b"{", b"["), lambda d: d.replace(b'sts"', b'xyz"')],
)
def test_a_spoilt_file_is_refused(shipped, spoil):
    known_test_sentences._read.cache_clear()
    shipped.write_bytes(spoil(shipped.read_bytes()))
    with pytest.raises(EvaluationError, match=r"known\.bin: not readable .*; install st_paragram again"):
        known_hashes(DEFAULT_FAMILIES, shipped)


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [
        ("How old is he?", False),
        ("I am at it.", False),
        ("He collects broken hourglasses.", True),
        ("他失明了。", False),
        ("先生，我想找一份工作。", True),
        ("", False),
    ],
)
def test_everyday_sentences_do_not_count(sentence, answer):
    assert telling(sentence) is answer


# ---- retrieval and inference


@pytest.fixture
def retrieval(tmp_path):
    """A folder of retrieval and inference, some of it packed."""
    rows = {
        "quora_sr/queries.tsv": "q1\tHow can I sharpen a rusty garden spade?\n",
        "quora_sr/corpus.tsv": "d1\tWhich way sharpens garden spades best?\td2\n",
        "reqa_squad_dev/corpus.tsv": "s1\tthe spade was forged in the old mill.\tIts context is no sentence.\n",
        "xquad_r/tr/queries.tsv": "q1\tBahçe küreği nerede dövüldü acaba?\n",
        "nli/snli_test.en.tsv": "neutral\tA gardener sharpens a rusty spade.\tHe will dig a very deep hole.\n",
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


def test_sentences_of_retrieval_files(retrieval):
    assert sorted(read_sentences(files_of(retrieval, SetFamily.RETRIEVAL))) == sorted(RETRIEVAL)
    assert files_of(retrieval, SetFamily.RETRIEVAL, ("en", "es")) == files_of(retrieval, SetFamily.RETRIEVAL)
    assert not files_of(retrieval, SetFamily.STS) and set(LAYOUTS) == set(SetFamily)


def test_retrieval_is_refused_where_it_is_named(shipped, retrieval, folder):
    near = "Which way sharpens garden spades now?"
    rule = KnownTestSentences(("en", "es"), sets=["retrieval"], folder=str(retrieval))
    write_known_sentences({SetFamily.STS: [], SetFamily.TATOEBA: [], SetFamily.RETRIEVAL: RETRIEVAL[:1]}, shipped)
    known_test_sentences._read.cache_clear()
    assert verdicts(rule, *RETRIEVAL, near, "this is no sentence of the set") == [TEST] * 6 + [NEAR, None]
    assert verdicts(KnownTestSentences(("en", "es")), *RETRIEVAL) == [None] * 6
    assert verdicts(KnownTestSentences(("en", "es"), folder=str(folder)), *RETRIEVAL) == [None] * 6
    with pytest.raises(SettingsError, match=r"must be a folder with quora_sr/queries\.tsv"):
        KnownTestSentences(("en", "es"), sets="retrieval", folder=str(folder / "stsb"))


def test_a_further_family_changes_nothing_for_those_who_do_not_name_it(tmp_path):
    old, new = tmp_path / "old.bin", tmp_path / "new.bin"
    families = {SetFamily.STS: [STS[0][0]], SetFamily.TATOEBA: [TATOEBA["spa"][0][1]]}
    write_known_sentences(families, old)
    write_known_sentences(families | {SetFamily.RETRIEVAL: RETRIEVAL}, new)
    plain = hashlib.sha256(old.read_bytes()).hexdigest()
    assert digest(path=old) == digest(path=new) == digest([SetFamily.STS], new) == plain
    assert digest([SetFamily.RETRIEVAL], new) == hashlib.sha256(new.read_bytes()).hexdigest() != plain
    assert len(known_hashes([SetFamily.RETRIEVAL], new)) == 6
    with pytest.raises(EvaluationError, match=r"old\.bin: not readable \(no retrieval in it\); install"):
        known_hashes([SetFamily.RETRIEVAL], old)
    assert KnownTestSentences(("en", "es")).identity()["sets"] == ["sts", "tatoeba"]


def test_the_shipped_file_as_it_was_for_those_who_do_not_name_retrieval():
    assert digest() == "5483d55a5f6bdd0ef39632095f15fd63ee053b6eaa419f4864d00eac35977a84"


# ---- near


def distance(one, other):
    """Words to change, add or leave out."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        previous, row = row, [i]
        for j, b in enumerate(other, start=1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (a != b)))
    return row[-1]


WORDS = st.lists(st.sampled_from("ab"), min_size=4, max_size=10)


@given(WORDS, WORDS)
def test_near_by_definition(one, other):
    expected = distance(one, other) <= 1 and len(one) >= 6 and len(other) >= 5
    assert NearSentences([" ".join(one)]).near([" ".join(other)]) == [expected]


@given(WORDS, st.integers(0, 30), st.sampled_from(["change", "add", "drop"]))
def test_one_difference_is_always_found(words, place, how):
    words = [f"{word}{i}" for i, word in enumerate([*words, "x", "y"])]
    place %= len(words)
    other = {"change": [*words[:place], "new", *words[place + 1 :]], "drop": words[:place] + words[place + 1 :]}
    other["add"] = [*words[:place], "new", *words[place:]]
    near = NearSentences([" ".join(words), "something else that is long enough"])
    assert near.near([" ".join(other[how]).upper() + " !"]) == [True]


@given(st.lists(st.text(max_size=40), max_size=6), st.lists(st.text(max_size=40), max_size=6))
def test_near_takes_any_text(sentences, texts):
    near = NearSentences(sentences)
    assert len(near.near(texts)) == len(texts)
    assert all(near.near([text])[0] for text in sentences if normalized_key(text) and len(text.split()) >= 40)
