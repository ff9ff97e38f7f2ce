"""The encoder without torch, on damaged model directories and any text: refused, or what the SentenceTransformer gives.

Where a directory is damaged, both may refuse it for different reasons; if one reads it, so must the other, and both
must give the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from support.data import make_pairs

from hostile.damage import damaged, edited_json, json_bytes
from hostile.targets.text import draw_text
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.errors import ParagramError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import TokenEmbedding

TRIES, QUICK = 20_000, 25

_KINDS = ("float32", "float16", "int8", "int4")


def prepare(folder: Path) -> list[Path]:
    """A small model of each kind of tokenizer and table."""
    torch.manual_seed(0)
    texts = [text for pair in make_pairs(200) for text in pair]
    words = WordTokenizer(train_words(texts))
    tokenizers = {
        "sentencepiece": SentencePieceTokenizer(train_vocabulary(texts, 120)),
        "cased": SentencePieceTokenizer(train_vocabulary(texts, 120), lower_case=False),
        "word": words,
        "trigram": CharacterTrigramTokenizer(train_trigrams(texts)),
        "bilingual": BilingualTokenizer.of(words, WordTokenizer(train_words(texts[::3])), Sharing.STRING, ("a", "b")),
    }
    saved = []
    for number, (name, tokenizer) in enumerate(tokenizers.items()):
        prompts = {"query": "ba ", "passage": "\u2581x"}
        model = pipeline(TokenEmbedding(tokenizer, 8), device="cpu", normalize=number % 2 == 1, prompts=prompts)
        saved += [model_directory.save(model, folder / f"{name}-{kind}", dtype=kind) for kind in _KINDS]
    return saved


def attempt(shared: list[Path], rng: np.random.Generator, folder: Path) -> str:
    """Damage a file, or none; open the model in both ways and embed some texts with some options."""
    model = Path(shutil.copytree(shared[rng.integers(len(shared))], folder / "model"))
    harmed = rng.random() < 0.6
    if harmed:
        names = sorted(path for path in model.rglob("*") if path.is_file() and path.suffix != ".md")
        _damage(names[rng.integers(len(names))], rng)
    texts = [draw_text(rng) for _ in range(rng.integers(1, 9))]
    options = _options(rng)
    try:
        light = Encoder(model).encode(texts, **options)
    except ParagramError:
        if not harmed:
            return "wrong: a sound model is refused"
        try:
            model_directory.load(model, device="cpu").encode(texts, **options)
        except (ParagramError, ValueError):  # the latter of sentence-transformers, for a prompt that is not there
            return "refused by both"
        return "wrong: refused by the encoder alone"
    try:
        full = model_directory.load(model, device="cpu").encode(texts, **options)
    except ParagramError as error:
        return f"wrong: refused by the SentenceTransformer alone ({error})"
    if not np.isfinite(light).all():
        return "wrong: numbers that are not finite"
    same = light.dtype == full.dtype and np.array_equal(light, full)
    return ("the same, damaged" if harmed else "the same") if same else "wrong: other numbers"


def _options(rng: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {"normalize_embeddings": bool(rng.integers(2)), "batch_size": int(rng.integers(1, 9))}
    if rng.random() < 0.3:
        options["truncate_dim"] = int(rng.integers(1, 9))
    if rng.random() < 0.3:
        options["prompt_name"] = ("query", "document", "passage")[rng.integers(3)]
    return options


def _damage(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_bytes(json_bytes(edited_json(json.loads(data), rng)))
    else:
        path.write_bytes(damaged(data, rng))
