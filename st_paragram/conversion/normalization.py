"""Read and extend the normalization rules inside a sentencepiece model, for example by simplified Chinese characters.

A model normalizes text by rules from characters to others, leftmost and longest first. They are in its `charsmap`: the
size of a double array in bytes, uint32, the array (units of Darts-clone, uint32), and the replacement texts, each
followed by a zero byte. A value of the array is the position of a replacement text.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from st_paragram.core.tokenizers.model_file import NORMALIZER, fields
from st_paragram.errors import TextError

#: Rules that unify Arabic spelling: without vowel signs and tatweel, and with one letter for those that writers swap
#: (alef with hamza or madda, alef maksura and ya, ta marbuta and ha, hamza on waw or ya).
ARABIC = {
    **dict.fromkeys(map(chr, (0x640, *range(0x64B, 0x653), 0x670)), ""),
    **dict.fromkeys("أإآٱ", "ا"),
    **{"ى": "ي", "ة": "ه", "ؤ": "و", "ئ": "ي"},
}

_CHARSMAP = 2  # field of the settings of the normalizer


def rules_of(model: bytes) -> dict[str, str]:
    """Read the rules of a model: characters -> replacement."""
    if not (charsmap := _charsmap(model)):
        return {}
    size = int.from_bytes(charsmap[:4], "little")
    units, texts = np.frombuffer(charsmap, "<u4", size // 4, 4).tolist(), charsmap[4 + size :]

    def below(place: int) -> int:  # the child nodes of a unit
        return place ^ (units[place] >> 10 << ((units[place] & 512) >> 6))

    children: dict[int, list[int]] = {}  # by parent node; the last byte of a unit is its label
    for place, unit in enumerate(units):
        if not unit >> 31:
            children.setdefault(place ^ unit & 255, []).append(place)
    rules, waiting = {}, [(below(0), b"")]
    while waiting:
        node, key = waiting.pop()
        for place in children.get(node, ()):
            source, child = key + bytes([units[place] & 255]), below(place)
            if units[place] & 256:  # a rule ends here
                begin = units[child] & 0x7FFFFFFF
                rules[source.decode()] = texts[begin : texts.index(0, begin)].decode()
            waiting.append((child, source))
    return rules


def with_rules(model: bytes, more: Mapping[str, str]) -> bytes:
    """Add rules for single characters to a model; they also apply to the results of its existing rules.

    Sentencepiece compiles the rules by training a throwaway vocabulary; its NFKC rules take half a minute.
    """
    import sentencepiece

    table = str.maketrans(dict(more))
    rules = dict(more) | {source: target.translate(table) for source, target in rules_of(model).items()}
    lines = ("\t".join(" ".join(f"{ord(each):x}" for each in text) for text in rule) for rule in rules.items())
    compiled = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.tsv")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c"]),
            model_writer=compiled,
            vocab_size=8,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(path),
            minloglevel=2,
        )
    return _with_charsmap(model, _charsmap(compiled.getvalue()))


def simplified_characters(path: str | Path) -> dict[str, str]:
    """Read rules from traditional to simplified Chinese characters from `Unihan_Variants.txt` of Unicode's Unihan.

    A character that is also a simplified form of itself is not changed.
    """
    rules = {}
    for line in Path(path).read_text(encoding="utf-8").split("\n"):
        if "\tkSimplifiedVariant\t" in line:
            character, _, forms = line.split("\t")
            first, *others = (chr(int(form[2:].partition("<")[0], 16)) for form in (character, *forms.split()))
            if first not in others:
                rules[first] = others[0]
    if not rules:
        raise TextError(f"{path}: no kSimplifiedVariant; give Unihan_Variants.txt of Unihan.zip, from unicode.org")
    return rules


def _charsmap(model: bytes) -> bytes:
    for message, start, end in fields(model):
        if message == NORMALIZER:
            return next((model[a:b] for number, a, b in fields(model, start, end) if number == _CHARSMAP), b"")
    return b""


def _with_charsmap(model: bytes, charsmap: bytes) -> bytes:
    start, end = next((start, end) for message, start, end in fields(model) if message == NORMALIZER)
    settings, last = bytearray(), start
    for number, _, stop in fields(model, start, end):
        settings += _field(_CHARSMAP, charsmap) if number == _CHARSMAP else model[last:stop]
        last = stop
    head = len(_varint(end - start)) + 1  # the number of the message and its size
    return model[: start - head] + _field(NORMALIZER, bytes(settings)) + model[end:]


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    groups = [value >> shift & 127 for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])
