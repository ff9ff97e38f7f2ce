"""Checkpoints as the original P-SP and SP code saves them, and embeddings as that code computes
them.
"""

from __future__ import annotations

import argparse
import random

import numpy as np
import torch

from support.data import make_pairs

RARE = "žżλ字жß"
#: Letters that NFKC makes of other characters after lower-casing, an abbreviation, and no known
#: character at all.
ODD = [
    "",
    "   ",
    "字λ",
    "\u2121 ba ce",
    "ba\u2122 di",
    "BA CE Fo",
    "ba 字字 ce",
    "\u1f7b gu",
    "ba\u2028ce",
    "İ ba",
]


def make_texts(count, seed=0):
    """Sentences, some with rare characters inside and between words."""
    rng = random.Random(seed)
    texts = [text for pair in make_pairs(count // 2, seed) for text in pair]
    for place in range(0, len(texts), 3):
        words = texts[place].split()
        words.insert(rng.randrange(len(words) + 1), "".join(rng.choices(RARE, k=rng.randint(1, 2))))
        texts[place] = " ".join(words)
    return texts


def vocabulary_of(tokens):
    """Rows in the order of first appearance, the unknown one last."""
    names = dict.fromkeys(token for text in tokens for token in text)
    return {name: row for row, name in enumerate([*names, "UUUNKKK"])}


def make_checkpoint(vocabulary, dim=6, seed=0, **arguments):
    """What the original code passes to `torch.save`, with the state of its optimizer."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.nn.Embedding.from_pretrained(
        torch.randn(len(vocabulary), dim, generator=generator), freeze=False
    )
    optimizer = torch.optim.Adam(table.parameters(), lr=0.001)
    table(torch.arange(3)).sum().backward()
    optimizer.step()
    settings = {
        "model": "avg",
        "pool": "mean",
        "zero_unk": 1,
        "ngrams": 0,
        "share_vocab": 1,
        "lower_case": 1,
    }
    settings |= {
        "tokenize": 0,
        "dropout": 0.0,
        "sp_model": None,
        "gpu": 0,
        "outfile": "model",
        **arguments,
    }
    return {
        "state_dict": torch.nn.ModuleDict({"embedding": table}).state_dict(),
        "vocab": vocabulary,
        "vocab_fr": None,
        "args": argparse.Namespace(**settings),
        "optimizer": optimizer.state_dict(),
        "epoch": 10,
    }


def embed_by_hand(checkpoint, tokens):
    """Mean over the rows of known tokens, or the unknown row: float64 (N, D)."""
    table = checkpoint["state_dict"]["embedding.weight"].double().numpy()
    vocabulary, means = checkpoint["vocab"], []
    for text in tokens:
        rows = [vocabulary[token] for token in text if token in vocabulary] or [
            vocabulary["UUUNKKK"]
        ]
        means.append(np.mean([table[row] for row in rows], axis=0))
    return np.array(means)
