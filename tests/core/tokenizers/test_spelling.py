"""Spellings that writers exchange are read as one."""

import pytest

from st_paragram import Encoder
from st_paragram.core.tokenizers.character_map import with_rules
from st_paragram.core.tokenizers.characters import CHARACTERS
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.spelling import spelling_rules
from st_paragram.core.tokenizers.stock import convert_tokenizer


@pytest.fixture(scope="module")
def processor(vocabulary):
    content = with_rules(vocabulary.content, CHARACTERS | spelling_rules())
    return SentencePieceTokenizer(content).processor


SPELLINGS = [
    ("don’t “go” – now", 'don\'t "go" - now'),
    ("București și Iași, în ț", "Bucureşti şi Iaşi, în ţ"),
    ("ещё всё", "еще все"),
    ("œuvre", "oeuvre"),
    ("שָׁלוֹם", "שלום"),
    ("אבו־ג׳מיל", "אבו-ג'מיל"),
    ("اللہ", "الله"),
    ("അവന്\u200d പറഞ്ഞു", "അവൻ പറഞ്ഞു"),
    ("എൻറെ എന്\u200dറെ", "എന്റെ എന്റെ"),
    ("কুত্সিত কুৎসিত".replace("ত্", "ত্\u200d"), "কুৎসিত কুৎসিত"),
    ("हिन्दी सम्बन्ध अङ्क हाँ", "हिंदी संबंध अंक हां"),
    ("hoà thuỷ khoẻ", "hòa thủy khỏe"),
    ("кao oвo jeдaн Eвeрeст eвeрeст", "као ово један Eверест еверест"),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_two_spellings_are_read_as_one(processor, one, other):
    assert processor.normalize(one) == processor.normalize(other)


def test_readers_without_this_package_apply_the_same_rules():
    tokenizer = Encoder("p-sp-large").tokenizer
    texts = [
        *(side for pair in SPELLINGS for side in pair),
        "вaaa вaaaв вaaaaв aaaв вaeoj jeoaв aвa вaш",
        "quỳ toán Thuỵ Điển ngoài khoẻ mạnh hoà bình uỷ ban",
        "अङ्ग्रेज़ी पञ्चायत घण्टा सन्न्ध ഞാന്\u200d അവന്\u200dറെ",
        "Ștefan și “țara” lui — d’oeuvre; Ёлка, œuvre",
    ]
    stock = convert_tokenizer(tokenizer)
    ids = [row.ids for row in stock.encode_batch(texts)]
    assert ids == tokenizer.processor.encode([text.lower() for text in texts])


def test_other_words_stay_as_they_are(processor):
    text = "jao window-у e\N{COMBINING ACUTE ACCENT}té ja je വന്നു hoa नया मन कक्ष Iaşi é ﬁn"
    plain = "jao window-у été ja je വന്നു hoa नया मन कक्ष Iaşi é fin"
    assert processor.normalize(text).replace("▁", " ").strip() == plain
