"""Converted tokenizers against sentencepiece and against the package's own words."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
import sentencepiece
from tokenizers import Tokenizer

from st_paragram import sample_pairs
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.stock import convert_tokenizer, convert_words
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.errors import ModelDirectoryError

TEXT = (
    "the river runs past an old stone mill and two children wait there for their boat "
    "el niño compró pingüinos mañana según aquél café über Straße größer naïve œuvre "
    "река течёт мимо старой мельницы подъезд йод ёлка їжак ὁ λόγος σοφός τῆς ᾳ ἄνθρωπος ῥᾷ "
    "النهر يجري قرب الطاحونة مُدَرِّسٌ كِتَابٌ آمن مؤمن شيئا للّه ـــ لا שָׁלוֹם בְּרֵאשִׁית "
    "ırmak eski değirmenin yanından akıyor İstanbul'da şimdi ağaç i\u0307yi "
    "河水流过旧磨坊 孩子在等船 川がながれる ガラス パン ぶどう 강물이 흐른다 각 같은 뚫다 "
    "tiếng Việt rất đẹp हिन्दी क़लम ड़ தமிழ் கொ ไทยน้ำ 12 345 6.7 50% 'tis don't ≠ ½ ﬁ 😀 👩‍👧 ☃"
)
WORDS = TEXT.split()
HARD_CASES = [
    "", " ", "\t\n\u3000", "\x01 a \x01 b\x01", "\u064b\u0651a \u05bc",
    "tie\u0302\u0301ng Vie\u0323\u0302t ra\u0302\u0301t cafe\u0301",
    "İSTANBUL Iğdır ISPARTA i\u0307 ΟΔΟΣ ΟΔΥΣΣΕΥΣ Σ ΑΣ'Α ΑΣ. ΣΑΣ\u00ad ʰΣ ΑΣ\u0301 1Σ",
    "😀👩\u200d👧 👍🏽 🇹🇷 ☃\ufe0f a\u200db a\u200cb", "ａｂｃ　１２３！ ～ 〜 ~ ①⑳ ㎏ ﷺ Ⅷ",
    "مُدَرِّسٌ كِتَــــابٌ لِلَّهِ ﷲ ﻻ ا\u0653 ا\u0654", "か\u3099 ｶﾞ カ\u3099 ハ\u309a",
    "a\u00a0b\u200bc\u00add\ufeffe\u2028f\u0085h\r\ni", "▁a ▁▁ b▁ ▁", "<s> </s> <unk> <pad>",
    "x" * 5000,
    "река" * 700 + "中" * 500 + "☃" * 300,
]  # fmt: skip


def trained(**options: Any) -> bytes:
    shuffled = random.Random(0)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(" ".join(shuffled.choices(WORDS, k=8)) for _ in range(1500)),
        model_writer=model,
        minloglevel=2,
        **{
            "vocab_size": 700,
            "hard_vocab_limit": False,
            "character_coverage": 1.0,
            "num_threads": 1,
            **options,
        },
    )
    return model.getvalue()


def check(tokenizer: SentencePieceTokenizer, texts: list[str]) -> None:
    """The same ids, also after JSON, or as likely ones that float32 cannot tell apart."""
    model = tokenizer.processor
    stock = Tokenizer.from_str(convert_tokenizer(tokenizer).to_str())
    assert stock.get_vocab_size() == len(tokenizer)
    cased = [text.lower() if tokenizer.lower_case else text for text in texts]
    for text, encoding, ids in zip(
        texts, stock.encode_batch(texts), model.encode(cased), strict=True
    ):
        if encoding.ids != ids:
            assert "".join(map(model.id_to_piece, encoding.ids)) == "".join(
                map(model.id_to_piece, ids)
            ), ascii(text)
            scores = [sum(map(model.get_score, each)) for each in (encoding.ids, ids)]
            assert scores[0] == pytest.approx(scores[1], rel=1e-6), ascii(text)


@pytest.fixture(scope="module")
def model() -> bytes:
    return trained()


def test_the_built_in_sample_in_eight_languages():
    pairs = {
        code: list(sample_pairs(code, 300)) for code in ("ar", "de", "es", "fr", "ru", "tr", "zh")
    }
    texts = [english for english, _ in pairs["de"]] + [
        other for each in pairs.values() for _, other in each
    ]
    assert len(texts) == 8 * 300
    tokenizer = SentencePieceTokenizer(train_vocabulary((text.lower() for text in texts), 4000))
    check(tokenizer, [*texts, *map(str.upper, texts)])


@pytest.mark.parametrize("lower_case", [True, False])
def test_hard_texts(model, lower_case):
    check(SentencePieceTokenizer(model, lower_case), [*HARD_CASES, *WORDS, TEXT, TEXT.upper()])


@pytest.mark.parametrize(
    "options",
    [
        {"normalization_rule_name": "nfkc"},
        {"normalization_rule_name": "identity"},
        {"split_by_whitespace": False},
        {"unk_id": 3, "bos_id": 1, "eos_id": -1, "pad_id": 0},
        {"control_symbols": ["<sep>", "river"]},
    ],
    ids=lambda options: "-".join(map(str, options)),
)
def test_other_convertible_models(options):
    check(
        SentencePieceTokenizer(trained(**options)), [*WORDS, " ".join(WORDS[:30]), "½ <sep> river"]
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"model_type": "bpe"}, "is not a unigram model"),
        ({"byte_fallback": True, "vocab_size": 900}, "byte fallback"),
        ({"normalization_rule_name": "nmt_nfkc_cf"}, "rules other than nmt_nfkc"),
    ],
    ids=str,
)
def test_other_models_are_refused(options, named):
    with pytest.raises(ModelDirectoryError, match=named) as caught:
        convert_tokenizer(SentencePieceTokenizer(trained(**options)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("lower_case", [True, False])
def test_words(lower_case):
    own = WordTokenizer('["the","river","straße","σοφός","हिन्दी","_","."]'.encode(), lower_case)
    stock = Tokenizer.from_str(convert_words(own).to_str())
    assert stock.get_vocab_size() == len(own)
    texts = [
        *HARD_CASES,
        TEXT,
        TEXT.upper(),
        "The river. ΣΟΦΌΣ_x हिन्दी_ <unknown word>",
        "a\u200cb tab\tx\x7fy ٣٫٥",
    ]
    for text in texts:
        every = WordTokenizer(train_words([text, "a"], lower_case=lower_case), lower_case)
        tokens = [every.piece(each) for each in every.encode([text])[0]]
        expected = [
            own.strings.index(token) if token in own.strings else own.unknown_id
            for token in tokens
            if token
        ]
        assert stock.encode(text).ids == expected, ascii(text)
