"""Contents and options of tokenizers of all kinds, damaged: refused, or ids that are rows, pieces and texts again.

What is refused is refused in one line. What is read gives the same ids after it was pickled, one row or more for every
text, and never an id that it drops.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from support.data import make_pairs

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.files import parse_json
from st_paragram.core.tokenizers.base import Tokenizer, load_tokenizer
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams
from st_paragram.core.tokenizers.original import OriginalTokenizer, write_content
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.words import WordTokenizer, train_words

TRIES, QUICK = 10_000, 60

TEXTS = [
    *("", " ", "ba ce di", "Ha JE ki", "\u2603", "字λ", "ba\x00ce", "\ufb01 \u2166", "x" * 900, "\ud800", "▁ ba"),
    *(text for pair in make_pairs(8) for text in pair),
]
_HEAD = 300  # bytes: where lengths and the first pieces stand


def prepare(folder: Path) -> list[Tokenizer]:
    """A small tokenizer of each kind, and of each way in which a kind is used."""
    texts = [text for pair in make_pairs(200) for text in pair]
    vocabulary = train_vocabulary(texts, 120)
    pieces = SentencePieceTokenizer(vocabulary)
    surfaces = sorted({str(pieces.piece(number)) for number in pieces.encode(texts)[0].tolist()})
    words, trigrams = WordTokenizer(train_words(texts)), CharacterTrigramTokenizer(train_trigrams(texts))
    others = [WordTokenizer(train_words(texts[:40], lower_case=True)), SentencePieceTokenizer(vocabulary)]
    return [
        pieces,
        words,
        trigrams,
        SentencePieceTokenizer(vocabulary, dropped=[5, 9, 11]),
        SentencePieceTokenizer(vocabulary, dropped=range(3, len(pieces))),
        OriginalTokenizer(write_content(surfaces, vocabulary)),
        OriginalTokenizer(write_content(sorted({word for text in texts for word in text.split()}))),
        OriginalTokenizer(write_content(trigrams.strings), trigrams=True),
        BilingualTokenizer.of(words, others[0], Sharing.STRING, ("en", "xx")),
        BilingualTokenizer.of(pieces, others[1], Sharing.DISJOINT, ("en", "xx")).in_language("xx"),
    ]


def attempt(shared: list[Tokenizer], rng: np.random.Generator, folder: Path) -> str:
    """Damage what a tokenizer is made of, make it, and ask it everything."""
    whole = shared[rng.integers(len(shared))]
    content, options = whole.content, whole.options
    of_options = rng.random() < 0.4
    if of_options:
        try:
            options = parse_json(json_bytes(edited_json(options, rng)))
        except ValueError:
            return "options that no caller gives"
        if not isinstance(options, dict):
            return "options that no caller gives"
        if rng.random() < 0.1:
            options[str(rng.choice(["a\nb", "\x1b[31m", "é" * 3000, "kind"]))] = 1
    if not of_options or rng.random() < 0.3:
        content = _changed(content, rng)
    kind = whole.kind if rng.random() < 0.95 else str(rng.choice([each.kind for each in shared]))
    tokenizer = load_tokenizer(kind, content, options)
    wrong = _answers(tokenizer, int(rng.integers(1, 12)))
    if wrong:
        return f"wrong: {wrong}"
    return "unharmed" if tokenizer == whole else "other content"


def _changed(content: bytes, rng: np.random.Generator) -> bytes:
    """Other bytes; of a content in JSON, often another value."""
    if content[:1] in b"[{" and rng.random() < 0.6:
        return json_bytes(edited_json(parse_json(content), rng))
    if rng.random() < 0.5:
        return damaged(content[:_HEAD], rng) + content[_HEAD:]
    return damaged(content, rng)


def _answers(tokenizer: Tokenizer, most: int) -> str | None:
    """What is wrong with its ids; None if nothing is."""
    ids, offsets = tokenizer.encode(TEXTS)
    counts = np.diff(offsets)
    if len(counts) != len(TEXTS) or offsets[0] or offsets[-1] != len(ids) or (counts < 1).any():
        return f"offsets {offsets.tolist()} of {len(ids)} ids"
    if ids.min() < 0 or ids.max() >= len(tokenizer):
        return f"ids {ids.min()}..{ids.max()} of {len(tokenizer)}"
    if np.isin(ids, [each for each in tokenizer.options.get("dropped", []) if each != tokenizer.unknown_id]).any():
        return "ids that are dropped"
    cut = tokenizer.encode(TEXTS, most)[1]
    if (np.diff(cut) > np.maximum(np.minimum(counts, most), 1)).any() or (np.diff(cut) < 1).any():
        return f"{np.diff(cut).tolist()} ids of texts that are cut to {most}"
    again = pickle.loads(pickle.dumps(tokenizer))
    if again != tokenizer or hash(again) != hash(tokenizer) or not np.array_equal(again.encode(TEXTS)[0], ids):
        return "another tokenizer after it was pickled"
    return _texts(tokenizer, ids)


def _texts(tokenizer: Tokenizer, ids: Any) -> str | None:
    """What is wrong with its texts; None if nothing is."""
    rows = [ids.tolist(), [tokenizer.unknown_id], [0]]
    known = ids[ids != tokenizer.unknown_id]
    if len(known) and not np.array_equal(tokenizer.pack([ids.tolist()])[0], known):
        return "other ids when they are packed"
    for text in map(tokenizer.decode, rows):
        text.encode("utf-8")
    for number in range(len(tokenizer)):
        (tokenizer.piece(number) or "").encode("utf-8")
    return None
