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
from st_paragram.families.muse.published_network import PublishedNetwork
from st_paragram.learning.modules.flat_features import flat_features

_HUB_ARGUMENTS = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
_SHORTEST = 3  # pieces: beginning, one piece of the text, end


class UseEncoder(InputModule):
    """Multilingual USE (CNN): sentencepiece ids between `<s>` and `</s>`, and `PublishedNetwork`.

    Texts are never padded. Large batches are faster: everything that depends on one piece is
    computed once per batch.

    Example:
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
        self.tokenizer, self.network, self.max_seq_length = tokenizer, network, max_seq_length
        self._processor = tokenizer.processor
        if min(self._processor.bos_id(), self._processor.eos_id()) < 0:
            raise SettingsError(
                "the sentencepiece model lacks <s> or </s>; use the model of these weights"
            )
        if len(tokenizer) > network.shape.pieces:
            seen = (
                f"a sentencepiece model of {len(tokenizer):,} pieces for a table of"
                f" {network.shape.pieces:,} rows"
            )
            raise SettingsError(f"{seen}; use the model of these weights")
        if max_seq_length is not None and not (
            type(max_seq_length) is int and max_seq_length >= _SHORTEST
        ):
            raise SettingsError(
                f"max_seq_length is {short(max_seq_length)}; give at least {_SHORTEST}, or none"
            )

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that `save` writes in addition to tokenizer and weights."""
        network = self.network
        return {
            "max_seq_length": self.max_seq_length,
            "precision": network.precision,
            "epsilon": network.epsilon,
        }

    def get_embedding_dimension(self) -> int:
        """D."""
        return self.network.shape.dim

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Make flat features of B texts, each after the prompt."""
        if others := {type(each).__name__ for each in inputs if not isinstance(each, str)}:
            raise SettingsError(f"inputs of type {', '.join(sorted(others))}; give only texts")
        texts = [(prompt or "") + text for text in inputs]
        options: dict[str, Any] = {
            "add_bos": True,
            "add_eos": True,
            "num_threads": torch.get_num_threads(),
        }
        try:
            rows: list[list[int]] = self._processor.encode(texts, **options)
        except (UnicodeEncodeError, TypeError, RuntimeError):  # a lone surrogate cannot be UTF-8
            repaired = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            rows = self._processor.encode(repaired, **options)
        if (most := self.max_seq_length) is not None:
            rows = [row if len(row) <= most else [*row[: most - 1], row[-1]] for row in rows]
        counts = np.fromiter(map(len, rows), np.int64, len(rows))
        return flat_features(
            np.fromiter(chain.from_iterable(rows), np.int64, int(counts.sum())), starts(counts)
        )

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding`, float32 (B, D), of length 1."""
        features["sentence_embedding"] = self.network(
            features["input_ids"].view(-1), features["cu_seq_lens_q"]
        )
        return features

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Write configuration, tokenizer and weights (always as safetensors)."""
        folder = Path(output_path)
        self.save_config(output_path)
        (folder / tokenizer_file(self.tokenizer.kind)).write_bytes(self.tokenizer.content)
        state = {
            name: tensor.detach().cpu().contiguous()
            for name, tensor in self.network.state_dict().items()
        }
        (folder / WEIGHTS_FILE).write_bytes(save(state))

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> UseEncoder:  # type: ignore[override]
        """Load a saved module from a directory or (with sentence-transformers' hub arguments) the
        hub.
        """
        folder = module_folder(model_name_or_path, kwargs)
        config_file, weights = file_of(folder, cls.config_file_name), file_of(folder, WEIGHTS_FILE)
        with refused(
            ModelDirectoryError,
            config_file,
            "not the settings of UseEncoder",
            "save the model again",
        ):
            config = read_json(config_file)
            length, epsilon, precision = (
                config["max_seq_length"],
                config["epsilon"],
                config["precision"],
            )
        try:
            what, advice = "not the weights of a published USE network", "import or save it again"
            with refused(ModelDirectoryError, weights, what, advice, SafetensorError):
                network = PublishedNetwork.of(load_file(weights), epsilon, precision)
            tokenizer = file_of(folder, tokenizer_file(SentencePieceTokenizer.kind)).read_bytes()
            return cls(SentencePieceTokenizer(tokenizer, lower_case=False), network, length)
        except SettingsError as error:
            raise ModelDirectoryError(f"{folder}: {error}") from error


def module_folder(model_name_or_path: str, hub_arguments: dict[str, Any]) -> Path:
    """Return the folder of a module, downloaded first if the model is on the hub."""
    hub = {name: hub_arguments[name] for name in _HUB_ARGUMENTS if name in hub_arguments}
    if (folder := InputModule.load_dir_path(model_name_or_path, **hub)) is None:
        raise ModelDirectoryError(
            f"{model_name_or_path}: a module's folder is missing; save the model again"
        )
    return Path(folder)
