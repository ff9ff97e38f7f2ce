"""Load whatever is to be scored: models of ours, any SentenceTransformer, random embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

from st_paragram.core.encoding.configuration import CONFIG_FILE
from st_paragram.core.encoding.find import find
from st_paragram.families.sp.directory import recurrent_modules, recurrent_pipeline
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models import stock
from st_paragram.learning.models.averaging import embedding_of
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import token_embedding


def load_model(name: str) -> SentenceTransformer:
    """Load a model of ours by directory, name or hub id; any other directory as a SentenceTransformer.

    Lower-casing and segmentation come with the model. Code that a directory brings along is never run, and nothing
    that it names is fetched from the hub.

    Raises:
        ModelDirectoryError: neither can read it.
    """
    path = Path(name)
    if (path / "modules.json").is_file() and not (path / CONFIG_FILE).is_file():
        with stock.reading(path, "sentence-transformers cannot load it"):
            return SentenceTransformer(str(path), trust_remote_code=False, local_files_only=True)
    return model_directory.load(name)


def random_model(like: SentenceTransformer, dim: int | None = None, seed: int = 0) -> SentenceTransformer:
    """A model of the same architecture and tokenizer with random weights: what the architecture knows untrained.

    Args:
        like: an averaging or a recurrent model of ours.
        dim: components of a token's embedding; None: as many as `like` has.
        seed: of the weights.

    Raises:
        ModelDirectoryError: `like` is neither.
    """
    modules = recurrent_modules(like)
    embedding = embedding_of(like) if modules is None else modules[0]
    torch.manual_seed(seed)
    table = token_embedding(embedding.tokenizer, dim or embedding.embedding_dimension)
    return pipeline(table) if modules is None else recurrent_pipeline(table, modules[1].hidden_dim)


def find_models(names: Sequence[str]) -> None:
    """Look for models without loading them; one of the hub is fetched.

    Raises:
        ModelDirectoryError: a model is not there; the message says where it was looked for.
    """
    for name in dict.fromkeys(names):
        find(name)
