"""The vectors of a teacher: one for each sentence of a pair store, in a folder that `embed --sharded` made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.files import digest
from st_paragram.core.pair_store import SIDES, PairStore
from st_paragram.errors import StoreError
from st_paragram.tools.embed_files import StoredEmbeddings, read_embeddings

#: The setting of a store with the SHA-256 of its text, by side; `prepare --keep-text` writes text and setting.
TEXTS = "texts"
_EMBED = "embed the a.txt and b.txt that `st-paragram prepare --keep-text` wrote with this store"


class TeacherVectors:
    """What a teacher says of the sentences of a store; rows are read when they are asked for.

    Where only one side was embedded, its vectors serve for the other side, too: a translation is to have the vector of
    the sentence that it translates.

    Attributes:
        name: of the teacher, as the folder has it.
        dim: components of a vector.
    """

    def __init__(self, folder: str | Path, store: PairStore) -> None:
        """Open a folder and compare it with the store; no vector is read yet.

        Args:
            folder: made by `embed --sharded`, or by another program in its format.
            store: that is trained on.

        Raises:
            StoreError: it is not such a folder, or of other text than the store holds.
        """
        self.folder = Path(folder)
        self._embeddings: StoredEmbeddings = read_embeddings(self.folder)
        description = self._embeddings.description
        self.name, self.dim = description.model.name, description.dimension
        texts = _texts_of(store)
        starts = np.cumsum([0, *(text.lines for text in description.inputs)])
        found = {
            text.sha256: int(start)
            for text, start in zip(description.inputs, starts[:-1], strict=True)
            if text.lines >= len(store)
        }
        begins = [found[texts[side]] for side in SIDES if texts[side] in found]
        if not begins:
            seen = ", ".join(f"{text.path} of {text.lines:,} lines" for text in description.inputs)
            raise StoreError(f"{folder}: vectors of {seen}, which is not the text of {store.path}; {_EMBED}")
        if starts[-1] != len(self._embeddings):
            seen = f"{len(self._embeddings):,} vectors of {starts[-1]:,} lines"
            raise StoreError(f"{folder}: {seen}; make the embeddings again")
        self._begins = begins[0], begins[-1]

    @property
    def digest(self) -> str:
        """What identifies the vectors: their checksums."""
        return digest([[shard.rows, sorted(shard.sha256.items())] for shard in self._embeddings.description.shards])

    def take(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of n rows of the store, of all their first sides and then of all their second sides.

        Args:
            rows: int64 (n,).

        Returns:
            float32 (2n, dim).

        Raises:
            StoreError: a shard is missing or damaged, or a vector has what is not a number.
        """
        first, second = self._begins
        both = np.concatenate([rows + first, rows + second])
        vectors = self._embeddings.take(both)
        if not (finite := np.isfinite(vectors).all(axis=1)).all():
            row = int(both[np.argmin(finite)])
            raise StoreError(f"{self.folder}: vector {row:,} has infinite components or NaN; make the embeddings again")
        return vectors


def _texts_of(store: PairStore) -> Mapping[str, Any]:
    """The SHA-256 of the text of each side.

    Raises:
        StoreError: the store does not say.
    """
    texts = store.settings.get(TEXTS)
    if not isinstance(texts, Mapping) or not all(isinstance(texts.get(side), str) for side in SIDES):
        seen = f"{store.path}: its text was not kept, so a teacher's vectors cannot be matched to it"
        raise StoreError(f"{seen}; prepare it again with `st-paragram prepare --keep-text DIR`")
    return texts
