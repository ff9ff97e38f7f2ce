"""Texts encoded word by word against sentencepiece on the whole text, on small models."""

from __future__ import annotations

import gc
import itertools
import random
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from st_paragram.core.model_directory.find import shipped_folder
from st_paragram.core.native import kernels
from st_paragram.core.sample import LANGUAGES, sample_pairs
from st_paragram.core.tokenizers import sentencepiece as module
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary

needs_kernels = pytest.mark.skipif(kernels() is None, reason="needs the compiled kernels")

TEXT = (
    "the river runs past an old stone mill and two children wait there for their boat cafés naïve"
    " über straße река течёт мимо старой мельницы ὁ λόγος σοφός ὀδυσσεύς النهر يجري قرب الطاحونة"
    " كِتَابٌ ırmak eski değirmenin i\u0307yi 河水流过旧磨坊 孩子 在 等船 川がながれる 강물이"
    " हिन्दी ไทยน้ำ 12 6.7 50% 'tis ½ a\u0301 tttt ttt abababab ababab aaaa aaa"
)
WORDS = TEXT.split()
SPACES = (
    " \t\n\r\v\f\x1c\x85\u00a0\u1680\u2003\u200b\u200e\u2028\u202f\u205f\u3000\u2581\ufeff\ufffd"
)
HARD = (
    "\x00\x01\x1f\x7f\u00ad\u0300\u0301\u0308\u0345\u064b\u0670\u093c\u0e33\u3099\uff9e\u200c\u200d\ufe0f"
    "¨´ΐ\u0385\ufdfaﷲﬁ½㎏㍿①ªﾊﾞ中文字😀👩🏽🇹🇷\ue000\U000e0001\U0010ffffΣσςΑ'.:·İIıßẞАЯ가각<s>unk_▁"
)
CASES = [
    "", " ", "    ", "\t\n\u3000", "\u2581", " \u2581\u2581 a\u2581 \u2581b ▁the▁river▁ ",
    "a\x00b \x00 c\x00",
    "the\u00a0river\u200bruns\u3000past\ttwo\nchildren", "\u00a8a a\u00a8 \u00a8 \u0385 ´ ´a",
    "\u0301 \u0301a a \u0301",
    "\x01 the \x01 river\x01 \x01", "ﷺ ﷺﷺ " * 9, "☃ ☃☃ the☃ ☃the ☃ ☃", "<s> </s> <unk>",
    "ΟΔΥΣΣΕΥΣ ΑΣ' Σ ΑΣ. 'Σ ΣΑΣ\u00ad Σ",
    "İSTANBUL IĞDIR", "河水流过旧磨坊" * 30, "x" * 63, "x" * 64, "x" * 65,
    "the " + "é" * 32 + " river", "é" * 33,
    "12345678 1234567 123456789 1234567812345678", "the river " * 900, "the river " * 9000,
    "☃ " * 300, "☃😀" * 4000,
]  # fmt: skip


def reference(
    vocabulary: SentencePieceTokenizer, texts: list[str], max_length: int | None = None
) -> list[list[int]]:
    lower = str.lower if vocabulary.lower_case else str
    # a lone surrogate is a question mark
    valid = [text.encode("utf-8", "replace").decode() for text in texts]
    rows = [vocabulary.processor.encode(lower(text))[:max_length] for text in valid]
    return [
        [i for i in row if i != vocabulary.unknown_id] or [vocabulary.unknown_id] for row in rows
    ]


def rows_of(encoded) -> list[list[int]]:
    ids, offsets = encoded
    assert ids.dtype == offsets.dtype == np.int64
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def train(**options) -> bytes:
    """A small model of `WORDS`, with options of sentencepiece's trainer that `train_vocabulary`
    does not have.
    """
    shuffled, trainer = random.Random(0), sentencepiece.SentencePieceTrainer
    original = trainer.train
    with patch.object(trainer, "train", lambda **given: original(**(given | options))):
        texts = [" ".join(shuffled.choices(WORDS, k=8)) for _ in range(1000)]
        return train_vocabulary(texts, 400, 0.99, characters={})


@pytest.fixture(scope="module")
def proto() -> bytes:
    return train()


@pytest.fixture(scope="module")
def vocabularies(proto) -> list[SentencePieceTokenizer]:
    """What the compiled reader takes."""
    others = train(normalization_rule_name="nmt_nfkc_cf"), train(byte_fallback=True, vocab_size=700)
    made = [SentencePieceTokenizer(proto, False), *map(SentencePieceTokenizer, [proto, *others])]
    assert kernels() is None or not any(each.obstacle for each in made)
    return made


@pytest.fixture(scope="module")
def lowering(vocabularies) -> SentencePieceTokenizer:
    return vocabularies[1]


def check(vocabulary: SentencePieceTokenizer, texts: list[str]) -> None:
    for max_length, threads in ((None, 1), (4, 2), (None, 2)):
        assert rows_of(vocabulary.encode(texts, max_length, threads)) == reference(
            vocabulary, texts, max_length
        )


def left_to_sentencepiece(vocabulary: SentencePieceTokenizer, texts: list[str]) -> list[int]:
    *_, left = kernels().encode_words(vocabulary._cache, texts, -1, 1, True)
    return left


@pytest.mark.parametrize("text", CASES, ids=range(len(CASES)))
def test_hard_case(vocabularies, text):
    for each in vocabularies:
        check(each, [text, "the river", text])


characters = st.sampled_from(SPACES + HARD) | st.characters(exclude_categories=["Cs"])
hard_texts = st.lists(
    st.sampled_from(WORDS)
    | st.sampled_from([" ", " ", "  ", *SPACES])
    | st.text(characters, max_size=4),
    max_size=12,
).map("".join)


@settings(max_examples=200)
@given(texts=st.lists(hard_texts | hard_texts.map(lambda text: text * 40), max_size=6))
def test_any_texts(vocabularies, texts):
    for each in vocabularies:
        check(each, texts)


@needs_kernels
def test_the_shipped_model_segments_the_built_in_text():
    vocabulary = SentencePieceTokenizer((shipped_folder() / "sentencepiece.model").read_bytes())
    texts = [
        text for language in LANGUAGES[1:] for pair in sample_pairs(language, 300) for text in pair
    ]
    assert left_to_sentencepiece(vocabulary, texts) == []
    assert rows_of(vocabulary.encode(texts)) == reference(vocabulary, texts)


@needs_kernels
def test_texts_whose_sums_could_be_rounded_go_to_sentencepiece(lowering):
    scores = lowering.processor.get_score(list(range(3, len(lowering))))
    unknown, space = (
        10 - min(scores),
        -lowering.processor.get_score(lowering.processor.piece_to_id("▁")),
    )
    cost = -sum(lowering.processor.get_score(lowering.processor.encode("river")))
    most = int((2**14 - 2**12) // cost) + 1  # before the last one there may be so much
    texts = [
        " ".join(["river"] * most),
        " ".join(["river"] * (most + 1)),
        " ".join(["river"] * most) + "r",
    ]
    assert left_to_sentencepiece(lowering, texts) == left_to_sentencepiece(lowering, texts) == [1]
    most = int((2**14 - 2**12) // (unknown + space)) + 1
    assert left_to_sentencepiece(lowering, ["☃ " * most, "☃ " * (most + 1)]) == [1]
    most = int((2**14 - space) // unknown)  # a long word, with an unknown character at each place
    assert left_to_sentencepiece(
        lowering, ["☃" * most, "☃" * (most + 1), "x" * (1 << 15) + "y"]
    ) == [1, 2]
    check(lowering, ["☃" * most, "river", "☃" * (most + 1), "☃ " * most, "x" * (1 << 15) + "y"])


def piece(text: str, score: float, kind: int = 1) -> bytes:
    message = bytes([0x0A, len(text.encode())]) + text.encode() + b"\x15" + struct.pack("<f", score)
    message += bytes([0x18, kind])
    return bytes([0x0A, len(message)]) + message


UNUSED = 5


@needs_kernels
def test_unused_pieces_are_unknown(proto):
    unused = piece("☃", -1.0, UNUSED) + piece("☃river", -1.0, UNUSED) + piece("ri", -1.0, UNUSED)
    vocabulary = SentencePieceTokenizer(proto + unused)
    check(vocabulary, ["☃river ☃ the☃ ☃☃the", "ri river r i", *CASES[:12]])
    assert left_to_sentencepiece(vocabulary, ["☃river"]) == []


@needs_kernels
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_more_characters_than_fit_into_a_byte(byte_fallback):
    """Frequent characters are one letter, others two; many continuations share a bit."""
    rng = random.Random(5)
    alphabet = [chr(code) for code in [*range(0x4E00, 0x5200), *range(0x1F600, 0x1F640), 0x20000]]
    texts = [
        " ".join("".join(rng.choices(alphabet, k=rng.randint(1, 4))) for _ in range(8))
        for _ in range(2000)
    ]
    texts[0] = "~"
    options = {"byte_fallback": True} if byte_fallback else {}
    original = sentencepiece.SentencePieceTrainer.train
    with patch.object(
        sentencepiece.SentencePieceTrainer,
        "train",
        lambda **given: original(**(given | options)),
    ):
        vocabulary = SentencePieceTokenizer(train_vocabulary(texts, 3000, 1.0, characters={}))
    assert vocabulary.obstacle is None
    unknown = [chr(code) for code in (0x5300, 0x1F680, 0x20001, 0x2603)]
    others = ["".join(rng.choices([*alphabet, *unknown], k=rng.randint(1, 40))) for _ in range(300)]
    check(vocabulary, [*texts[:100], *others, *unknown, "".join(unknown), "~" * 64, "~" * 5000])


@needs_kernels
def test_lower_case_is_that_of_python():
    """And it goes word by word; a text with a capital sigma is given to Python."""
    every = [
        chr(code)
        for code in range(sys.maxunicode + 1)
        if not 0xD800 <= code < 0xE000 and code != 0x3A3
    ]
    for start in range(0, len(every), 10_000):
        text = "".join(every[start : start + 10_000])
        assert kernels().lower_case(text) == text.lower()
    assert all(" " not in character.lower() for character in every if character != " ")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"model_type": "bpe"}, "no unigram"), ({"treat_whitespace_as_suffix": True}, "spaces"),
        ({"add_dummy_prefix": False}, "spaces"), ({"remove_extra_whitespaces": False}, "spaces"),
        ({"normalization_rule_name": "identity"}, "no normalization rules"),
        ({"normalization_rule_name": "nfkc"}, "normalization"),
        ({"user_defined_symbols": ["e r"]}, "user-defined"),
        ({"split_by_whitespace": False, "vocab_size": 900}, "several words"),
    ],
    ids=str,
)  # fmt: skip
def test_other_models_go_to_sentencepiece(options, reason):
    vocabulary = SentencePieceTokenizer(train(**options))
    assert kernels() is None or reason in vocabulary.obstacle
    check(vocabulary, [" ".join(WORDS), *CASES[:20], "the r the river"])


@needs_kernels
@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("65 20 66\t67", "spaces"),
        ("20\t5F", "spaces"),
        ("65 66\t67", None),
        ("65\t2581", "meta symbol"),
    ],
)
def test_rules_with_spaces_are_seen(tmp_path, rule, reason):
    (tmp_path / "rules.tsv").write_text(f"{rule}\n2581\t20\n", encoding="utf-8")
    vocabulary = SentencePieceTokenizer(train(normalization_rule_tsv=str(tmp_path / "rules.tsv")))
    found = vocabulary.obstacle
    assert found is None if reason is None else reason in found
    check(vocabulary, ["sea efe fee e f", "ef e", *CASES[:12]])


@needs_kernels
@pytest.mark.parametrize(
    ("text", "score", "reason"),
    [
        ("x▁", -1.0, "several words"),
        ("qqq", -1.0001, "rounded"),
        ("qqq", float("nan"), "not numbers"),
        ("▁the", -1.0, "twice"),
    ],
)
def test_pieces_that_are_not_understood(proto, text, score, reason):
    with pytest.raises(ValueError, match=reason):
        kernels().Unigram(piece(text, score) + proto, True)


def test_without_kernels_the_result_is_the_same(proto, monkeypatch):
    monkeypatch.setattr(module, "kernels", lambda: None)
    vocabulary = SentencePieceTokenizer(proto)
    check(vocabulary, CASES[:20])
    assert vocabulary.obstacle == "no compiled kernels"
    assert vocabulary.encode_normalized(["the old river", "mill"], 2).cut == 1


def test_many_texts_are_encoded_in_blocks(proto, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 7)
    vocabulary = SentencePieceTokenizer(proto)
    texts = [*CASES * 3, "The \ud800 river"]
    check(vocabulary, texts)
    lengths = [
        len(vocabulary.processor.encode(text.lower())) for text in [*CASES * 3, "The ? river"]
    ]
    assert vocabulary.encode_normalized(texts, 4).cut == sum(length > 4 for length in lengths)
    assert rows_of(vocabulary.encode([])) == []


@needs_kernels
def test_threads_share_a_vocabulary(proto, monkeypatch):
    monkeypatch.setattr(module, "_CACHE_BYTES", 4000)
    vocabulary = SentencePieceTokenizer(proto)
    rng = random.Random(2)
    batches = [
        [" ".join(rng.choices(WORDS, k=9)) + f" w{rng.random()}" for _ in range(200)]
        for _ in range(24)
    ]
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda texts: rows_of(vocabulary.encode(texts, None, 2)), batches))
    assert results == [reference(vocabulary, texts) for texts in batches]


@needs_kernels
def test_pieces_outlive_the_bytes_of_the_file(proto):
    """The pieces are read from the file's bytes, which nobody else holds here."""
    model = kernels().Unigram(bytes(bytearray(proto)), True)
    cache = kernels().WordCache(model, 4000)
    pieces = [model.piece(number) for number in range(len(model))]
    copies = [bytes(bytearray(len(proto))) for _ in range(20)]  # would overwrite freed bytes
    assert [model.piece(number) for number in range(len(model))] == pieces
    del model, copies
    gc.collect()
    ids, _, _, _ = kernels().encode_words(cache, ["the old river"], -1, 1, False)
    assert [pieces[number] for number in ids.tolist()] == SentencePieceTokenizer(
        proto
    ).processor.encode("the old river", out_type=str)


_PEAK = """
import re
from pathlib import Path
from st_paragram.core.native import kernels
from st_paragram.core.model_directory.find import shipped_folder

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

content = shipped_folder("p-sp-large").joinpath("sentencepiece.model").read_bytes()
before = peak()
model = kernels().Unigram(content, True)
print((peak() - before) * 1024 / len(content))
"""


@needs_kernels
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_of_reading_a_model():
    """Reading a vocabulary takes less than eight times the size of its file at its peak."""
    run = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 8
