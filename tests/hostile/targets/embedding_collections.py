"""Folders of embeddings in shards with a damaged file: refused, or rows of the size that is told."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from numpy.typing import NDArray
from support.data import make_pairs

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.tools.embed_files.collection import embed_collection
from st_paragram.tools.embed_files.reader import read_embeddings
from st_paragram.tools.embed_files.settings import CollectionSettings

TRIES, QUICK = 3_000, 40

_SETTINGS = {
    "float32": CollectionSettings(shard_lines=30),
    "int8": CollectionSettings("int8", shard_lines=25),
    "parquet": CollectionSettings("float16", format="parquet", with_text=True, shard_lines=40),
    "parquet-int8": CollectionSettings("int8", format="parquet", with_text=True, shard_lines=40),
}


def prepare(folder: Path) -> dict[Path, NDArray[np.float32]]:
    """The same text embedded into folders of several forms, and their rows."""
    torch.manual_seed(0)
    vocabulary = train_vocabulary((text for pair in make_pairs(300) for text in pair), 120)
    model = pipeline(SentencePieceEmbedding(SentencePieceTokenizer(vocabulary), 4), device="cpu")
    path = model_directory.save(model, folder / "model")
    text = folder / "text"
    text.write_text("".join(f"{first}\n" for first, _ in make_pairs(100)), encoding="utf-8")
    made = {}
    for name, settings in _SETTINGS.items():
        embed_collection([text], folder / name, path, settings)
        made[folder / name] = read_embeddings(folder / name).rows(0, 100)
    return made


def attempt(shared: dict[Path, Any], rng: np.random.Generator, folder: Path) -> str:
    """Damage one file of a folder, and read everything."""
    original = sorted(shared)[rng.integers(len(shared))]
    made = Path(shutil.copytree(original, folder / "made"))
    paths = sorted(path for path in made.rglob("*") if path.is_file())
    path = paths[rng.integers(len(paths))]
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_bytes(json_bytes(edited_json(json.loads(data), rng)))
    else:
        path.write_bytes(damaged(data, rng))
    found = read_embeddings(made)
    rows = found.rows(0, len(found))
    if rows.shape != (len(found), found.dimension) or not np.array_equal(found.take(range(len(rows))), rows, True):
        return f"wrong: {rows.shape} of {len(found)} rows, or other ones by their numbers"
    if "parquet" in original.name and len(found.texts(0, len(found))) != len(found):
        return "wrong: another number of texts than of rows"
    if np.array_equal(rows, shared[original]):
        return "unharmed"
    return "other content" if path.suffix == ".json" else f"wrong: other rows, and {path.name} was not refused"
