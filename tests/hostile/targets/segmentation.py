"""Sentencepiece models, damaged: read and refused as sentencepiece does, and the same ids for any text.

Models that the compiled reader does not take are left to sentencepiece, which this then compares with itself; the
outcome says which of them it was.
"""

from __future__ import annotations

import io
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from support.data import make_pairs

from hostile.damage import damaged
from st_paragram.core.tokenizers.model_file import round_scores
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import SettingsError

TRIES, QUICK = 20_000, 60

_KINDS: tuple[dict[str, Any], ...] = (
    *({}, {}, {}, {"normalization_rule_name": "nmt_nfkc_cf"}, {"byte_fallback": True, "vocab_size": 500}),
    *({"control_symbols": ["<x>", "ba"]}, {"normalization_rule_name": "nfkc"}),
    *({"user_defined_symbols": ["ba", "e c"]}, {"treat_whitespace_as_suffix": True}, {"model_type": "bpe"}),
)  # fmt: skip
_PLANES = (
    0x20,
    0x7F,
    0x100,
    0x300,
    0x370,
    0x600,
    0xE00,
    0x1100,
    0x2000,
    0x3000,
    0x4E00,
    0xAC00,
    0xFB00,
    0x1D400,
    0x1F600,
)
_STRANGE = "\u2581\u3000\u00a0\x00\x01\u0301\u0130\u03a3\u03c3\u200d\ufeff\ufffd\ufb01\uff21\U0010ffff \t"
_SCORES = (0.0, -0.0, 1.0, -1.0, -3.5, -1e-3, -(2.0**-10), -5000.0, 1e38, float("nan"), -float("inf"))
_PIECES = ("", "a", "▁", "▁ba", "b▁", "x\0", "\xff", "<unk>", "<s>", "<0x41>", "e" * 300, "ba" * 4100)


def prepare(folder: Path) -> list[bytes]:
    """A small model of each kind."""
    texts = [text for pair in make_pairs(300) for text in pair] + ["Straße École İĞ ΟΔΥΣΣΕΥΣ 河水 ①½ ﬁ"] * 9
    return [_train(texts, **options) for options in _KINDS]


def _train(texts: list[str], **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        minloglevel=2,
        **{"vocab_size": 200, "hard_vocab_limit": False, "num_threads": 1, **options},
    )
    return round_scores(model.getvalue())


def attempt(shared: list[bytes], rng: np.random.Generator, folder: Path) -> str:
    """Damage a model, read it both ways, and encode some texts."""
    content = _changed(shared[rng.integers(len(shared))], rng)
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(content)
    except (RuntimeError, UnicodeDecodeError) as error:  # the latter tells of the former
        return _refusal(content, error)
    lower = bool(rng.random() < 0.5)
    tokenizer = SentencePieceTokenizer(content, lower)
    texts = [_text(rng) for _ in range(40)]
    if (wrong := _difference(tokenizer, processor, texts, lower)) is not None:
        return f"wrong: {wrong}"
    return "left to sentencepiece" if tokenizer._encoder.obstacle else "the same ids"


def _refusal(content: bytes, error: Exception) -> str:
    try:
        SentencePieceTokenizer(content)
    except SettingsError as ours:
        return "refused" if "not a sentencepiece model" in str(ours) else f"wrong: {ours}"
    return f"wrong: read, though sentencepiece says {error}"


def _difference(tokenizer: SentencePieceTokenizer, processor: Any, texts: list[str], lower: bool) -> str | None:
    """A text whose ids differ; None if there is none."""
    if (len(tokenizer), tokenizer.unknown_id) != (processor.get_piece_size(), processor.unk_id()):
        return f"{len(tokenizer)} pieces, the unknown one {tokenizer.unknown_id}"
    for _ in range(2):  # the second time out of the table
        ids, offsets = tokenizer.encode(texts, None, 2)
        for number, text in enumerate(texts):
            row = processor.encode(text.lower() if lower else text)
            expected = [i for i in row if i != tokenizer.unknown_id] or [tokenizer.unknown_id]
            if (found := ids[offsets[number] : offsets[number + 1]].tolist()) != expected:
                return f"{text!r} is {found}, with sentencepiece {expected}"
    return None


def _changed(content: bytes, rng: np.random.Generator) -> bytes:
    """Other bytes: anywhere, at the beginning, among the rules at the end, or pieces put before the others."""
    kind = rng.random()
    if kind < 0.1:
        return content
    if kind < 0.3:
        return damaged(content, rng)
    if kind < 0.5:
        return damaged(content[:300], rng) + content[300:]
    if kind < 0.8:  # nearly all of a small model is rules: a bit or two
        result = bytearray(content)
        for _ in range(int(rng.geometric(0.5))):
            result[rng.integers(len(result))] ^= 1 << rng.integers(8)
        return bytes(result)
    return b"".join(_piece(rng) for _ in range(rng.integers(1, 4))) + content


def _piece(rng: np.random.Generator) -> bytes:
    text = (
        random.Random(int(rng.integers(1 << 30)))
        .choice(_PIECES)
        .encode("latin-1" if rng.random() < 0.1 else "utf-8", "replace")
    )
    message = b"\x0a" + _varint(len(text)) + text + b"\x15" + struct.pack("<f", _SCORES[rng.integers(len(_SCORES))])
    if rng.random() < 0.6:
        message += b"\x18" + _varint(int(rng.integers(0, 9)))
    return b"\x0a" + _varint(len(message)) + message


def _varint(number: int) -> bytes:
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*result, number])


def _text(rng: np.random.Generator) -> str:
    """Characters of a few blocks, strange ones, words of the models' languages; now and then a very long word."""
    parts = []
    for _ in range(rng.integers(0, 8)):
        first = _PLANES[rng.integers(len(_PLANES))]
        parts.append("".join(chr(first + k) for k in rng.integers(0, 0x80, rng.integers(0, 5))))
        parts.append(str(rng.choice(["ba", "Ce ", " di", "Ha", "<x>", "ΑΣ", "", " "])))
        parts.append(_STRANGE[rng.integers(len(_STRANGE))])
    return "".join(parts) * int(rng.choice([1, 1, 1, 1, 40]))
