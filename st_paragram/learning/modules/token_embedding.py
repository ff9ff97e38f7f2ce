"""First module of a pipeline: text (or ids) to flat ids by any tokenizer, and the table of their embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import load_file, save
from sentence_transformers.base.modules import InputModule
from torch import Tensor, nn

from st_paragram.core.encoding.directory import WEIGHTS_FILE
from st_paragram.core.encoding.model_files import tokenizer_file
from st_paragram.core.files import read_json
from st_paragram.core.tokenizers.base import Tokenizer, load_tokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.modules.compact_embedding import INTEGERS, CompactEmbedding
from st_paragram.learning.modules.flat_features import FlatFeatures, flat_features

_Module = TypeVar("_Module", bound="TokenEmbedding")
_HUB_ARGUMENTS = ("subfolder", "token", "cache_folder", "revision", "local_files_only")


class TokenEmbedding(InputModule):
    """Ids of a tokenizer and an embedding for each, N(0, 1) at the start (as in EMNLP 2022).

    Texts are never padded or truncated. Unknown tokens are dropped; a text without a known token is the single unknown
    id, whose row is an ordinary row of the table.

    Example:
        >>> from st_paragram import PairStore, TokenEmbedding
        >>> embedding = TokenEmbedding(PairStore("data/en-es.h5").tokenizer(), 64)
        >>> embedding.preprocess(["a sentence"])["cu_seq_lens_q"].shape
        torch.Size([2])
    """

    # Saved pipelines name the public path, which stays when files move.
    __module__ = "st_paragram"

    config_keys: list[str] = ["embedding_dimension", "tokenizer_kind", "tokenizer_options", "dropout"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "token_embedding_config.json"
    save_in_root = True
    tokenizer: Tokenizer  # type: ignore[assignment]

    def __init__(
        self,
        tokenizer: Tokenizer,
        embedding_dimension: int | None = None,
        weights: Tensor | CompactEmbedding | None = None,
        dropout: float = 0.0,
        sparse_gradient: bool = False,
    ) -> None:
        """Make the table, or take one.

        Args:
            tokenizer: turns texts into ids.
            embedding_dimension: D of a new table drawn from N(0, 1) with torch's random generator.
            weights: a table, float (len(tokenizer), D), in place of a new one; a compact one can only encode.
            dropout: probability with which each component of a token's embedding is dropped in training.
            sparse_gradient: give the table sparse gradients (the rows of the batch), as `RowLazyAdam` needs them.

        Raises:
            SettingsError: no tokenizer, neither or both of dimension and weights, a table of another size, a dropout
                outside [0, 1).
        """
        super().__init__()
        if not hasattr(tokenizer, "pack"):
            seen = f"a tokenizer is expected, not {type(tokenizer).__name__}"
            raise SettingsError(f"{seen}; a sentencepiece model goes into SentencePieceEmbedding")
        if (embedding_dimension is None) == (weights is None):
            raise SettingsError("give either embedding_dimension or weights")
        if not 0 <= dropout < 1:
            raise SettingsError(f"dropout is {dropout}; it must be at least 0 and below 1")
        if weights is None:
            weights = torch.randn(len(tokenizer), embedding_dimension or 0)
        table = weights if isinstance(weights, Tensor) else weights.weight
        if table.ndim != 2 or len(table) != len(tokenizer):
            raise SettingsError(f"a table of shape {tuple(table.shape)} for a tokenizer of {len(tokenizer)} ids")
        self.tokenizer = tokenizer
        self.embedding: nn.Embedding | CompactEmbedding = (
            nn.Embedding.from_pretrained(weights, freeze=False) if isinstance(weights, Tensor) else weights
        )
        self.dropout = dropout
        self.sparse_gradient = sparse_gradient
        #: Threads that encode texts; as many as torch uses if None.
        self.num_threads: int | None = None
        #: Called with the ids before their rows are read: a lazy optimizer brings the rows up to date here.
        self.before_lookup: Callable[[Tensor], None] | None = None

    @property
    def max_seq_length(self) -> int | None:
        """None: texts are not truncated."""
        return None

    @property
    def embedding_dimension(self) -> int:
        """D."""
        return self.embedding.embedding_dim

    @property
    def tokenizer_kind(self) -> str:
        """The tokenizer's kind."""
        return self.tokenizer.kind

    @property
    def tokenizer_options(self) -> dict[str, Any]:
        """The tokenizer's options."""
        return self.tokenizer.options

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.embedding_dimension

    def train(self: _Module, mode: bool = True) -> _Module:
        """Switch dropout on or off.

        Raises:
            SettingsError: a compact table, which cannot be trained.
        """
        if mode and isinstance(self.embedding, CompactEmbedding):
            raise SettingsError(
                f"a table of {self.embedding.kind.value} cannot be trained; load the original float32 model"
            )
        return super().train(mode)

    def preprocess(
        self,
        inputs: Sequence[Any],
        prompt: str | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> dict[str, Tensor]:
        """Encode texts, or pack lists of ids.

        Args:
            inputs: B strings, or B lists of the tokenizer's ids.
            prompt: put before each text.
            kwargs: ignored (the interface of sentence-transformers).

        Returns:
            `input_ids`, int64 (1, total), and `cu_seq_lens_q`, int64 (B + 1,).

        Raises:
            SettingsError: an input that is neither text nor ids of the tokenizer, or a prompt for ids.
        """
        if all(isinstance(text, str) for text in inputs):
            texts = [prompt + text for text in inputs] if prompt else inputs
            threads = self.num_threads or torch.get_num_threads()
            return flat_features(*self.tokenizer.encode(texts, num_threads=threads))
        if prompt:
            raise SettingsError("a prompt can be put before texts only, not before ids")
        if not all(isinstance(row, list | tuple) for row in inputs):
            kinds = sorted({type(row).__name__ for row in inputs})
            raise SettingsError(f"inputs of type {', '.join(kinds)}; give texts only, or lists of ids only")
        return flat_features(*self.tokenizer.pack(inputs))

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401
        """Attach the table to flat features; the pooling module does the arithmetic."""
        if self.before_lookup is not None:
            self.before_lookup(features["input_ids"])
        dropout = self.dropout if self.training else 0.0
        return FlatFeatures(features, self.embedding, dropout, self.sparse_gradient)

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:  # noqa: ANN401
        """Write configuration, tokenizer and table (always as safetensors)."""
        self.save_config(output_path)
        (Path(output_path) / tokenizer_file(self.tokenizer.kind)).write_bytes(self.tokenizer.content)
        tensors = {f"embedding.{name}": tensor for name, tensor in self.embedding.state_dict().items()}
        (Path(output_path) / WEIGHTS_FILE).write_bytes(save(tensors))

    @classmethod
    def load(  # type: ignore[override]
        cls: type[_Module],
        model_name_or_path: str,
        **kwargs: Any,  # noqa: ANN401
    ) -> _Module:
        """Read what `save` wrote, from a directory or (with sentence-transformers' hub arguments) the hub.

        Raises:
            ModelDirectoryError: a file is missing.
        """
        hub = {name: kwargs[name] for name in _HUB_ARGUMENTS if name in kwargs}

        def path(name: str) -> Path:
            found = cls.load_file_path(model_name_or_path, filename=name, **hub)
            if found is None:
                raise ModelDirectoryError(f"{model_name_or_path}: {name} is missing; save the model again")
            return Path(found)

        config = read_json(path(cls.config_file_name))
        kind, options = cls.tokenizer_in(config)
        tokenizer = load_tokenizer(kind, path(tokenizer_file(kind)).read_bytes(), options)
        tensors = load_file(path(WEIGHTS_FILE))
        table, scale = tensors["embedding.weight"], tensors.get("embedding.scale")
        compact = table.dtype in {torch.float16, *INTEGERS}
        return cls(tokenizer, weights=CompactEmbedding(table, scale) if compact else table, dropout=config["dropout"])

    @classmethod
    def tokenizer_in(cls, config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Kind and options of the tokenizer that a saved configuration names."""
        return config["tokenizer_kind"], config["tokenizer_options"]
