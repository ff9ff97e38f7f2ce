"""The model behind a server, and the index that it searches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.models import batch_size, load_encoder
from st_paragram.errors import SettingsError
from st_paragram.tools.search.content import Content, has_towers
from st_paragram.tools.serving.batching import Kind, Rows

if TYPE_CHECKING:
    from st_paragram.tools.serving.served_index import ServedIndex

#: Characters that are encoded within about half a millisecond by a model that averages.
_SHORT = 4_096


class ServedModel:
    """A model with a name, and optionally an index of sentences that it has embedded.

    Args:
        model: directory, name or hub id.
        name: what requests call it; by default the last part of `model`.
        index: a folder of `st-paragram index`, built with this model.
        writable: clients may change the index.

    Raises:
        ModelDirectoryError: the model is not there, or damaged.
        MiningError: the index is damaged, or was built with another model.
    """

    def __init__(
        self, model: str | Path, name: str | None = None, index: Path | None = None, writable: bool = False
    ) -> None:
        folder = find(model)
        self.name = name or str(model).partition("@")[0].rstrip("/").rpartition("/")[2]
        self.model: Any = load_encoder(folder)
        self.averages = isinstance(self.model, Encoder)
        self.dimension = int(self.model.get_embedding_dimension() or 0)
        self.has_towers = has_towers(self.model)
        self._at_once = batch_size(self.model)
        self.index: ServedIndex | None = None
        if index is not None:
            from st_paragram.tools.serving.served_index import ServedIndex

            self.index = ServedIndex(index, folder, self.model, writable)

    @property
    def short(self) -> int:
        """Characters that are encoded so fast that other requests may wait for it."""
        return _SHORT if self.averages else 0

    def encode(self, texts: list[str], kind: Kind = Kind.SENTENCE) -> Rows:
        """Embeddings, float32 (n, D), of any length."""
        encode: Any = {Kind.QUERY: self.model.encode_query, Kind.DOCUMENT: self.model.encode_document}.get(
            kind, self.model.encode
        )
        return np.asarray(encode(texts, batch_size=self._at_once, show_progress_bar=False), np.float32)

    def check(self, kind: Kind) -> None:
        """Refuse questions and answers where the model has no towers for them.

        Raises:
            SettingsError: it has none.
        """
        if kind is not Kind.SENTENCE and not self.has_towers:
            raise SettingsError(f"{self.name} embeds all texts alike; leave input_type out, or serve a model of mUSE")

    @property
    def query_kind(self) -> Kind:
        """What a query to the index is."""
        answers = self.index is not None and self.index.opened.content is Content.ANSWERS
        return Kind.QUERY if answers else Kind.SENTENCE

    def tokens(self, texts: Sequence[str]) -> int:
        """How many tokens the model reads of texts."""
        if self.averages:
            return int(self.model.tokenizer.encode(list(texts))[0].size)
        read: Any = self.model.preprocess(list(texts))
        if "attention_mask" in read:
            return int(read["attention_mask"].sum())
        return int(read["input_ids"].numel())


def unit_rows(rows: Rows, dimensions: int | None = None) -> Rows:
    """The first components of rows, at length 1; a row of zeros stays as it is."""
    rows = rows[:, :dimensions]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, where=lengths > 0, out=np.zeros_like(rows))
