"""Read and extend the normalization rules inside a sentencepiece model.

A model normalizes text by rules from characters to others, leftmost and longest first. They are in
its `charsmap`: the size of a double array in bytes, uint32, the array (units of Darts-clone,
uint32), and the replacement texts, each followed by a zero byte. A value of the array is the
position of a replacement text.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from st_paragram.core.tokenizers.model_file import NORMALIZER, fields

_CHARSMAP = 2  # field of the settings of the normalizer


def rules_of(model: bytes) -> dict[str, str]:
    """Read the rules of a model: characters -> replacement."""
    return _rules(_charsmap(model))


def _rules(charsmap: bytes) -> dict[str, str]:
    if not charsmap:
        return {}
    size = int.from_bytes(charsmap[:4], "little")
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).tolist()
    texts = charsmap[4 + size :]

    def below(place: int) -> int:  # the child nodes of a unit
        return place ^ (units[place] >> 10 << ((units[place] & 512) >> 6))

    children: dict[int, list[int]] = {}  # by parent node; the last byte of a unit is its label
    for place, unit in enumerate(units):
        if not unit >> 31:
            children.setdefault(place ^ unit & 255, []).append(place)
    rules = {}
    waiting = [(below(0), b"")]
    while waiting:
        node, key = waiting.pop()
        for place in children.get(node, ()):
            source = key + bytes([units[place] & 255])
            child = below(place)
            if units[place] & 256:  # a rule ends here
                begin = units[child] & 0x7FFFFFFF
                rules[source.decode()] = texts[begin : texts.index(0, begin)].decode()
            waiting.append((child, source))
    return rules


def with_rules(model: bytes, more: Mapping[str, str]) -> bytes:
    """Add rules to a model, or replace its rules for the same characters.

    A new rule for a single character also applies to the results of other rules, and to a letter
    with marks, such as ya with hamza.
    """
    if not more:
        return model
    return _with_charsmap(model, _extended(_charsmap(model), tuple(more.items())))


@lru_cache(maxsize=4)  # each call takes seconds
def _extended(charsmap: bytes, more: tuple[tuple[str, str], ...]) -> bytes:
    single = {source: target for source, target in more if len(source) == 1}
    table = str.maketrans(single)
    variants: dict[str, list[str]] = {}  # by the character that they are read as
    for character, replacement in single.items():
        variants.setdefault(replacement, []).append(character)
    rules = {}
    for source, target in _rules(charsmap).items():
        rules[source] = target.translate(table)
        if len(source) > 1:
            for variant in variants.get(source[0], ()):
                rules[variant + source[1:]] = rules[source]
    return _compiled(rules | dict(more))


def _compiled(rules: Mapping[str, str]) -> bytes:
    """Compile rules.

    Sentencepiece does this only in the training of a vocabulary, so a small one is trained.
    """
    import tempfile

    import sentencepiece

    lines = [f"{_code_points(source)}\t{_code_points(target)}" for source, target in rules.items()]
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.tsv")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c"]),
            model_writer=model,
            vocab_size=8,
            hard_vocab_limit=False,
            normalization_rule_tsv=str(path),
            minloglevel=2,
        )
    return _charsmap(model.getvalue())


def _code_points(text: str) -> str:
    return text.encode("utf-32-be").hex(" ", 4)


def _normalizer(model: bytes) -> tuple[int, int]:
    """Return where the settings of the normalizer begin and end."""
    for message, start, end in fields(model):
        if message == NORMALIZER:
            return start, end
    return 0, 0


def _charsmap(model: bytes) -> bytes:
    start, end = _normalizer(model)
    for number, begin, stop in fields(model, start, end):
        if number == _CHARSMAP:
            return model[begin:stop]
    return b""


def _with_charsmap(model: bytes, charsmap: bytes) -> bytes:
    start, end = _normalizer(model)
    settings = bytearray()
    last = start
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
