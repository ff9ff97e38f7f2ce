"""First module of a pipeline: text (or ids) to flat sentencepiece ids, and the table of their embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from sentence_transformers.base.modules import InputModule
from torch import Tensor, nn

from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.modules.compact_embedding import CompactEmbedding
from st_paragram.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer

MODEL_FILE = "sentencepiece.model"
WEIGHTS_FILE = "model.safetensors"


class FlatFeatures(dict[str, Any]):
    """Features of unpadded texts, with the embedding table they refer to.

    Holds `input_ids`, int64 (1, total), and `cu_seq_lens_q`, int64 (B + 1,). The first look at `token_embeddings` makes
    padded features of them, `token_embeddings`, float (B, L, D), and `attention_mask`, int64 (B, L), so that
    `encode(..., output_value="token_embeddings")` and a stock `Pooling` work, and nobody else pays for padding.
    """

    def __init__(self, features: dict[str, Any], module: SentencePieceEmbedding) -> None:
        super().__init__(features)
        self.embedding = module.embedding
        self.table: Tensor = module.embedding.weight
        self.sparse_gradient = module.sparse_gradient
        self.dropout = module.dropout if module.training else 0.0

    def flat_token_embeddings(self) -> Tensor:
        """The tokens' embeddings after dropout, float (total, D)."""
        ids = self["input_ids"].view(-1)
        if isinstance(self.embedding, CompactEmbedding):
            return self.embedding(ids)
        tokens = F.embedding(ids, self.table, sparse=self.sparse_gradient)
        return F.dropout(tokens, self.dropout, training=self.dropout > 0)

    def __missing__(self, key: str) -> Tensor:
        if key not in ("token_embeddings", "attention_mask") or "cu_seq_lens_q" not in self:
            raise KeyError(key)
        counts = self["cu_seq_lens_q"].diff()
        mask = torch.arange(int(counts.max()), device=counts.device)[None] < counts[:, None]
        tokens = self.flat_token_embeddings()
        padded = tokens.new_zeros(*mask.shape, tokens.shape[1])
        self["token_embeddings"] = padded.masked_scatter(mask[:, :, None], tokens)
        self["attention_mask"] = mask.long()
        # Stock modules take features with this key for flat ones.
        del self["cu_seq_lens_q"], self["input_ids"]
        return self[key]


class SentencePieceEmbedding(InputModule):
    """Sentencepiece ids and an embedding for each, N(0, 1) at the start (EMNLP 2022).

    Texts are never padded or truncated. Unknown pieces are dropped; a text without a known piece is the single
    unknown piece, whose row is an ordinary row of the table.
    """

    config_keys: list[str] = ["embedding_dimension", "lower_case", "segmentation", "dropout"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "sentencepiece_embedding_config.json"
    save_in_root = True
    tokenizer: SentencePieceTokenizer  # type: ignore[assignment]

    def __init__(
        self,
        vocabulary: SentencePieceTokenizer,
        embedding_dimension: int | None = None,
        weights: Tensor | CompactEmbedding | None = None,
        dropout: float = 0.0,
        sparse_gradient: bool = False,
    ) -> None:
        """Make the table, or take one.

        Args:
            vocabulary: sentencepiece model and text normalisation.
            embedding_dimension: D of a new table drawn from N(0, 1) with torch's random generator.
            weights: a table, float (len(vocabulary), D), in place of a new one; a compact one can only encode.
            dropout: probability with which each component of a token's embedding is dropped in training.
            sparse_gradient: give the table sparse gradients (the rows of the batch), as `RowLazyAdam` wants.

        Raises:
            SettingsError: neither or both of dimension and weights, a table of another size, a dropout outside [0, 1).
        """
        super().__init__()
        if (embedding_dimension is None) == (weights is None):
            raise SettingsError("give either embedding_dimension or weights")
        if not 0 <= dropout < 1:
            raise SettingsError(f"dropout is {dropout}; it must be at least 0 and below 1")
        if weights is None:
            weights = torch.randn(len(vocabulary), embedding_dimension or 0)
        table = weights if isinstance(weights, Tensor) else weights.weight
        if table.ndim != 2 or len(table) != len(vocabulary):
            raise SettingsError(f"a table of shape {tuple(table.shape)} for {len(vocabulary)} pieces")
        self.tokenizer = vocabulary
        self.embedding: nn.Embedding | CompactEmbedding = (
            nn.Embedding.from_pretrained(weights, freeze=False) if isinstance(weights, Tensor) else weights
        )
        self.dropout = dropout
        self.sparse_gradient = sparse_gradient
        #: Threads that encode texts; as many as torch uses if None.
        self.num_threads: int | None = None
        #: Called with the ids before their rows are read: a lazy optimiser brings them up to date here.
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
    def lower_case(self) -> bool:
        """Whether texts are lower-cased."""
        return self.tokenizer.lower_case

    @property
    def segmentation(self) -> str:
        """Name of the word segmentation done before sentencepiece."""
        return self.tokenizer.segmentation.value

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.embedding_dimension

    def train(self, mode: bool = True) -> SentencePieceEmbedding:
        """Switch dropout on or off.

        Raises:
            SettingsError: a compact table, which cannot be trained.
        """
        if mode and isinstance(self.embedding, CompactEmbedding):
            raise SettingsError(
                f"a table of {self.embedding.kind.value} cannot be trained; load the float32 model that it was made of"
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
            inputs: B strings, or B lists of sentencepiece ids.
            prompt: put before each text.
            kwargs: ignored (the interface of sentence-transformers).

        Returns:
            `input_ids`, int64 (1, total), and `cu_seq_lens_q`, int64 (B + 1,).

        Raises:
            SettingsError: an input that is neither text nor ids of the vocabulary, or a prompt for ids.
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
        return FlatFeatures(features, self)

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:  # noqa: ANN401
        """Write configuration, sentencepiece model and table (safetensors only)."""
        self.save_config(output_path)
        (Path(output_path) / MODEL_FILE).write_bytes(self.tokenizer.model_proto)
        tensors = {f"embedding.{name}": tensor for name, tensor in self.embedding.state_dict().items()}
        save_file(tensors, Path(output_path) / WEIGHTS_FILE)

    @classmethod
    def load(  # type: ignore[override]
        cls,
        model_name_or_path: str,
        **kwargs: Any,  # noqa: ANN401
    ) -> SentencePieceEmbedding:
        """Read what `save` wrote, from a directory or (with sentence-transformers' hub arguments) the hub.

        Raises:
            ModelDirectoryError: a file is missing.
        """
        hub = {
            k: kwargs[k] for k in ("subfolder", "token", "cache_folder", "revision", "local_files_only") if k in kwargs
        }

        def path(name: str) -> Path:
            found = cls.load_file_path(model_name_or_path, filename=name, **hub)
            if found is None:
                raise ModelDirectoryError(f"{model_name_or_path}: {name} is missing; save the model again")
            return Path(found)

        config = json.loads(path(cls.config_file_name).read_text(encoding="utf-8"))
        proto = path(MODEL_FILE).read_bytes()
        vocabulary = SentencePieceTokenizer(proto, config["lower_case"], Segmentation(config["segmentation"]))
        tensors = load_file(path(WEIGHTS_FILE))
        table, scale = tensors["embedding.weight"], tensors.get("embedding.scale")
        compact = table.dtype in (torch.float16, torch.int8)
        return cls(vocabulary, weights=CompactEmbedding(table, scale) if compact else table, dropout=config["dropout"])


def flat_features(ids: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any]) -> dict[str, Tensor]:
    """Features of B texts from ids, int64 (total,), and offsets, int64 (B + 1,); shapes as stock code knows them."""
    return {"input_ids": torch.from_numpy(ids)[None], "cu_seq_lens_q": torch.from_numpy(offsets)}


def join_features(columns: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Put the texts of several flat features one after another into one."""
    ends = [columns[0]["cu_seq_lens_q"]]
    for column in columns[1:]:
        ends.append(column["cu_seq_lens_q"][1:] + ends[-1][-1])
    return {
        "input_ids": torch.cat([column["input_ids"] for column in columns], dim=1),
        "cu_seq_lens_q": torch.cat(ends),
    }
