"""Exported folders with a damaged file: their readers refuse them in one line that names the folder, or give vectors.

The readers know nothing of st_paragram and its errors: what they raise is a ValueError. Exports are not compared with
their `SHA256SUMS`, which other software does not read, so damage to numbers gives other vectors, finite ones.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
from numpy.typing import NDArray
from support.data import make_pairs
from support.exports import saved_model

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.conversion import numpy_reader, onnx_reader
from st_paragram.conversion.exports import EXPORT_FILE, ExportSettings, export_model
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.token_embedding import TokenEmbedding

TRIES, QUICK = 5_000, 40

TEXTS = ["ba ce di", "", " ", "\u2603", "Ha JE ki", "x" * 300, *(first for first, _ in make_pairs(20))]
_READERS = {"numpy": numpy_reader.Encoder, "onnx": onnx_reader.Encoder}
_READ = (EXPORT_FILE, "embeddings.npy", "scale.npy", "model.onnx", "sentencepiece.model", "tokenizer.json")
_HEAD = 600  # bytes: headers are short, and most of a file stands behind them


def prepare(folder: Path) -> dict[Path, NDArray[np.float32]]:
    """Exports of both formats, all types and both kinds of tokenizers, and what their readers give."""
    texts = [text for pair in make_pairs(300) for text in pair]
    vocabulary = SentencePieceTokenizer(train_vocabulary(texts, 120))
    pieces = saved_model(vocabulary, folder / "pieces", dropped=[7, 9], dimension=6)
    words = TokenEmbedding(WordTokenizer(train_words(texts)), 5)
    words_saved = model_directory.save(pipeline(words, device="cpu"), folder / "words")
    made = {}
    for kind, reader in _READERS.items():
        for name, source, settings in (
            ("float32", pieces, ExportSettings("float32", normalize=True)),
            ("int8", pieces, ExportSettings("int8")),
            ("words", words_saved, ExportSettings("float16", normalize=True)),
        ):
            path = export_model(source, folder / f"{kind} {name}", kind, settings)
            made[path] = reader(path).encode(TEXTS)
    return made


def attempt(shared: dict[Path, Any], rng: np.random.Generator, folder: Path) -> str:
    """Damage one file that a reader opens, open the folder, encode."""
    original = sorted(shared)[rng.integers(len(shared))]
    export = Path(shutil.copytree(original, folder / "export"))
    paths = [export / name for name in _READ if (export / name).is_file()]
    if (export / "sentencepiece.model").is_file():
        paths.remove(export / "tokenizer.json")  # not opened then
    path = paths[rng.integers(len(paths))]
    _damage(path, rng)
    kind = original.name.partition(" ")[0]
    try:
        reader = _READERS[kind](export)
        rows = reader.encode(TEXTS)
    except ValueError as error:
        said = str(error)
        plain = said.startswith(f"{export}: ") and said.isprintable() and len(said) < 1000
        return "refused" if plain else f"wrong: {type(error).__name__} {said}"
    if rows.dtype != np.float32 or rows.shape != shared[original].shape or not np.isfinite(rows).all():
        return f"wrong: {rows.dtype} {rows.shape}, or not finite, after damage to {path.name}"
    return "unharmed" if np.allclose(rows, shared[original], atol=1e-5) else "other content"


def _damage(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_bytes(json_bytes(edited_json(json.loads(data), rng)))
    elif path.suffix == ".npy" and rng.random() < 0.4:
        path.write_bytes(_other_shape(data, rng))
    elif rng.random() < 0.5:
        path.write_bytes(damaged(data[:_HEAD], rng) + data[_HEAD:])
    else:
        path.write_bytes(damaged(data, rng))


def _other_shape(data: bytes, rng: np.random.Generator) -> bytes:
    """An array file that says another shape or type, of the same length as the header has."""
    end = data.index(b"\n")
    header = data[10:end].decode("latin-1")
    shapes = [
        "(1000000000000, 6)",
        "(1000000000000,)",
        "(0, 6)",
        "(3,)",
        "(0,)",
        "(2, 3, 1)",
        "()",
        "(-1, 6)",
        "(1, 1)",
    ]
    types = ["<f8", "<i8", "|S4", "<c8", "|b1", "|O", "<M8[s]", "|V2"]
    if rng.random() < 0.6:
        begin, close = header.index("("), header.index(")") + 1
        header = header[:begin] + shapes[rng.integers(len(shapes))] + header[close:]
    else:
        begin = header.index("'descr': '") + len("'descr': '")
        header = header[:begin] + types[rng.integers(len(types))] + header[header.index("'", begin) :]
    padded = header.rstrip()[: end - 10].ljust(end - 10)
    return data[:10] + padded.encode("latin-1") + data[end:]
