"""Checkpoints of the original code, damaged or made to do harm: refused, or a model of finite rows.

Nothing that stands in a checkpoint may ever be called.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from support.data import make_pairs
from support.original import make_checkpoint, make_texts, vocabulary_of

from hostile.damage import damaged
from st_paragram.conversion.original_import import import_checkpoint
from st_paragram.conversion.original_settings import ImportSettings
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.learning.models import directory as model_directory

TRIES, QUICK = 3_000, 40

TEXTS = ["ba ce di", "\u2603", *(first for first, _ in make_pairs(10))]


class _Harm:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def prepare(folder: Path) -> dict[str, Any]:
    """A sentencepiece model, and what the original code saves of one."""
    texts = make_texts(60)
    vocabulary = train_vocabulary((text for pair in make_pairs(300) for text in pair), 120)
    path = folder / "paranmt.model"
    path.write_bytes(vocabulary)
    tokenizer = SentencePieceTokenizer(vocabulary)
    pieces = [[str(tokenizer.piece(number)) for number in tokenizer.encode([text])[0].tolist()] for text in texts]
    return {"model": path, "checkpoint": make_checkpoint(vocabulary_of(pieces))}


def attempt(shared: dict[str, Any], rng: np.random.Generator, folder: Path) -> str:
    """Change a checkpoint as an object, as a file, or both; import it, and embed."""
    checkpoint = dict(shared["checkpoint"])
    harm = folder / "harm"
    if rng.random() < 0.6:
        _change(checkpoint, harm, rng)
    path = folder / "model.para.lc.100.pt"
    torch.save(checkpoint, path, _use_new_zipfile_serialization=bool(rng.random() < 0.5))
    if rng.random() < 0.6:
        path.write_bytes(damaged(path.read_bytes(), rng))
    settings = ImportSettings(exact=bool(rng.random() < 0.5))
    try:
        import_checkpoint(path, folder / "made", shared["model"], settings)
    finally:
        if harm.exists():
            return "wrong: what stands in the checkpoint was called"  # noqa: B012 - whatever else went wrong
    rows = model_directory.load(folder / "made", device="cpu").encode(TEXTS)
    return "imported" if np.isfinite(rows).all() else "wrong: rows that are not finite"


def _change(checkpoint: dict[str, Any], harm: Path, rng: np.random.Generator) -> None:
    """Put something else in the place of a part."""
    table = checkpoint["state_dict"]["embedding.weight"]
    vocabulary = checkpoint["vocab"]
    strange = [None, _Harm(harm), 10**30, float("nan"), [[]], "x" * 1000, {1: 2}, {"a": -1}, b"\xff", pickle.dumps(1)]
    tables = [
        table * np.nan,
        table * 1e38,
        table[:3],
        table[0],
        table.half(),
        table.to(torch.int8),
        torch.zeros(0, 6),
        table.T,
        table[:1].expand(10**11, 6),  # more rows than a file could hold
        table[:, :1].expand(len(table), 10**10),
        torch.zeros(1, 1).expand(2**31, 2**31),
        table.to_sparse(),
        table.to(torch.complex64),
        table > 0,
        torch.empty(len(table), 6, device="meta"),
        torch.nn.Parameter(table),
        table[None],
    ]
    names = [{**vocabulary, "ba": 10**9}, {**vocabulary, "ba": -1}, {**vocabulary, "\ud800": 1}, {}, {"UUUNKKK": 0}]
    kind = rng.integers(4)
    if kind == 0:
        checkpoint[str(rng.choice(sorted(checkpoint)))] = strange[rng.integers(len(strange))]
    elif kind == 1:
        checkpoint["state_dict"] = {"embedding.weight": tables[rng.integers(len(tables))]}
    elif kind == 2:
        checkpoint["vocab"] = names[rng.integers(len(names))]
    else:
        arguments = type(checkpoint["args"])(**vars(checkpoint["args"]))
        setattr(arguments, str(rng.choice(sorted(vars(arguments)))), strange[rng.integers(len(strange))])
        checkpoint["args"] = arguments
