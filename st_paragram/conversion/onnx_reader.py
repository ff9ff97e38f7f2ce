"""Sentence embeddings of an exported model, with onnxruntime, numpy and sentencepiece (tokenizers for words).

from reader import Encoder
vectors = Encoder("folder").encode(["Where is the station?", "a second sentence"])
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray


class Encoder:
    """Ids and an attention mask go in, sentence embeddings come out."""

    def __init__(self, folder: str | Path, threads: int = 0) -> None:
        """Open a folder; 0 threads are as many as ONNX Runtime chooses."""
        folder = Path(folder)
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
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def encode(self, texts: Sequence[str], batch_size: int = 32) -> NDArray[np.float32]:
        """Vectors, float32 (N, D)."""
        ids = [np.array(text, dtype=np.int64) for text in self._ids(texts)]
        vectors = np.empty((len(ids), self.session.get_outputs()[0].shape[1]), dtype=np.float32)
        by_length = np.argsort([len(text) for text in ids], kind="stable")
        for start in range(0, len(ids), batch_size):
            places = by_length[start : start + batch_size]
            padded = np.zeros((len(places), len(ids[places[-1]])), dtype=np.int64)
            mask = np.zeros_like(padded)
            for row, place in enumerate(places):
                padded[row, : len(ids[place])], mask[row, : len(ids[place])] = ids[place], 1
            vectors[places] = self.session.run(None, {"input_ids": padded, "attention_mask": mask})[0]
        return vectors

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts, the unknown one included."""
        if self.tokenizer is not None:
            encodings = self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
            return [encoding.ids for encoding in encodings]
        cased = [text.lower() if self.settings["lower_case"] else text for text in texts]
        ids: list[list[int]] = self.pieces.encode(cased, num_threads=1)
        return ids
