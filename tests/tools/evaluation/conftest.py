"""A tiny model directory, different texts, and a stand-in for models whose texts are names of vectors."""

import numpy as np
import pytest

from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


class Named:
    """Stands for a model: texts are names of vectors, of those of `documents` for the tower of documents."""

    def __init__(self, queries, documents=None):
        self.sides, self.calls = (queries, documents or queries), []

    def encode(self, texts, side=0, **_):
        self.calls.append(list(texts))
        rows = np.array([self.sides[side][text] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    encode_query = encode

    def encode_document(self, texts, **_):
        return self.encode(texts, side=1)


@pytest.fixture
def named():
    return Named


@pytest.fixture(scope="package")
def tiny(tmp_path_factory, vocabulary):
    untrained = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    return model_directory.save(untrained, tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="package")
def texts(pairs):
    return list(dict.fromkeys(first for first, _ in pairs))
