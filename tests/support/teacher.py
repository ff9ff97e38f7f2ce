"""Vectors of a teacher for the sentences of a store, as another program would write them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from st_paragram.core.encoding.packing import NumberType
from st_paragram.tools.embed_files.description import Description, InputText, ModelName, Shard, write_description
from st_paragram.tools.embed_files.settings import ShardFormat
from support.data import write_store


def sha256_of(texts):
    return hashlib.sha256("".join(f"{text}\n" for text in texts).encode()).hexdigest()


def taught_store(path, pairs, vocabulary):
    """A store that says which text it holds."""
    sides = zip(*pairs, strict=True)
    texts = {side: sha256_of(texts) for side, texts in zip("ab", sides, strict=True)}
    return write_store(path, pairs, vocabulary, texts=texts)


def write_vectors(folder: Path, texts, vectors, shard_rows=100, dtype="float16", lines=None):
    """A folder of vectors, (n, D) for each of several texts, which are known by their SHA-256."""
    folder.mkdir()
    shards, inputs = [], []
    for number, (sha256, rows) in enumerate(zip(texts, vectors, strict=True)):
        inputs.append(InputText(f"{number}.txt", sha256, lines or len(rows), 0))
        for first in range(0, len(rows), shard_rows):
            name = f"shard-{len(shards):05d}.npy"
            np.save(folder / name, rows[first : first + shard_rows].astype(dtype))
            digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            shards.append(Shard(name, number, first + 1, len(rows[first : first + shard_rows]), {name: digest}))
    rows, dim = sum(map(len, vectors)), vectors[0].shape[1]
    kind, model = NumberType(dtype), ModelName("wise", "0" * 64)
    description = Description(
        1, rows, dim, kind, None, False, ShardFormat.NPY, False, model, tuple(inputs), tuple(shards)
    )
    write_description(folder, description)
    return folder
