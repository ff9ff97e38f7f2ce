"""Models to export, hard texts, and readers that come with exported folders."""

from __future__ import annotations

import importlib.util

import numpy as np
import torch

from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding

KNOWN = [
    "ba ce di",
    "Ha JE ki lo mu na",
    "ba Ω ce",
    " ba \t ce  ",
    "ba ce " * 2000,
    "je\x00ki",
    "zu" * 40,
    "我们😀",
    "Ω",
]
WITHOUT_KNOWN = ["", " "]


def saved_model(vocabulary, folder, dropped=(), dimension=37, **settings):
    torch.manual_seed(5)
    tokenizer = SentencePieceTokenizer(vocabulary.content, dropped=dropped) if dropped else vocabulary
    model = pipeline(token_embedding(tokenizer, dimension), device="cpu", **settings)
    return model_directory.save(model, folder)


def ids_of(vocabulary, text):
    """Ids of some of a text's pieces, to be dropped."""
    return sorted(set(vocabulary.encode([text])[0].tolist()))[:2]


def reader_in(folder):
    """The class in the `reader.py` of an exported folder."""
    spec = importlib.util.spec_from_file_location("exported_reader", folder / "reader.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Encoder


def cosines(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
