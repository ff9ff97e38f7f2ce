"""A sentencepiece unigram model as a Hugging Face ``tokenizers`` tokenizer that gives the same ids.

Sentencepiece normalizes with a table of rules, leftmost and longest first: single characters (the ligature
fi -> "f", "i") and short sequences ("e" + combining acute -> "é"). ``tokenizers`` can read that table
(``Precompiled``), but it looks it up once per grapheme, takes the shortest match and drops what is left, so
that marks vanish. Its ``NFC``, on the other hand, composes more than the table does: it sorts marks, and
joins what sits on two sides of a deleted character.

So the text is cut first. A *barrier*, one character that occurs nowhere else, goes before every mark and
around every character that the table turns into none or into several. Then ``Precompiled`` sees characters
one by one; then the barriers inside sequences that the table has as a rule are taken out again, and ``NFC``
composes those and only those.

Where the two still differ, by their nature:
    - Near ties. Sentencepiece adds scores in float32 from the start of the text, ``tokenizers`` in float64
      from the start of the word. Two segmentations of equal score, mostly of the same pieces ("8"+"88",
      "88"+"8"), or of almost equal score may come out differently, about once in 50,000 sentences. (Scores
      that are multiples of 2**-10 would leave both sums exact, and no difference.)
    - Characters newer than one of the Unicode tables involved (Python's ``str.lower``, both libraries).
      They are normally unknown pieces on both sides, and then nothing differs.
    - Lone surrogates are not text: both sides refuse them, with different exceptions.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING

from st_paragram.core.tokenizers.sentencepiece_format import (
    LEADING_JAMO,
    PieceKind,
    SentencePieceModel,
    parse_model,
    read_rules,
)
from st_paragram.errors import ModelDirectoryError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Normalizer

_SPACE = "\u2581"  # what sentencepiece writes for a space
_BARRIER, _STAND_IN = "\ufdd0", "\ufdd1"  # noncharacters: no piece, no rule, no composition
_MARKS = r"\p{M}\p{Grapheme_Extend}\u200d\u1160-\u11ff\x{d7b0}-\x{d7ff}"  # what may continue a grapheme


def convert_tokenizer(model_proto: bytes, lower_case: bool = True) -> Tokenizer:
    """Convert a sentencepiece unigram model; ``encode(text).ids`` are then the ids sentencepiece gives.

    The reference is ``SentencePieceProcessor.encode(text.lower() if lower_case else text)``. A run of unknown
    characters is one unknown id, as there. No special tokens are added. The tokenizer survives ``to_str`` and
    ``from_str``. Names of control, unknown and unused pieces get a space in front, so no text can spell them.

    Args:
        model_proto: the serialized model: the bytes of ``sentencepiece.model``.
        lower_case: whether text is lower-cased first, as ``str.lower`` does it.

    Returns:
        A tokenizer with as many tokens as the model has pieces, in the same order.

    Raises:
        ModelDirectoryError: if the bytes are not such a model, or it uses an option that cannot be converted.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    model = parse_model(model_proto)
    _refuse_unconvertible(model)
    normal = [piece for piece in model.pieces if piece.kind == PieceKind.NORMAL]
    # An unknown character gets the worst score less 10 on both sides; other pieces must not move the worst.
    worst = min(piece.score for piece in normal)
    vocabulary = [
        (piece.text, piece.score) if piece.kind == PieceKind.NORMAL else (f" {piece.text}", worst)
        for piece in model.pieces
    ]
    unknown = next(index for index, piece in enumerate(model.pieces) if piece.kind == PieceKind.UNKNOWN)
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unknown, byte_fallback=False))

    alphabet = frozenset(character for piece in normal for character in piece.text)
    # The space in front becomes sentencepiece's dummy prefix. It is there from the first step on, as some
    # steps panic on a text that begins with an inserted character.
    steps: list[Normalizer] = [normalizers.Prepend(" ")]
    steps += lower_casing() if lower_case else []
    steps += _rule_steps(model.charsmap, alphabet) if model.charsmap else []
    tokenizer.normalizer = normalizers.Sequence(steps + _space_steps())
    # Words are segmented (and cached) one by one, unless a piece reaches over a word's start.
    split = not any(_SPACE in piece.text[1:] for piece in normal)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="never", split=split)
    tokenizer.decoder = decoders.Metaspace(_SPACE, prepend_scheme="always")
    return tokenizer


def _refuse_unconvertible(model: SentencePieceModel) -> None:
    """Raise if the model is not a plain unigram model."""
    names = {2: "BPE", 3: "word", 4: "character"}
    kinds = {piece.kind for piece in model.pieces}
    problems = {
        f"is a {names.get(model.model_type, model.model_type)} model": model.model_type != 1,
        "uses byte fallback": model.byte_fallback or PieceKind.BYTE in kinds,
        "has user-defined symbols": PieceKind.USER_DEFINED in kinds,
        "adds no dummy prefix": not model.dummy_prefix,
        "keeps extra spaces": not model.remove_extra_whitespaces,
        "does not escape spaces": not model.escape_whitespaces,
        "puts spaces behind words": model.whitespace_as_suffix,
        "has no unknown piece or no normal piece": not {PieceKind.UNKNOWN, PieceKind.NORMAL} <= kinds,
    }
    for problem, present in problems.items():
        if present:
            raise ModelDirectoryError(
                f"the sentencepiece model {problem}, which cannot become a tokenizer.json; "
                "train a unigram model with sentencepiece's defaults"
            )


# The normalizer, step by step


def lower_casing() -> list[Normalizer]:
    """``str.lower``: as Lowercase works on single characters, the word-final sigma is written first."""
    from tokenizers import Regex, normalizers

    letter, ignorable = r"[\p{Cased}&&[^\p{Case_Ignorable}]]", r"\p{Case_Ignorable}*"
    final_sigma = Regex(rf"{letter}{ignorable}\K\u03a3(?!{ignorable}{letter})")
    return [normalizers.Replace(final_sigma, "\u03c2"), normalizers.Lowercase()]


def _space_steps() -> list[Normalizer]:
    """Squeeze the spaces and strip the end: to nothing, if only spaces are left."""
    from tokenizers import Regex, normalizers

    squeeze = normalizers.Replace(Regex(" {2,}"), " ")
    strip = normalizers.Replace(Regex(rf"[ {_SPACE}]+\z"), "")
    return [squeeze, strip]


@lru_cache(maxsize=2)
def _rule_steps(charsmap: bytes, alphabet: frozenset[str]) -> list[Normalizer]:
    """The steps that do what the table of rules does (see the module's docstring).

    Reading the table takes most of a conversion's time, and every checkpoint of a run has the same.

    Args:
        charsmap: the compiled table.
        alphabet: the characters in the pieces; what happens to others cannot be seen, they are unknown.

    Raises:
        ModelDirectoryError: if the table holds rules for sequences that are not a canonical composition.
    """
    from tokenizers import Regex, normalizers

    rules = read_rules(charsmap)
    composed, unseen = _compositions(rules, alphabet)
    continuing = {character for key in composed | unseen for character in key[1:]}
    drop_marks = normalizers.Replace(Regex(f"[{_MARKS}{_characters(continuing)}]"), "")
    single = {key: value for key, value in rules.items() if len(key) == 1}
    into_marks = {key for key, value in single.items() if value and not drop_marks.normalize_str(value[0])}
    # The barrier is in the class only so that the class is never empty; the text has none yet.
    changing_length = _characters({_BARRIER, *(key for key, value in single.items() if len(value) != 1)})
    longest_first = [_literal(_BARRIER.join(key)) for key in sorted(unseen, key=lambda key: (-len(key), key))]
    return [
        normalizers.Replace(_BARRIER, _STAND_IN),
        normalizers.Replace(Regex(f"(?<=[{changing_length}])|(?=[{changing_length}])"), _BARRIER),
        normalizers.Replace(Regex(f"(?=[{_MARKS}{_characters(continuing | into_marks)}])"), _BARRIER),
        normalizers.Precompiled(charsmap),
        normalizers.Replace(Regex("|".join(longest_first) or "(?!)"), _STAND_IN),
        normalizers.Replace(Regex(_inner_barriers(composed)), ""),
        normalizers.NFC(),
        normalizers.Replace(_BARRIER, ""),
    ]


def _compositions(rules: dict[str, str], alphabet: frozenset[str]) -> tuple[set[str], set[str]]:
    """The sequences that have a rule, as they look once the rules for single characters have acted.

    Returns:
        Those that NFC composes as the rule says, and those that it does not (its Unicode table may be older
        than sentencepiece's) but which the rule turns into unknown characters: any unknown character works.

    Raises:
        ModelDirectoryError: if the steps of this module cannot do what a rule says and pieces could show it.
    """
    from tokenizers import normalizers

    nfc = normalizers.NFC()
    composed, unseen = set(), set()
    for key, value in rules.items():
        mapped = "".join(rules.get(character, character) for character in key)
        if len(key) == 1 or (mapped != key and rules.get(mapped, mapped) == value):
            continue
        if mapped == key and nfc.normalize_str(key) == value and (len(key) == 2 or key[:-1] in rules):
            composed.add(key)
        elif mapped == key and value and alphabet.isdisjoint(value):
            unseen.add(key)
        elif mapped == key or not alphabet.isdisjoint(value + rules.get(mapped, mapped)):
            raise ModelDirectoryError(
                f"the sentencepiece model normalizes {key!a} to {value!a}, which cannot become a "
                "tokenizer.json; train with normalization_rule_name=nmt_nfkc"
            )
    return composed, unseen


def _inner_barriers(composed: set[str]) -> str:
    """A regular expression for the barriers inside sequences with a rule.

    Every beginning of such a sequence is itself one, so looking back over what was composed so far is enough.
    """
    bases: dict[str, set[str]] = defaultdict(set)  # what follows the base -> the bases it follows
    for key in composed:
        if key[0] == LEADING_JAMO[0]:
            bases[key[1:]].update(LEADING_JAMO)
        else:
            bases[key[1:]].add(key[0])
    places = []
    for rest, first in sorted(bases.items()):
        before = "".join(_BARRIER + character for character in rest[:-1]) + _BARRIER
        places.append(f"(?<=[{_characters(first)}]{_literal(before)})(?={_literal(rest[-1])})")
    return f"{_BARRIER}(?:{'|'.join(places) or '(?!)'})"


def _literal(text: str) -> str:
    """A regular expression for a text."""
    return "".join(rf"\x{{{ord(character):x}}}" for character in text)


def _characters(characters: set[str]) -> str:
    """The inside of a regular expression's character class, as ranges."""
    codes = sorted(map(ord, characters))
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges)
