"""First module of a pipeline: a tokenizer, which converts text to ids, and the embedding matrix."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save
from sentence_transformers.base.modules import InputModule
from torch import Tensor, nn
from typing_extensions import Self

from st_paragram.core.files import read_json
from st_paragram.core.model_directory.configuration import WEIGHTS_FILE
from st_paragram.core.model_directory.model_files import tokenizer_file
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.loading import load_tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.modules.compact_embedding import COMPACT_TYPES, CompactEmbedding
from st_paragram.learning.modules.flat_features import FlatFeatures, flat_features

if TYPE_CHECKING:
    import sentencepiece

_HUB_ARGUMENTS = ("subfolder", "token", "cache_folder", "revision", "local_files_only")


class TokenEmbedding(InputModule):
    """A tokenizer and an embedding for each of its ids.

    Embeddings start at random from N(0, 1), like the random encoders of ACL 2019.

    Texts are never padded or truncated. Unknown tokens are dropped. A text without known tokens
    becomes a single unknown id. Its row in the embedding matrix is zeros, and averaging models keep
    it in training.

    Examples:
        >>> from st_paragram import PairStore, TokenEmbedding
        >>> embedding = TokenEmbedding(PairStore("data/en-es.h5").tokenizer(), 64)
        >>> embedding.preprocess(["a sentence"])["cu_seq_lens_q"].shape
        torch.Size([2])
    """

    # Saved pipelines use the public name, which stays valid when files move.
    __module__ = "st_paragram"

    config_file_name = "token_embedding_config.json"
    tokenizer: Tokenizer  # type: ignore[assignment]
    embedding: nn.Embedding | CompactEmbedding

    def __init__(
        self,
        tokenizer: Tokenizer,
        embedding_dimension: int | None = None,
        weights: Tensor | CompactEmbedding | None = None,
        dropout: float = 0.0,
    ) -> None:
        """Create the embedding matrix, or use `weights`, float (len(tokenizer), D).

        A compact matrix can only encode. `dropout` is the probability with which each dimension of
        a token's embedding is dropped in training.
        """
        super().__init__()
        if not hasattr(tokenizer, "pack"):
            raise SettingsError(
                f"a tokenizer is expected, not {type(tokenizer).__name__}; for a sentencepiece"
                " model, use SentencePieceEmbedding"
            )
        if (embedding_dimension is None) == (weights is None):
            raise SettingsError("give either embedding_dimension or weights")
        if not 0 <= dropout < 1:
            raise SettingsError(f"dropout is {dropout}; it must be at least 0 and below 1")
        if weights is None:
            weights = torch.randn(len(tokenizer), embedding_dimension or 0)
            weights[list(tokenizer.unknown_ids)] = 0
        if isinstance(weights, Tensor):
            self.embedding = nn.Embedding.from_pretrained(weights, freeze=False)
        else:
            self.embedding = weights
            self.training = False
        table = self.embedding.weight
        if len(table) != len(tokenizer):
            raise SettingsError(
                f"a table of shape {tuple(table.shape)} for a tokenizer of {len(tokenizer)} ids"
            )
        self.tokenizer = tokenizer
        self.dropout = dropout
        self.embedding_dimension: int = self.embedding.embedding_dim
        #: Number of threads for tokenization; None: as many as torch uses.
        self.num_threads: int | None = None

    @property
    def max_seq_length(self) -> int | None:
        """None: texts are not truncated."""
        return None

    def get_embedding_dimension(self) -> int:
        """Dimension of the embeddings."""
        return self.embedding_dimension

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that `save` writes in addition to tokenizer and embedding matrix."""
        return {
            "embedding_dimension": self.embedding_dimension,
            "tokenizer_kind": self.tokenizer.kind,
            "tokenizer_options": self.tokenizer.options,
            "dropout": self.dropout,
        }

    def train(self, mode: bool = True) -> Self:
        """Switch dropout on or off; refuse to train a compact table."""
        if mode and isinstance(self.embedding, CompactEmbedding):
            raise SettingsError(
                f"a table of {self.embedding.kind.value} cannot be trained; train a copy made by"
                " `st-paragram export --dtype float32`"
            )
        return super().train(mode)

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Make flat features of B strings, each after the prompt, or of B lists of ids."""
        if all(isinstance(text, str) for text in inputs):
            texts = [prompt + text for text in inputs] if prompt else inputs
            threads = self.num_threads or torch.get_num_threads()
            return flat_features(*self.tokenizer.encode(texts, num_threads=threads))
        if prompt:
            raise SettingsError("a prompt cannot be put before ids; give texts, or no prompt")
        if not all(isinstance(row, list | tuple) for row in inputs):
            kinds = sorted({type(row).__name__ for row in inputs})
            raise SettingsError(
                f"inputs of type {', '.join(kinds)}; give only texts, or only lists of ids"
            )
        return flat_features(*self.tokenizer.pack(inputs))

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Attach the embedding matrix to flat features; the next module does the computation."""
        return FlatFeatures(features, self.embedding, self.dropout if self.training else 0.0)

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Write configuration, tokenizer and embedding matrix (always as safetensors)."""
        self.save_config(output_path)
        folder = Path(output_path)
        (folder / tokenizer_file(self.tokenizer.kind)).write_bytes(self.tokenizer.content)
        (folder / WEIGHTS_FILE).write_bytes(save(self.state_dict()))

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> Self:  # type: ignore[override]
        """Load a saved module from a directory or the hub."""
        hub = {name: kwargs[name] for name in _HUB_ARGUMENTS if name in kwargs}

        def path(name: str) -> Path:
            path = cls.load_file_path(model_name_or_path, filename=name, **hub)
            if path is None:
                raise ModelDirectoryError(
                    f"{model_name_or_path}: {name} is missing; save the model again"
                )
            return Path(path)

        config = read_json(path(cls.config_file_name))
        kind = config["tokenizer_kind"]
        content = path(tokenizer_file(kind)).read_bytes()
        tokenizer = load_tokenizer(kind, content, config["tokenizer_options"])
        tensors = load_file(path(WEIGHTS_FILE))
        weights: Any = tensors["embedding.weight"]
        if weights.dtype in COMPACT_TYPES:
            weights = CompactEmbedding(weights, tensors.get("embedding.scale"))
        return cls(tokenizer, weights=weights, dropout=config["dropout"])


class SentencePieceEmbedding(TokenEmbedding):
    """`TokenEmbedding` with a sentencepiece tokenizer.

    Examples:
        >>> from st_paragram import PairStore, SentencePieceEmbedding, pipeline
        >>> embedding = SentencePieceEmbedding(PairStore("data/en-es.h5").tokenizer(), 64)
        >>> pipeline(embedding, device="cpu").encode(["a sentence"]).shape
        (1, 64)
    """

    __module__ = "st_paragram"

    tokenizer: SentencePieceTokenizer  # type: ignore[assignment]

    def __init__(
        self,
        vocabulary: (Tokenizer | bytes | str | Path | sentencepiece.SentencePieceProcessor),
        embedding_dimension: int | None = None,
        weights: Tensor | CompactEmbedding | None = None,
        dropout: float = 0.0,
    ) -> None:
        """Create the embedding matrix, or use `weights`; see `TokenEmbedding`.

        `vocabulary` is a tokenizer, or an argument of `SentencePieceTokenizer`: the path of a
        `.model` file, its bytes, or a loaded `SentencePieceProcessor`. In these cases, texts are
        lower-cased.
        """
        if not isinstance(vocabulary, SentencePieceTokenizer):
            if isinstance(vocabulary, Tokenizer):
                raise SettingsError(
                    f"a tokenizer of kind {vocabulary.kind}; give sentencepiece's, or use"
                    " TokenEmbedding"
                )
            vocabulary = SentencePieceTokenizer(vocabulary)
        super().__init__(vocabulary, embedding_dimension, weights, dropout=dropout)


def token_embedding(tokenizer: Tokenizer, *args: Any, **kwargs: Any) -> TokenEmbedding:
    """Make a `SentencePieceEmbedding` for a sentencepiece tokenizer, or a `TokenEmbedding`."""
    if isinstance(tokenizer, SentencePieceTokenizer):
        return SentencePieceEmbedding(tokenizer, *args, **kwargs)
    return TokenEmbedding(tokenizer, *args, **kwargs)
