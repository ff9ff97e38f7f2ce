"""Model directories with a damaged file: refused, or the same model.

Another model comes out where nothing can tell: of files that people write themselves
(`config_sentence_transformers.json`), and of a stranger's directory, which has no checksums here, or right ones of
damaged files.
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
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from support.data import make_pairs
from support.stock import lstm_pipeline

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.stock_conversion import convert_tokenizer
from st_paragram.errors import ParagramError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding

TRIES, QUICK = 20_000, 15

TEXTS = ["ba ce di", "", "Ω ba", "\ufb01 Ⅸ ｶﾞ", *(first for first, _ in make_pairs(60))]
_FREE = ("config_sentence_transformers.json", "README.md")
_HEAD = 1500  # bytes: headers are short, and most of a file stands behind them


def prepare(folder: Path) -> dict[Path, Any]:
    """Small models of all architectures, and their embeddings of some texts."""
    torch.manual_seed(0)
    texts = [text for pair in make_pairs(300) for text in pair]
    vocabulary = SentencePieceTokenizer(train_vocabulary(texts, 120))
    embedding = SentencePieceEmbedding(vocabulary, 6)
    averaging = pipeline(embedding, device="cpu", prompts={"query": "ba "})
    stock = StaticEmbedding(convert_tokenizer(vocabulary.content, lower_case=True), embedding_dim=5)
    models = {kind: (averaging, kind) for kind in ("float32", "float16", "int8", "int4")}
    models["lstm"] = lstm_pipeline(texts[:40], 5, 4), None
    models["static"] = SentenceTransformer(modules=[stock], device="cpu"), None
    models["modules"] = SentenceTransformer(modules=[embedding, Pooling(6, pooling_mode="max")], device="cpu"), None
    saved = [
        model_directory.save(model, folder / name, card=f"# {name}\n", dtype=kind)
        for name, (model, kind) in models.items()
    ]
    return {path: model_directory.load(path, device="cpu").encode(TEXTS) for path in saved}


def attempt(shared: dict[Path, Any], rng: np.random.Generator, folder: Path) -> str:
    """Damage one file of a model, load it, encode with it."""
    original = sorted(shared)[rng.integers(len(shared))]
    model = Path(shutil.copytree(original, folder / "model"))
    names = sorted(path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file())
    name = names[rng.integers(len(names))]
    _damage(model / name, rng)
    strangers = rng.random() < 0.5
    loaded = model_directory.load(model, device="cpu")
    try:
        rows = loaded.encode(TEXTS)
    except ParagramError:
        raise
    except BaseException as error:  # the tokenizers library panics
        known = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if known and strangers and original.name in ("lstm", "static", "modules"):
            return "sentence-transformers fails on a stranger's model"
        raise
    if rows.shape == shared[original].shape and np.array_equal(rows, shared[original], equal_nan=True):
        return "unharmed"
    return "other content" if strangers or name in _FREE else f"wrong: other embeddings after damage to {name}"


def _damage(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_bytes(json_bytes(edited_json(json.loads(data), rng)))
    elif rng.random() < 0.5:
        path.write_bytes(damaged(data[:_HEAD], rng) + data[_HEAD:])
    elif rng.random() < 0.5:
        path.write_bytes(data[:-_HEAD] + damaged(data[-_HEAD:], rng))
    else:
        path.write_bytes(damaged(data, rng))
