"""Models and texts for measurements by length: untrained models of known sizes, texts of a given number of tokens."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import nn

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import SettingsError
from st_paragram.families.muse.directory import ConvolutionShape, DualEncoder, DualEncoderValues
from st_paragram.families.muse.t5_encoder import t5_modules
from st_paragram.families.muse.towers import TaskHeads, towers
from st_paragram.learning.models.directory import load, save
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import token_embedding
from st_paragram.learning.modules.transformer_encoder import TransformerShape

_WORD = "\u2581"  # sentencepiece's mark of the beginning of a word
_WORDS = 2_000  # different words that texts are made of
_MOST_ENDS = 2  # that a model puts behind a text


@dataclass(frozen=True)
class ModelSizes:
    """Sizes of untrained models.

    Attributes:
        bag_dim: Components of the averaging model (P-SP).
        dim: Components of the two others.
        filters: Of each width of the CNN, which has 2 layers.
        layers: Of the transformer.
        heads: Of its attention.
        ffn_dim: Of its feed-forward networks.
        keep_bag: The mean of the embeddings is part of an embedding, as it is in a product; not in the paper.
    """

    bag_dim: int
    dim: int
    filters: int
    layers: int
    heads: int
    ffn_dim: int
    keep_bag: bool


#: "paper": P-SP of 1,024 components (EMNLP 2021), mUSE as in ACL 2020; "small": as the configuration muse_small.
SIZES = {
    "paper": ModelSizes(1024, 512, 256, 6, 8, 2048, keep_bag=False),
    "small": ModelSizes(256, 256, 64, 2, 4, 512, keep_bag=True),
}


def untrained_models(sizes: ModelSizes, longest: int, folder: Path, tokenizer: Tokenizer | None = None) -> list[str]:
    """Write model directories p-sp, muse-cnn and muse-transformer of random weights (seed 0).

    Args:
        sizes: of the models.
        longest: tokens that they must be able to read.
        folder: for the directories.
        tokenizer: their vocabulary; that of the shipped model (24,000 pieces) if not given.

    Returns:
        The directories.
    """
    if tokenizer is None:
        shipped: Any = load("p-sp-mini", device="cpu")[0]
        tokenizer = shipped.tokenizer
    assert tokenizer is not None
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return [str(save(model, folder / name)) for name, model in _models(sizes, longest, tokenizer)]


def _models(sizes: ModelSizes, longest: int, tokenizer: Tokenizer) -> Iterator[tuple[str, SentenceTransformer]]:
    yield "p-sp", pipeline(token_embedding(tokenizer, sizes.bag_dim), device="cpu")
    dim, positions = sizes.dim, longest + _MOST_ENDS
    cnn = ConvolutionShape(sizes.filters, 2, sizes.keep_bag)
    t5 = TransformerShape(dim, sizes.layers, sizes.heads, sizes.ffn_dim, 0.0, positions)
    bodies: list[tuple[str, list[nn.Module], ConvolutionShape | None]] = [
        ("muse-cnn", [token_embedding(tokenizer, dim), cnn.encoder(dim)], cnn),
        ("muse-transformer", t5_modules(tokenizer, t5, sizes.keep_bag), None),
    ]
    for name, modules, convolution in bodies:
        values = DualEncoderValues(dict(tokenizer.options), dim, positions, convolution=convolution)
        yield name, DualEncoder.of([*modules, towers(dim)], tokenizer, TaskHeads(dim), values, "cpu")


def longest_text(model: SentenceTransformer) -> int | None:
    """Tokens that a model reads of a text, those that it puts behind it left out; None: all."""
    if isinstance(model, DualEncoder):
        return model.values.max_length - model.vectors.ends
    limit = model.max_seq_length
    return None if limit is None else limit - _ends(model)


def texts_of(model: SentenceTransformer, length: int, count: int) -> list[str]:
    """Texts of `length` tokens of the model's vocabulary each, ends left out: random words of a piece each (seed 0).

    Raises:
        SettingsError: the model reads no texts as long, or has no vocabulary of sentencepiece.
    """
    limit = longest_text(model)
    if limit is not None and length > limit:
        raise SettingsError(f"texts of {length} tokens, of which the model reads {limit}; leave such lengths out")
    rng = random.Random(0)
    words = [piece.removeprefix(_WORD) for piece in _pieces(model) if piece.startswith(_WORD)]
    words = sorted(word for word in words if word.isalpha() and word == word.lower())
    rng.shuffle(words)
    words = words[: 2 * _WORDS]
    words = [word for word, size in zip(words, _lengths(model, words), strict=True) if size == 1][:_WORDS]
    if not words:
        raise SettingsError("no piece of its vocabulary is a word, of which texts could be made; give another model")
    texts = [" ".join(rng.choices(words, k=length)) for _ in range(count)]
    if set(_lengths(model, texts)) != {length}:
        raise SettingsError(f"words of its vocabulary make no texts of exactly {length} tokens; give another model")
    return texts


def _pieces(model: SentenceTransformer) -> list[str]:
    first: Any = model[0]
    own: Any = getattr(first, "tokenizer", None)
    tokenizer = model.sentencepiece if isinstance(model, DualEncoder) else own
    if isinstance(tokenizer, SentencePieceTokenizer):
        return [tokenizer.processor.id_to_piece(number) for number in range(len(tokenizer))]
    if hasattr(own, "get_vocab"):
        return list(own.get_vocab())
    raise SettingsError("it has no vocabulary of sentencepiece, of which texts could be made; give another model")


def _lengths(model: SentenceTransformer, texts: Sequence[str]) -> list[int]:
    """Tokens of each text as the model reads it, ends left out."""
    if not texts:
        return []
    features = model.preprocess(list(texts))
    if "cu_seq_lens_q" in features:
        return [int(size) for size in features["cu_seq_lens_q"].diff()]
    return [int(size) - _ends(model) for size in features["attention_mask"].sum(1)]


def _ends(model: SentenceTransformer) -> int:
    """What a stock tokenizer puts before and behind a text."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    return int(tokenizer.num_special_tokens_to_add()) if hasattr(tokenizer, "num_special_tokens_to_add") else 0
