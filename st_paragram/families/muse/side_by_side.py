"""The published multilingual USE and an averaging model side by side, as the first module of a
pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers.base.modules import InputModule
from torch import Tensor

from st_paragram.core.files import read_json
from st_paragram.core.model_directory.configuration import AVERAGING, file_of, read_configuration
from st_paragram.errors import ModelDirectoryError, SettingsError, refused, short
from st_paragram.families.muse.use_encoder import UseEncoder, module_folder
from st_paragram.learning.models import averaging
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import TokenEmbedding

_USE, _PSP = "use", "psp"


class SideBySide(InputModule):
    """Concatenate the unit vectors of two encoders, so that cosines are a weighted mean of the
    encoders' cosines.

    An embedding consists of sqrt(weight) * use and sqrt(1 - weight) * psp; its length is 1. If a
    text has a zero vector in the averaging model, that part is zero.

    Example:
        >>> import st_paragram
        >>> model = st_paragram.load("use-psp")  # doctest: +SKIP
        >>> model[0].weight  # doctest: +SKIP
        0.6
    """

    # Saved pipelines use the public name, which stays valid when files move.
    __module__ = "st_paragram"

    config_keys: list[str] = ["weight"]  # noqa: RUF012 - as declared by sentence-transformers
    config_file_name = "side_by_side_config.json"
    save_in_root = False
    texts_at_once = UseEncoder.texts_at_once

    def __init__(self, use: UseEncoder, psp: TokenEmbedding, weight: float) -> None:
        """Combine the published network with the tokenizer and embedding matrix of an averaging
        model.

        `weight`, above 0 and below 1, is the share of the published network in a cosine.
        """
        super().__init__()
        if not (isinstance(weight, int | float) and 0 < weight < 1):
            raise SettingsError(f"weight is {short(weight)}; it must be above 0 and below 1")
        self.use, self.psp, self.weight = use, psp, float(weight)
        self.mean = MeanPool(psp.embedding_dimension)

    @property
    def max_seq_length(self) -> int | None:
        """Maximum pieces per text for the published network; None: all."""
        return self.use.max_seq_length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        self.use.max_seq_length = value

    def get_embedding_dimension(self) -> int:
        """Return the sum of both dimensions."""
        return self.use.get_embedding_dimension() + self.psp.embedding_dimension

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Tokenize texts for both models: features of the averaging model, and `use_` features of
        the network.
        """
        of_use = self.use.preprocess(inputs, prompt)
        return self.psp.preprocess(inputs, prompt) | {
            f"use_{name}": value for name, value in of_use.items()
        }

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding`, float32 (B, D)."""
        names = ("input_ids", "cu_seq_lens_q")
        use = self.use({name: features[f"use_{name}"] for name in names})["sentence_embedding"]
        mean = self.mean(self.psp({name: features[name] for name in names}))["sentence_embedding"]
        parts = [
            self.weight**0.5 * use,
            (1 - self.weight) ** 0.5 * F.normalize(mean.float(), dim=1),
        ]
        features["sentence_embedding"] = torch.cat(parts, 1)
        return features

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Write the settings and a folder for each encoder; the averaging model's folder is a model
        directory.
        """
        self.save_config(output_path)
        use = Path(output_path) / _USE
        use.mkdir(exist_ok=True)
        self.use.save(str(use))
        averaging.write(
            pipeline(self.psp, str(self.use.network.table.device)), Path(output_path) / _PSP
        )

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> SideBySide:  # type: ignore[override]
        """Load a saved module from a directory or (with sentence-transformers' hub arguments) the
        hub.
        """
        folder = module_folder(model_name_or_path, kwargs)
        path = file_of(folder, cls.config_file_name)
        with refused(
            ModelDirectoryError, path, "not the settings of SideBySide", "save the model again"
        ):
            weight = read_json(path)["weight"]
        try:
            return cls(UseEncoder.load(str(folder / _USE)), averaging_part(folder / _PSP), weight)
        except SettingsError as error:
            raise ModelDirectoryError(f"{path}: {error}") from error


def averaging_part(folder: Path) -> TokenEmbedding:
    """Read tokenizer and embedding matrix from an averaging model's directory."""
    configuration = read_configuration(folder)
    if configuration.architecture != AVERAGING:
        seen = f"a model of architecture {short(configuration.architecture)}"
        raise ModelDirectoryError(f"{folder}: {seen}; name an averaging model (P-SP)")
    return averaging.read(folder, configuration.values)[0]
