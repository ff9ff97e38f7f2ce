"""A tiny model directory, texts, files of rows, the command, and a stand-in for models."""

import numpy as np
import pytest
import torch

from st_paragram.cli.main import main
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation.scores import read_scores


class Named:
    """Stands for a model: texts are names of vectors, of those of `documents` for the tower of
    documents.

    Other texts have a vector of zeros, like texts without a known token.
    """

    def __init__(self, queries, documents=None):
        self.sides, self.calls = (queries, documents or queries), []

    def encode(self, texts, side=0, **_):
        self.calls.append(list(texts))
        known = self.sides[side]
        none = np.zeros_like(next(iter(known.values())))
        rows = np.array([known.get(text, none) for text in texts], np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, 1, lengths)

    encode_query = encode

    def encode_document(self, texts, **_):
        return self.encode(texts, side=1)


@pytest.fixture
def named():
    return Named


@pytest.fixture(scope="package")
def tiny(tmp_path_factory, vocabulary):
    torch.manual_seed(0)
    untrained = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    return str(load_save.save(untrained, tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="package")
def texts(pairs):
    return list(dict.fromkeys(first for first, _ in pairs))


@pytest.fixture(scope="package")
def write():
    """Write a text, or rows of cells between tabs; folders are made."""

    def write(path, rows):
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (
            rows
            if isinstance(rows, str)
            else "".join("\t".join(map(str, row)) + "\n" for row in rows)
        )
        path.write_bytes(text.encode())
        return path

    return write


@pytest.fixture
def evaluate(tmp_path, capsys):
    """Run the command: what it printed and the scores that it wrote, or its error, one line."""

    def run(*arguments, refused=False):
        file = tmp_path / "out" / "scores.json"
        status = main(["evaluate", *map(str, arguments), "--json", str(file)])
        printed, errors = capsys.readouterr()
        assert status == refused, errors
        assert not refused or errors.count("\n") == 1
        return errors if refused else (printed, read_scores(file))

    return run
