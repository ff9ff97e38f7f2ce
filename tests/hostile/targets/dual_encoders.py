"""Directories of dual encoders with a damaged file: refused, or the same model; vectors have length 1.

The stock reader compares no checksums: it may fail, or give another model, but it must end.
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
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from support.data import make_pairs
from support.dual_encoder import ARCHITECTURES, new_model, unlike_new, write_bitext

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import ParagramError
from st_paragram.families.muse.directory import DualEncoder
from st_paragram.learning.models import directory as model_directory

TRIES, QUICK = 2_000, 8

TEXTS = ["ba ce di", "", "\u2603", *(first for first, _ in make_pairs(10))]
_FREE = ("config_sentence_transformers.json", "README.md")
_HEAD = 1500  # bytes: headers are short, and most of a file stands behind them


def prepare(folder: Path) -> dict[Path, list[NDArray[np.float32]]]:
    """A small model of each architecture, and all that it says of some texts."""
    texts = [text for pair in make_pairs(300) for text in pair]
    vocabulary = SentencePieceTokenizer(train_vocabulary(texts, 120))
    store = write_bitext(folder / "bitext.h5", vocabulary, make_pairs(40))
    made = {}
    for name in ARCHITECTURES:
        path = model_directory.save(unlike_new(new_model(store, name)), folder / name, card=f"# {name}\n")
        made[path] = _answers(model_directory.load(path, device="cpu"))
    return made


def _answers(model: Any) -> list[NDArray[np.float32]]:
    rows = [model.encode(TEXTS), model.encode_query(TEXTS), model.encode_document(TEXTS)]
    if isinstance(model, DualEncoder):
        rows += [model.encode_answers(TEXTS, TEXTS[::-1]), model.classify(TEXTS, TEXTS[::-1])]
    return rows


def attempt(shared: dict[Path, Any], rng: np.random.Generator, folder: Path) -> str:
    """Damage one file of a model, load it, ask it everything."""
    original = sorted(shared)[rng.integers(len(shared))]
    model = Path(shutil.copytree(original, folder / "model"))
    names = sorted(path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file())
    name = names[rng.integers(len(names))]
    _damage(model / name, rng)
    forged = rng.random() < 0.5
    if rng.random() < 0.15:
        return _stock(model)
    loaded = model_directory.load(model, device="cpu")
    try:
        found = _answers(loaded)
    except ParagramError:
        raise
    except BaseException as error:  # the tokenizers library panics
        if forged and (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            return "sentence-transformers fails on a stranger's model"
        raise
    if not all(np.isfinite(rows).all() for rows in found):
        return "other content, not finite" if forged else f"wrong: not finite after damage to {name}"
    if not all(np.allclose((rows**2).sum(1), 1, atol=1e-3) for rows in found[:4]):
        return f"wrong: no unit vectors after damage to {name}"
    expected = shared[original]
    if len(found) == len(expected) and all(map(np.array_equal, found, expected)):
        return "unharmed"
    return "other content" if forged or name in _FREE else f"wrong: other embeddings after damage to {name}"


def _stock(model: Path) -> str:
    """What comes of a directory that sentence-transformers opens by itself."""
    try:
        rows = SentenceTransformer(str(model), device="cpu", local_files_only=True).encode(TEXTS)
    except BaseException as error:  # the tokenizers library panics
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            return "refused by the stock reader"
        raise
    return "opened by the stock reader" if len(rows) == len(TEXTS) else f"wrong: {len(rows)} rows"


def _damage(path: Path, rng: np.random.Generator) -> None:
    data = path.read_bytes()
    if path.suffix == ".json" and rng.random() < 0.7:
        path.write_bytes(json_bytes(edited_json(json.loads(data), rng)))
    elif path.suffix == ".safetensors" and rng.random() < 0.5:
        _change_tensor(path, rng)
    elif rng.random() < 0.6:
        path.write_bytes(damaged(data[:_HEAD], rng) + data[_HEAD:])
    else:
        path.write_bytes(damaged(data, rng))


def _change_tensor(path: Path, rng: np.random.Generator) -> None:
    """Put another tensor in the place of one, or take it out; the file is a whole one."""
    tensors = load_file(path)
    name = str(rng.choice(sorted(tensors)))
    tensor = tensors.pop(name)
    others = [
        tensor * torch.nan,
        tensor * 1e38,
        tensor.half(),
        tensor.double(),
        tensor.flatten()[:1],
        tensor[None],
        tensor * 0,
    ]
    if (place := rng.integers(len(others) + 1)) < len(others):
        tensors[name] = others[place].contiguous()
    save_file(tensors, path)
