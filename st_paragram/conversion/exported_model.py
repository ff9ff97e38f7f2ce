"""The parts of an averaging model, as arrays and a tokenizer of the `tokenizers` library: what exports write."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding import model_files
from st_paragram.core.encoding.model_files import AveragingModel
from st_paragram.core.tokenizers.sentencepiece import Segmentation
from st_paragram.errors import ModelDirectoryError

if TYPE_CHECKING:
    import tokenizers


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


def exported_model(model: AveragingModel, folder: Path) -> ExportedModel:
    """Take an averaging model apart.

    Args:
        model: as it is to be exported.
        folder: of the model, for messages.

    Raises:
        ModelDirectoryError: a model that other software could not repeat: words as Moses finds them, trigrams, two
            vocabularies, jieba, a prompt before every text, vectors cut off at the end.
    """
    tokenizer = model.tokenizer
    if obstacle := _obstacle(model):
        raise ModelDirectoryError(f"{folder}: a model {obstacle}; use it unchanged, with st_paragram.load")
    stock = model_files.stock_tokenizer(tokenizer)
    assert stock is not None  # as `_obstacle` found
    return ExportedModel(
        model.table.weight,
        model.table.scale,
        tokenizer.unknown_id,
        sorted({tokenizer.unknown_id, *tokenizer.options.get("dropped", ())}),
        model.unit_vectors,
        stock,
        tokenizer.content if tokenizer.kind == "sentencepiece" else None,
        bool(tokenizer.options["lower_case"]),
    )


def write_numpy(model: ExportedModel, folder: Path) -> None:
    """Write what `numpy_reader` opens: `embeddings.npy` (V, D), for int8 `scale.npy`, float32 (V,), the tokenizer."""
    np.save(folder / "embeddings.npy", model.table, allow_pickle=False)
    if model.scale is not None:
        np.save(folder / "scale.npy", model.scale, allow_pickle=False)
    write_tokenizer(model, folder)


def write_tokenizer(model: ExportedModel, folder: Path) -> None:
    """Write `tokenizer.json`, and `sentencepiece.model` if there is one: its ids are exact, and sooner there."""
    model.tokenizer.save(str(folder / "tokenizer.json"))
    if model.sentencepiece is not None:
        (folder / "sentencepiece.model").write_bytes(model.sentencepiece)


def _obstacle(model: AveragingModel) -> str | None:
    """What an export could not repeat, in words."""
    tokenizer, settings = model.tokenizer, model.settings
    if not model_files.opens_in_stock(tokenizer):
        return f"of {tokenizer.kind} ids, which the tokenizers library cannot produce"
    if tokenizer.options.get("segmentation", Segmentation.NONE.value) != Segmentation.NONE.value:
        return (
            f"whose texts are segmented by {tokenizer.options['segmentation']}, which the tokenizers library cannot do"
        )
    default = settings.get("default_prompt_name")
    if (settings.get("prompts") or {}).get(default or ""):
        return f"with the prompt {default!r} before every text, which an export would leave out"
    cut = settings.get("truncate_dim")
    if cut is not None and cut < model.table.dimension:
        return f"whose vectors are cut to {cut} components (export it with --dim {cut})"
    return None
