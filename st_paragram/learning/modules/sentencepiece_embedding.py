"""`TokenEmbedding` on sentencepiece: the first module of P-SP models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.learning.modules.compact_embedding import CompactEmbedding
from st_paragram.learning.modules.token_embedding import TokenEmbedding

if TYPE_CHECKING:
    import sentencepiece


class SentencePieceEmbedding(TokenEmbedding):
    """Sentencepiece ids and an embedding for each; see `TokenEmbedding`.

    Example:
        >>> from st_paragram import PairStore, SentencePieceEmbedding, pipeline
        >>> embedding = SentencePieceEmbedding(PairStore("data/en-es.h5").tokenizer(), 64)
        >>> pipeline(embedding, device="cpu").encode(["a sentence"]).shape
        (1, 64)
    """

    # Saved pipelines name the public path, which stays when files move.
    __module__ = "st_paragram"

    config_keys: list[str] = ["embedding_dimension", "lower_case", "segmentation", "dropped", "dropout"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "sentencepiece_embedding_config.json"
    tokenizer: SentencePieceTokenizer  # type: ignore[assignment]

    def __init__(
        self,
        vocabulary: SentencePieceTokenizer | bytes | str | Path | sentencepiece.SentencePieceProcessor,
        embedding_dimension: int | None = None,
        weights: Tensor | CompactEmbedding | None = None,
        dropout: float = 0.0,
        sparse_gradient: bool = False,
    ) -> None:
        """Make the table, or take one; all but `vocabulary` is as in `TokenEmbedding`.

        `vocabulary` is the tokenizer, or what `SentencePieceTokenizer` makes one of: the path of a `.model` file, its
        bytes, or the model as sentencepiece has loaded it. Texts are lower-cased then.
        """
        made = vocabulary if isinstance(vocabulary, SentencePieceTokenizer) else SentencePieceTokenizer(vocabulary)
        super().__init__(made, embedding_dimension, weights, dropout, sparse_gradient)

    @property
    def lower_case(self) -> bool:
        """Whether texts are lower-cased."""
        return self.tokenizer.lower_case

    @property
    def segmentation(self) -> str:
        """Name of the word segmentation done before sentencepiece."""
        return self.tokenizer.segmentation.value

    @property
    def dropped(self) -> list[int]:
        """Ids that are dropped as unknown ones are."""
        return self.tokenizer.dropped

    @classmethod
    def tokenizer_in(cls, config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Kind and options of the tokenizer that a saved configuration names."""
        names = ("lower_case", "segmentation", "dropped")
        return SentencePieceTokenizer.kind, {name: config[name] for name in names if name in config}


def token_embedding(
    tokenizer: Tokenizer,
    embedding_dimension: int | None = None,
    weights: Tensor | CompactEmbedding | None = None,
    dropout: float = 0.0,
) -> TokenEmbedding:
    """The first module for a tokenizer: `SentencePieceEmbedding` for sentencepiece, `TokenEmbedding` for another.

    The arguments and errors are those of `TokenEmbedding`.
    """
    if isinstance(tokenizer, SentencePieceTokenizer):
        return SentencePieceEmbedding(tokenizer, embedding_dimension, weights, dropout)
    return TokenEmbedding(tokenizer, embedding_dimension, weights, dropout)
