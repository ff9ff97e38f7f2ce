"""Conversion to Hugging Face `tokenizers` that give the same ids, for readers without this package.

Sentencepiece normalizes with a table of rules, leftmost and longest first. `Precompiled` of
`tokenizers` reads it, but takes the shortest match in each grapheme and drops the rest. So letters
and marks are first composed (NFKC). Arabic and Hebrew points have no composed form, and NFKC would
reorder them, unlike the table, so a temporary barrier is inserted before each. It also keeps the
points of letters that have a rule. Marks of other scripts may differ if they are not in Unicode's
order, or follow a digit. Letters of `LETTERS` are replaced first, since their results are composed
with marks.
"""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.normalizers import Normalizer

from st_paragram.core.tokenizers.characters import CHARACTERS, LETTERS, TATWEEL
from st_paragram.core.tokenizers.model_file import NORMALIZER, PIECE, TRAINER, fields
from st_paragram.core.tokenizers.sentencepiece import META_SYMBOL, SentencePieceTokenizer
from st_paragram.core.tokenizers.words import SEPARATORS, WORD_CHARACTERS, Splitter, WordTokenizer
from st_paragram.errors import ModelDirectoryError

_TILDE = "\uff5e"  # NFKC changes it, nmt_nfkc does not
_BARRIER, _STAND_IN = "\ufdd0", "\ufdd1"  # noncharacters: in no piece, rule or composition
# the last enclose symbols
_POINTS = r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u0670\u20d0-\u20f0]"
_UNKNOWN_WORD = "<unknown word>"  # no splitter leaves a space in a word
# Fields with the values that can be converted, the default first, and the meaning of other values.
_CONVERTIBLE = {
    (PIECE, 3): ([b""], "has user-defined symbols"),
    (TRAINER, 3): ([b"\x01"], "is not a unigram model"),
    (TRAINER, 24): ([b"\x00"], "puts spaces after words"),
    (TRAINER, 35): ([b"\x00"], "uses byte fallback"),
    (NORMALIZER, 1): (
        [b"nmt_nfkc", b"nfkc", b"identity"],
        "normalizes with rules other than nmt_nfkc or nfkc",
    ),
    (NORMALIZER, 3): ([b"\x01"], "adds no dummy prefix"),
    (NORMALIZER, 4): ([b"\x01"], "keeps extra spaces"),
    (NORMALIZER, 5): ([b"\x01"], "does not escape spaces"),
}


def convert_tokenizer(tokenizer: SentencePieceTokenizer) -> Tokenizer:
    """Convert a sentencepiece unigram model; `encode(text).ids` gives the same ids, including
    unknown ids.

    It has the same tokens as the model's pieces, in the same order, and no special tokens. Names of
    control, unknown and unused pieces start with a space, so that they cannot occur in a text.
    """
    content, values = tokenizer.content, dict[tuple[int, int], bytes]()
    for message, start, end in fields(content):
        if message in (TRAINER, NORMALIZER):
            values |= {
                (message, number): content[a:b] for number, a, b in fields(content, start, end)
            }
        elif message == PIECE and content.endswith(b"\x18\x04", start, end):
            values[PIECE, 3] = b"\x04"
    for field, (convertible, what) in _CONVERTIBLE.items():
        if values.get(field, convertible[0]) not in convertible:
            advice = (
                "which cannot become a tokenizer.json; train a unigram model with sentencepiece's"
                " defaults"
            )
            raise ModelDirectoryError(f"the sentencepiece model {what}, {advice}")
    charsmap = values.get((NORMALIZER, 2))
    model, ids = tokenizer.processor, list(range(len(tokenizer)))
    names, scores = model.id_to_piece(ids), model.get_score(ids)
    no_text = {
        each
        for each in ids
        if model.is_unknown(each) or model.is_control(each) or model.is_unused(each)
    }
    # An unknown character gets the lowest score less 10 in both libraries; other pieces must not
    # change the lowest.
    worst = min(score for each, score in enumerate(scores) if each not in no_text)
    vocabulary = [
        (f" {names[each]}", worst) if each in no_text else (names[each], scores[each])
        for each in ids
    ]
    stock = Tokenizer(models.Unigram(vocabulary, unk_id=tokenizer.unknown_id, byte_fallback=False))
    # The space is removed later; without it, NFKC panics on a text that begins with an inserted
    # character.
    steps: list[Normalizer] = [
        normalizers.Prepend(" "),
        *(_lower_casing() if tokenizer.lower_case else []),
    ]
    if charsmap:
        read = {
            letter: model.normalize(letter).strip(META_SYMBOL) for letter in (*LETTERS, TATWEEL)
        }
        replaced = {
            letter: result or _BARRIER for letter, result in read.items() if result != letter
        }
        steps += [normalizers.Replace(letter, result) for letter, result in replaced.items()]
        steps += [
            normalizers.Replace(_TILDE, _STAND_IN),
            normalizers.Replace(Regex(f"(?={_POINTS})"), _BARRIER),
        ]
        steps += [
            normalizers.NFKC(),
            normalizers.Replace(_STAND_IN, _TILDE),
            normalizers.Precompiled(charsmap),
        ]
        steps += [normalizers.Replace(_BARRIER, "")]
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex("^ | $"), "")]
    stock.normalizer = normalizers.Sequence(steps)
    # Words are segmented (and cached) one by one, unless a piece crosses a word boundary.
    split = not any(META_SYMBOL in name[1:] for name in names)
    stock.pre_tokenizer = pre_tokenizers.Metaspace(
        META_SYMBOL, prepend_scheme="always", split=split
    )
    stock.decoder = decoders.Metaspace(META_SYMBOL, prepend_scheme="always")
    return stock


def convert_words(tokenizer: WordTokenizer) -> Tokenizer:
    """Convert a list of words; `encode(text).ids` gives the same ids, including the unknown id."""
    if tokenizer.splitter is not Splitter.REGEX:
        raise ModelDirectoryError(
            'Moses cannot be written as a tokenizer.json; use the splitter "regex"'
        )
    vocabulary = {word: place for place, word in enumerate([*tokenizer.strings, _UNKNOWN_WORD])}
    stock = Tokenizer(models.WordLevel(vocabulary, unk_token=_UNKNOWN_WORD))
    steps = _lower_casing() if tokenizer.lower_case else []
    if tokenizer.characters:
        sources: dict[str, str] = {}
        for character, result in CHARACTERS.items():
            sources[result] = sources.get(result, "") + character
        steps += [
            normalizers.Replace(Regex(f"[{characters}]"), result)
            for result, characters in sources.items()
        ]
    if steps:
        stock.normalizer = normalizers.Sequence(steps)
    words = Regex(f"[{WORD_CHARACTERS}]+|[^{WORD_CHARACTERS}{SEPARATORS}]")
    stock.pre_tokenizer = pre_tokenizers.Split(words, "removed", invert=True)
    return stock


def _lower_casing() -> list[Normalizer]:
    """Return steps equal to `str.lower`: Lowercase works on single characters, so final sigmas are
    replaced first.
    """
    letter, ignorable = r"[\p{Cased}&&[^\p{Case_Ignorable}]]", r"\p{Case_Ignorable}*"
    final_sigma = Regex(rf"{letter}{ignorable}\K\u03a3(?!{ignorable}{letter})")
    return [normalizers.Replace(final_sigma, "\u03c2"), normalizers.Lowercase()]
