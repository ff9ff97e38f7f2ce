"""What an averaging model is made of, as arrays and a tokenizer of the `tokenizers` library: what exports write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor

from st_paragram.errors import ModelDirectoryError
from st_paragram.models import averaging
from st_paragram.modules.compact_embedding import TableType
from st_paragram.tokenizers.base import Tokenizer
from st_paragram.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer
from st_paragram.tokenizers.sentencepiece_subset import SentencePieceSubsetTokenizer

_SENTENCEPIECE = (SentencePieceTokenizer, SentencePieceSubsetTokenizer)


@dataclass(frozen=True)
class ExportedModel:
    """An averaging model without its libraries.

    Args:
        table: float32, float16 or int8 (V, D).
        scale: float32 (V,), what each row of an int8 table is multiplied by; else None.
        unknown_id: whose row is the vector of a text without any known token.
        dropped_ids: what is left out of every mean, the unknown id among them.
        normalize: whether vectors are scaled to length 1.
        tokenizer: text to ids, the unknown one included.
        sentencepiece: the sentencepiece model that does the same; None for words.
        lower_case: whether texts are lower-cased before sentencepiece sees them.
    """

    table: NDArray[np.generic]
    scale: NDArray[np.float32] | None
    unknown_id: int
    dropped_ids: list[int]
    normalize: bool
    tokenizer: tokenizers.Tokenizer
    sentencepiece: bytes | None
    lower_case: bool

    @property
    def dimension(self) -> int:
        """D."""
        return self.table.shape[1]

    @property
    def unknown_embedding(self) -> NDArray[np.float32]:
        """The row of the unknown id, float32 (D,)."""
        row = self.table[self.unknown_id].astype(np.float32)
        return row if self.scale is None else row * self.scale[self.unknown_id]

    def table_without(self, ids: list[int]) -> NDArray[np.generic]:
        """A copy of the table in which some rows are zero."""
        copy = self.table.copy()
        copy[ids] = 0
        return copy


def exported_model(model: SentenceTransformer, dtype: TableType | str | None, folder: Path) -> ExportedModel:
    """Take an averaging model apart.

    Args:
        model: as `directory.load` gives it.
        dtype: type of the table; as it is if None.
        folder: of the model, for messages.

    Raises:
        ModelDirectoryError: another pipeline, or one that other software could not repeat: words as Moses finds them,
            trigrams, two vocabularies, jieba, a prompt before every text, vectors cut off at the end.
        SettingsError: no such type, or numbers too large for float16.
    """
    embedding = averaging.embedding_of(model)
    tokenizer = embedding.tokenizer
    if obstacle := _obstacle(model, tokenizer):
        raise ModelDirectoryError(f"{folder}: a model {obstacle}; take it as it is, with st_paragram.load")
    stock = averaging.stock_tokenizer(tokenizer)
    assert stock is not None  # as `_obstacle` found
    table = averaging.table_to_save(embedding, dtype)
    weight, scale = (table, None) if isinstance(table, Tensor) else (table.weight, table.scale)
    unknown_id = tokenizer.unknown_id
    return ExportedModel(
        weight.numpy(),
        None if scale is None else scale.numpy(),
        unknown_id,
        sorted({unknown_id, *tokenizer.options.get("dropped", ())}),
        averaging.gives_unit_vectors(model),
        stock,
        tokenizer.content if isinstance(tokenizer, _SENTENCEPIECE) else None,
        bool(tokenizer.options["lower_case"]),
    )


def write_tokenizer(model: ExportedModel, folder: Path) -> None:
    """Write `tokenizer.json`, and `sentencepiece.model` if there is one: its ids are exact, and sooner there."""
    model.tokenizer.save(str(folder / "tokenizer.json"))
    if model.sentencepiece is not None:
        (folder / "sentencepiece.model").write_bytes(model.sentencepiece)


def _obstacle(model: SentenceTransformer, tokenizer: Tokenizer) -> str | None:
    """What an export could not repeat, in words."""
    if not averaging.opens_in_stock(tokenizer):
        return f"of {tokenizer.kind} ids, which the tokenizers library cannot make"
    if tokenizer.options.get("segmentation", Segmentation.NONE.value) != Segmentation.NONE.value:
        return f"whose texts {tokenizer.options['segmentation']} segments, which the tokenizers library cannot do"
    if model.prompts.get(model.default_prompt_name or ""):
        return f"with the prompt {model.default_prompt_name!r} before every text, which an export would leave out"
    width = averaging.embedding_of(model).embedding_dimension
    if model.truncate_dim is not None and model.truncate_dim < width:
        return f"whose vectors are cut to {model.truncate_dim} components (export it with --dim {model.truncate_dim})"
    return None
