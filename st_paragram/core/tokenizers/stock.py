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

from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.normalizers import Normalizer

from st_paragram.core.tokenizers.base import Tokenizer as OwnTokenizer
from st_paragram.core.tokenizers.characters import CHARACTERS, LETTERS, TATWEEL
from st_paragram.core.tokenizers.model_file import NORMALIZER, PIECE, TRAINER, fields
from st_paragram.core.tokenizers.sentencepiece import META_SYMBOL, SentencePieceTokenizer
from st_paragram.core.tokenizers.spelling import CYRILLIC, LOOK_ALIKES, sequences
from st_paragram.core.tokenizers.words import SEPARATORS, WORD_CHARACTERS, Splitter, WordTokenizer
from st_paragram.errors import ModelDirectoryError

_TILDE = "\uff5e"  # NFKC changes it, nmt_nfkc does not
# noncharacters: in no piece, rule or composition
_BARRIER = "\ufdd0"
_STAND_IN = "\ufdd1"
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


def convert(tokenizer: OwnTokenizer) -> Tokenizer:
    """Convert a sentencepiece model or a list of words."""
    if isinstance(tokenizer, WordTokenizer):
        return convert_words(tokenizer)
    assert isinstance(tokenizer, SentencePieceTokenizer)  # others have no conversion
    return convert_tokenizer(tokenizer)


def convert_tokenizer(tokenizer: SentencePieceTokenizer) -> Tokenizer:
    """Convert a sentencepiece unigram model; `encode(text).ids` gives the same ids.

    They include unknown ids. It has the same tokens as the model's pieces, in the same order, and
    no special tokens. Names of control, unknown and unused pieces start with a space, so that they
    cannot occur in a text.
    """
    values = check_convertible(tokenizer)
    model = tokenizer.processor
    ids = list(range(len(tokenizer)))
    names = model.id_to_piece(ids)
    scores = model.get_score(ids)
    has_text = []
    for number in ids:
        is_special = model.is_unknown(number) or model.is_control(number)
        has_text.append(not is_special and not model.is_unused(number))
    # An unknown character gets the lowest score less 10 in both libraries; other pieces must not
    # change the lowest.
    worst = min(scores[number] for number in ids if has_text[number])
    vocabulary = []
    for number in ids:
        if has_text[number]:
            vocabulary.append((names[number], scores[number]))
        else:
            vocabulary.append((f" {names[number]}", worst))
    stock = Tokenizer(models.Unigram(vocabulary, unk_id=tokenizer.unknown_id, byte_fallback=False))
    # The space is removed later; without it, NFKC panics on a text that begins with an inserted
    # character.
    steps: list[Normalizer] = [normalizers.Prepend(" ")]
    if tokenizer.lower_case:
        steps += _lower_casing()
    charsmap = values.get((NORMALIZER, 2))
    if charsmap:
        steps += _rules(charsmap, model)
    steps.append(normalizers.Replace(Regex(" {2,}"), " "))
    steps.append(normalizers.Replace(Regex("^ | $"), ""))
    stock.normalizer = normalizers.Sequence(steps)
    # Words are segmented (and cached) one by one, unless a piece crosses a word boundary.
    split = not any(META_SYMBOL in name[1:] for name in names)
    stock.pre_tokenizer = pre_tokenizers.Metaspace(
        META_SYMBOL, prepend_scheme="always", split=split
    )
    stock.decoder = decoders.Metaspace(META_SYMBOL, prepend_scheme="always")
    return stock


def check_convertible(tokenizer: SentencePieceTokenizer) -> dict[tuple[int, int], bytes]:
    """Refuse a model that has no conversion; return its settings."""
    values = _settings_of(tokenizer.content)
    for field, (convertible, problem) in _CONVERTIBLE.items():
        if values.get(field, convertible[0]) not in convertible:
            raise ModelDirectoryError(
                f"the sentencepiece model {problem}, which cannot become a tokenizer.json; train a"
                " unigram model with sentencepiece's defaults"
            )
    return values


def _settings_of(content: bytes) -> dict[tuple[int, int], bytes]:
    """Read the settings of the trainer and the normalizer, and whether pieces are user-defined."""
    values = {}
    for message, start, end in fields(content):
        if message in (TRAINER, NORMALIZER):
            for number, begin, stop in fields(content, start, end):
                values[message, number] = content[begin:stop]
        elif message == PIECE and content.endswith(b"\x18\x04", start, end):
            values[PIECE, 3] = b"\x04"
    return values


def _rules(charsmap: bytes, model: Any) -> list[Normalizer]:
    """Return steps that normalize like the rules of a sentencepiece model."""
    steps: list[Normalizer] = []
    for letter in (*LETTERS, TATWEEL):
        result = model.normalize(letter).strip(META_SYMBOL)
        if result != letter:
            steps.append(normalizers.Replace(letter, result or _BARRIER))
    return [
        *steps,
        normalizers.Replace(_TILDE, _STAND_IN),
        normalizers.Replace(Regex(f"(?={_POINTS})"), _BARRIER),
        normalizers.NFKC(),
        normalizers.Replace(_STAND_IN, _TILDE),
        *_spellings(model),
        normalizers.Precompiled(charsmap),
        normalizers.Replace(_BARRIER, ""),
    ]


def _spellings(model: Any) -> list[Normalizer]:
    """Return steps for the rules of `spelling` whose characters are in several graphemes."""
    if model.normalize("вa").strip(META_SYMBOL) != "ва":
        return []
    steps: list[Normalizer] = []
    for source, target in sorted(sequences().items(), key=lambda rule: -len(rule[0])):
        steps.append(normalizers.Replace(source, target))
    # Stand-ins, so that a replaced letter does not count as a Cyrillic one.
    stand_ins = dict(zip(LOOK_ALIKES, "\ufdd2\ufdd3\ufdd4\ufdd5", strict=True))
    similar = "".join([*LOOK_ALIKES, *stand_ins.values()])
    before = f"(?<=[{CYRILLIC}]|[{CYRILLIC}][{similar}])"
    after = f"(?=[{similar}]?[{CYRILLIC}])"
    for letter, stand_in in stand_ins.items():
        steps.append(normalizers.Replace(Regex(f"{before}{letter}|{letter}{after}"), stand_in))
    for letter, stand_in in stand_ins.items():
        steps.append(normalizers.Replace(stand_in, LOOK_ALIKES[letter]))
    return steps


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
        for result, characters in sources.items():
            steps.append(normalizers.Replace(Regex(f"[{characters}]"), result))
    if steps:
        stock.normalizer = normalizers.Sequence(steps)
    words = Regex(f"[{WORD_CHARACTERS}]+|[^{WORD_CHARACTERS}{SEPARATORS}]")
    stock.pre_tokenizer = pre_tokenizers.Split(words, "removed", invert=True)
    return stock


def _lower_casing() -> list[Normalizer]:
    """Return steps equal to `str.lower`.

    Lowercase works on single characters, so final sigmas are replaced first.
    """
    letter = r"[\p{Cased}&&[^\p{Case_Ignorable}]]"
    ignorable = r"\p{Case_Ignorable}*"
    final_sigma = Regex(rf"{letter}{ignorable}\K\u03a3(?!{ignorable}{letter})")
    return [normalizers.Replace(final_sigma, "\u03c2"), normalizers.Lowercase()]
