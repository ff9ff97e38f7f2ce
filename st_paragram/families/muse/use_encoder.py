"""The published multilingual USE as the first module of a pipeline, from text to unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from sentence_transformers.base.modules import InputModule
from torch import Tensor

from st_paragram.core.files import read_json
from st_paragram.core.model_directory.configuration import WEIGHTS_FILE, file_of
from st_paragram.core.model_directory.model_files import tokenizer_file
from st_paragram.core.tokenizers.flat_ids import starts
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, refused, short
from st_paragram.families.muse.module_folder import module_folder
from st_paragram.families.muse.published_network import PublishedNetwork
from st_paragram.learning.modules.flat_features import flat_features

_SHORTEST = 3  # pieces: beginning, one piece of the text, end


class UseEncoder(InputModule):
    """Multilingual USE (CNN): sentencepiece ids between `<s>` and `</s>`, and `PublishedNetwork`.

    Texts are never padded. Large batches are faster: everything that depends on one piece is
    computed once per batch.

    Examples:
        >>> import st_paragram
        >>> model = st_paragram.load("use")  # doctest: +SKIP
        >>> model[0].max_seq_length = 256  # doctest: +SKIP
    """

    # Saved pipelines use the public name, which stays valid when files move.
    __module__ = "st_paragram"

    config_file_name = "use_encoder_config.json"
    save_in_root = False
    tokenizer: SentencePieceTokenizer  # type: ignore[assignment]
    #: Number of texts that `st_paragram` embeds at a time.
    texts_at_once = 1024

    def __init__(
        self,
        tokenizer: SentencePieceTokenizer,
        network: PublishedNetwork,
        max_seq_length: int | None = None,
    ) -> None:
        """Combine a tokenizer and a network.

        Args:
            tokenizer: Tokenizer with `<s>` and `</s>`, and at most as many pieces as rows in the
                network's table.
            network: Network that embeds ids.
            max_seq_length: Maximum pieces per text, including the two end markers; None: all. The
                paper has 256.
        """
        super().__init__()
        self.tokenizer = tokenizer
        self.network = network
        self.max_seq_length = max_seq_length
        self._processor = tokenizer.processor
        if min(self._processor.bos_id(), self._processor.eos_id()) < 0:
            raise SettingsError(
                "the sentencepiece model lacks <s> or </s>; use the model of these weights"
            )
        if len(tokenizer) > len(network.table):
            raise SettingsError(
                f"a sentencepiece model of {len(tokenizer):,} tokens for a table of"
                f" {len(network.table):,} rows; use the model of these weights"
            )
        if max_seq_length is not None and max_seq_length < _SHORTEST:
            raise SettingsError(
                f"max_seq_length is {short(max_seq_length)}; give at least {_SHORTEST}, or none"
            )

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that `save` writes in addition to tokenizer and weights."""
        return {
            "max_seq_length": self.max_seq_length,
            "precision": self.network.precision,
            "epsilon": self.network.epsilon,
        }

    def get_embedding_dimension(self) -> int:
        """Dimension of the embeddings."""
        return self.network.dim

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Make flat features of B texts, each after the prompt."""
        others = {type(text).__name__ for text in inputs if not isinstance(text, str)}
        if others:
            raise SettingsError(f"inputs of type {', '.join(sorted(others))}; give only texts")
        texts = [(prompt or "") + text for text in inputs]
        try:
            rows = self._encode(texts)
        except (UnicodeEncodeError, TypeError, RuntimeError):  # a lone surrogate cannot be UTF-8
            rows = self._encode([text.encode("utf-8", "replace").decode() for text in texts])
        if self.max_seq_length is not None:
            rows = [_truncated(row, self.max_seq_length) for row in rows]
        counts = np.array([len(row) for row in rows], np.int64)
        ids = np.fromiter(chain.from_iterable(rows), np.int64, int(counts.sum()))
        return flat_features(ids, starts(counts))

    def _encode(self, texts: list[str]) -> list[list[int]]:
        threads = torch.get_num_threads()
        return self._processor.encode(texts, add_bos=True, add_eos=True, num_threads=threads)  # type: ignore[no-any-return]

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding`, float32 (B, D), of length 1."""
        features["sentence_embedding"] = self.network(
            features["input_ids"].view(-1), features["cu_seq_lens_q"]
        )
        return features

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write configuration, tokenizer and weights (always as safetensors)."""
        folder = Path(output_path)
        self.save_config(output_path)
        (folder / tokenizer_file(self.tokenizer.kind)).write_bytes(self.tokenizer.content)
        state = {}
        for name, tensor in self.network.state_dict().items():
            state[name] = tensor.cpu().contiguous()
        (folder / WEIGHTS_FILE).write_bytes(save(state))

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> UseEncoder:  # type: ignore[override]
        """Load a saved module from a directory, or from the hub with the arguments of `Module`."""
        folder = module_folder(model_name_or_path, kwargs)
        path = file_of(folder, cls.config_file_name)
        message = "not the settings of UseEncoder"
        with refused(ModelDirectoryError, path, message, "save the model again"):
            config = read_json(path)
            max_length = config["max_seq_length"]
            epsilon = config["epsilon"]
            precision = config["precision"]
        weights = file_of(folder, WEIGHTS_FILE)
        message = "not the weights of a published USE network"
        advice = "import or save it again"
        with refused(ModelDirectoryError, weights, message, advice, SafetensorError, SettingsError):
            network = PublishedNetwork.of(load_file(weights), epsilon, precision)
        pieces = file_of(folder, tokenizer_file(SentencePieceTokenizer.kind))
        message = "not the sentencepiece model of these weights"
        with refused(ModelDirectoryError, pieces, message, advice, SettingsError):
            tokenizer = SentencePieceTokenizer(pieces.read_bytes(), lower_case=False)
            return cls(tokenizer, network, max_length)


def _truncated(row: list[int], max_length: int) -> list[int]:
    """Return the first ids of a text and its end."""
    return row if len(row) <= max_length else [*row[: max_length - 1], row[-1]]
