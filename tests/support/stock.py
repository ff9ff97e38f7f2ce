"""Stock pipelines and small models for tests."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import LSTM, Pooling, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer


def lstm_pipeline(texts, dimension=16, hidden=16):
    """Word embeddings, a bidirectional LSTM and their mean, all of sentence-transformers; N(0, 1)
    at the start.
    """
    words = sorted({word for text in texts for word in text.split()})
    weights = torch.randn(len(words), dimension)
    modules = [
        WordEmbeddings(WhitespaceTokenizer(words, stop_words=()), weights, update_embeddings=True),
        LSTM(dimension, hidden),
        Pooling(2 * hidden, pooling_mode="mean"),
    ]
    return SentenceTransformer(modules=modules, device="cpu", similarity_fn_name="cosine")
