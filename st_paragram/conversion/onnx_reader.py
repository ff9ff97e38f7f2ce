"""Sentence embeddings of an exported model, with onnxruntime, numpy and sentencepiece (tokenizers for words).

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
import onnxruntime
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
    """Ids and an attention mask go in, sentence embeddings come out."""

    def __init__(self, folder: str | Path, threads: int = 0) -> None:
        """Open a folder; 0 threads are as many as ONNX Runtime chooses.

        Raises:
            ValueError: a file is missing or damaged, or does not fit the others.
        """
        self.folder = Path(folder)
        with _damage(self.folder):
            self._open(self.folder, threads)
            self.encode(["", "\u2603"])  # what no vocabulary may lack

    def _open(self, folder: Path, threads: int) -> None:
        self.settings = json.loads((folder / "st_paragram_export.json").read_text(encoding="utf-8"))
        self.pieces: Any = None
        self.tokenizer: Any = None
        if (folder / "sentencepiece.model").is_file():
            from sentencepiece import SentencePieceProcessor

            self.pieces = SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
        else:  # words
            from tokenizers import Tokenizer

            self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        model = str(folder / "model.onnx")
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(model, options, providers=providers, enable_fallback=0)
        self.dimension = self.session.get_outputs()[0].shape[1]
        if self.dimension != self.settings["dimension"]:
            raise ValueError(f"model.onnx gives vectors of {self.dimension} components")
        if type(self.settings["lower_case"]) is not bool:
            raise ValueError("lower_case is neither true nor false")

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Vectors, float32 (N, D)."""
        ids = [np.array(text, dtype=np.int64) for text in self._ids(texts)]
        vectors = np.empty((len(ids), self.dimension), dtype=np.float32)
        by_length = np.argsort([len(text) for text in ids], kind="stable")
        for start in range(0, len(ids), batch_size):
            places = by_length[start : start + batch_size]
            padded = np.zeros((len(places), len(ids[places[-1]])), dtype=np.int64)
            mask = np.zeros_like(padded)
            for row, place in enumerate(places):
                padded[row, : len(ids[place])], mask[row, : len(ids[place])] = ids[place], 1
            with _damage(self.folder):
                vectors[places] = self.session.run(None, {"input_ids": padded, "attention_mask": mask})[0]
        if not np.isfinite(vectors).all():
            raise ValueError(f"{self.folder}: embeddings that are not finite; export the model again")
        return vectors

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts, the unknown one included."""
        if self.tokenizer is not None:
            encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
            return [encoding.ids for encoding in encodings]
        cased = [text.lower() if self.settings["lower_case"] else text for text in texts]
        ids: list[list[int]] = self.pieces.encode(cased, num_threads=1)
        return ids
