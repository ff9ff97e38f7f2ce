"""Index folders with a damaged file: refused, or the same answers.

Another answer may come out where `index.json` was edited together with its digests. Digests of damaged `.faiss` files
are left as they were: what faiss makes of a stranger's file is not tried here.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from support.data import make_pairs

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.files import describe_files, digest
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.tools.search.search_index import Hit, SearchIndex
from st_paragram.tools.search.settings import SearchSettings

TRIES, QUICK = 20_000, 20

QUERIES = ["ba ce di", "fo gu", "xi yo zu ba"]
_FACTORIES = ("Flat", "IVF4,Flat", "IVF4,SQ8", "HNSW8", "IVF4,PQ4x4fs")
_CHANGED = ("Flat", "IVF4,Flat")  # those that there are with fields, segments and deletions, too


@dataclass
class Shared:
    """A model, and index folders with their answers."""

    path: Path
    model: Any
    hits: dict[Path, list[list[Hit]]]


def prepare(folder: Path) -> Shared:
    """Small indexes of all kinds over one text."""
    torch.manual_seed(0)
    texts = [text for pair in make_pairs(150) for text in pair]
    (folder / "text").write_text("\n".join(texts))
    vocabulary = SentencePieceTokenizer(train_vocabulary(texts, 120))
    model = pipeline(SentencePieceEmbedding(vocabulary, 8), device="cpu")
    path = model_directory.save(model, folder / "model")
    hits = {}
    for number, factory in enumerate(_FACTORIES):
        index = SearchIndex.build(folder / "text", folder / f"{number}.index", path, SearchSettings(index=factory))
        hits[index.folder] = answers(index)
        if factory in _CHANGED:
            copy = SearchIndex(shutil.copytree(index.folder, folder / f"{number}-changed.index"), path)
            copy.add([f"{text} {text}" for text in texts[:40]], [{"kind": n % 3, "lang": "xx"} for n in range(40)])
            copy.delete(lines=range(5, 60))
            hits[copy.folder] = answers(copy)
    return Shared(path, model_directory.load(path, device="cpu"), hits)


def answers(index: SearchIndex) -> list[list[Hit]]:
    """What is found, also among some sentences."""
    filtered = index.search(QUERIES, 5, where=["kind>=1", "lang=xx"]) if "kind" in index.fields else []
    return index.search(QUERIES, 5) + filtered


def attempt(shared: Shared, rng: np.random.Generator, folder: Path) -> str:
    """Damage one file of an index, open it, search it."""
    original = sorted(shared.hits)[rng.integers(len(shared.hits))]
    copy = Path(shutil.copytree(original, folder / "copy.index"))
    names = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file())
    name = "index.json" if rng.random() < 0.4 else names[rng.integers(len(names))]
    if name == "index.json" and rng.random() < 0.8:
        forged = _edit(copy / name, rng)
    else:
        (copy / name).write_bytes(damaged((copy / name).read_bytes(), rng))
        forged = not name.endswith((".faiss", "index.json")) and rng.random() < 0.6
        if forged:
            _seal(copy, name)
    index = SearchIndex(copy, None if forged and rng.random() < 0.3 else shared.path)
    index.__dict__["encoder"] = shared.model
    if answers(index) == shared.hits[original]:
        return "unharmed"
    return "other content" if forged else f"wrong: other answers after damage to {name}"


def _seal(folder: Path, name: str) -> None:
    """Make the digests of `index.json` fit a file that was damaged."""
    values = json.loads((folder / "index.json").read_bytes())
    values["files"] |= {key: asdict(found) for key, found in describe_files(folder).items() if key == name}
    del values["digest"]
    (folder / "index.json").write_text(json.dumps(values | {"digest": digest(values)}))


def _edit(path: Path, rng: np.random.Generator) -> bool:
    """Edit `index.json`; whether its own digest was made to fit."""
    values = edited_json(json.loads(path.read_bytes()), rng)
    forged = isinstance(values, dict) and rng.random() < 0.7
    if forged:
        values.pop("digest", None)
        values["digest"] = digest(json.loads(json.dumps(values)))
    path.write_bytes(json_bytes(values))
    return forged
