"""Sentence embeddings of an exported model, with numpy and sentencepiece alone (tokenizers for models of words).

from reader import Encoder
vectors = Encoder("folder").encode(["Where is the station?", "a second sentence"])
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@contextmanager
def _damage(folder: Path) -> Iterator[None]:
    """Make one error, in one line, of all that libraries raise where a file is damaged."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"{folder}: cannot be read ({str(error)[:200]!a}); export the model again") from error


class Encoder:
    """Mean of the embeddings of a text's tokens."""

    def __init__(self, folder: str | Path) -> None:
        """Open a folder; the table stays on disk until its rows are asked for.

        Raises:
            ValueError: a file is missing or damaged, or does not fit the others.
        """
        self.folder = Path(folder)
        with _damage(self.folder):
            self._open(self.folder)
            self._check()
            self.encode(["", "\u2603"])  # what no vocabulary may lack

    def _open(self, folder: Path) -> None:
        self.settings = json.loads((folder / "st_paragram_export.json").read_text(encoding="utf-8"))
        self.pieces: Any = None
        self.tokenizer: Any = None
        if (folder / "sentencepiece.model").is_file():
            from sentencepiece import SentencePieceProcessor

            self.pieces = SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
        else:  # words
            from tokenizers import Tokenizer

            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.table = np.load(folder / "embeddings.npy", mmap_mode="r")
        self.scale = np.load(folder / "scale.npy", mmap_mode="r") if self.settings["table_type"] == "int8" else None
        self.dropped = set(self.settings["dropped_ids"])

    def _check(self) -> None:
        """Every id has a row, and rows are what the settings say."""
        rows, columns = self.settings["vocabulary_size"], self.settings["dimension"]
        if self.table.shape != (rows, columns) or self.table.dtype.name != self.settings["table_type"]:
            raise ValueError(f"embeddings.npy is {self.table.dtype.name} {self.table.shape}")
        if self.scale is not None and (self.scale.shape, self.scale.dtype) != ((rows,), np.float32):
            raise ValueError(f"scale.npy is {self.scale.dtype.name} {self.scale.shape}")
        if any(type(self.settings[name]) is not bool for name in ("lower_case", "normalize")):
            raise ValueError("lower_case or normalize is neither true nor false")
        if self.tokenizer is None:
            last = self.pieces.get_piece_size() - 1
        else:
            last = max(self.tokenizer.get_vocab(with_added_tokens=True).values())
        for one in (*self.dropped, self.settings["unknown_id"], last):
            if type(one) is not int or not 0 <= one < rows:
                raise ValueError(f"id {one} of {rows} rows")

    def encode(self, texts: Sequence[str], batch_size: int = 64) -> NDArray[np.float32]:
        """Vectors, float32 (N, D)."""
        rows = [self._encode(texts[start : start + batch_size]) for start in range(0, len(texts), batch_size)]
        return np.concatenate([np.empty((0, self.table.shape[1]), dtype=np.float32), *rows])

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts, the unknown one included."""
        if self.tokenizer is not None:
            encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
            return [encoding.ids for encoding in encodings]
        cased = [text.lower() if self.settings["lower_case"] else text for text in texts]
        ids: list[list[int]] = self.pieces.encode(cased, num_threads=1)
        return ids

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        kept = [[one for one in text if one not in self.dropped] for text in self._ids(texts)]
        ids = [text or [self.settings["unknown_id"]] for text in kept]
        counts = np.array([len(text) for text in ids])
        flat = np.concatenate([np.array(text) for text in ids])
        rows = self.table[flat].astype(np.float32)
        if self.scale is not None:
            rows *= self.scale[flat, None]
        means: NDArray[np.float32] = np.add.reduceat(rows, np.cumsum(counts) - counts)
        means /= counts[:, None]
        if self.settings["normalize"]:
            means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        if not np.isfinite(means).all():
            raise ValueError(f"{self.folder}: embeddings that are not finite; export the model again")
        return means
