"""The published multilingual USE and an averaging model side by side, as a pipeline's module."""

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
from st_paragram.families.muse.module_folder import module_folder
from st_paragram.families.muse.use_encoder import UseEncoder
from st_paragram.learning.models import averaging
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.mean_pool import MeanPool
from st_paragram.learning.modules.token_embedding import TokenEmbedding

# folders of the two encoders
_USE = "use"
_PSP = "psp"
_FEATURES = ("input_ids", "cu_seq_lens_q")


class SideBySide(InputModule):
    """Concatenate the unit vectors of two encoders; cosines are weighted means of their cosines.

    An embedding consists of sqrt(weight) * use and sqrt(1 - weight) * psp; its length is 1. If a
    text has a zero vector in the averaging model, that part is zero.

    Examples:
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
    texts_at_once: int = UseEncoder.texts_at_once

    def __init__(self, use: UseEncoder, psp: TokenEmbedding, weight: float) -> None:
        """Combine the published network with the first module of an averaging model.

        `weight`, above 0 and below 1, is the share of the published network in a cosine.
        """
        super().__init__()
        if not 0 < weight < 1:
            raise SettingsError(f"weight is {weight}; it must be above 0 and below 1")
        self.use = use
        self.psp = psp
        self.weight: float = float(weight)
        self.mean: MeanPool = MeanPool(psp.embedding_dimension)

    @property
    def max_seq_length(self) -> int | None:
        """Maximum tokens per text for the published network; None: all."""
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
        """Tokenize texts for both models; names of the network's features begin with `use_`."""
        features = self.psp.preprocess(inputs, prompt)
        for name, value in self.use.preprocess(inputs, prompt).items():
            features[f"use_{name}"] = value
        return features

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add `sentence_embedding`, float32 (B, D)."""
        use_features = {name: features[f"use_{name}"] for name in _FEATURES}
        psp_features = {name: features[name] for name in _FEATURES}
        use = self.use(use_features)["sentence_embedding"]
        psp = self.mean(self.psp(psp_features))["sentence_embedding"]
        psp = F.normalize(psp.float(), dim=1)
        parts = [self.weight**0.5 * use, (1 - self.weight) ** 0.5 * psp]
        features["sentence_embedding"] = torch.cat(parts, 1)
        return features

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write the settings and a folder for each encoder.

        The averaging model's folder is a model directory.
        """
        self.save_config(output_path)
        use = Path(output_path) / _USE
        use.mkdir(exist_ok=True)
        self.use.save(str(use))
        psp = pipeline(self.psp, str(self.use.network.table.device))
        averaging.write(psp, Path(output_path) / _PSP)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> SideBySide:  # type: ignore[override]
        """Load a saved module from a directory, or from the hub with the arguments of `Module`."""
        folder = module_folder(model_name_or_path, kwargs)
        path = file_of(folder, cls.config_file_name)
        use = UseEncoder.load(str(folder / _USE))
        psp = averaging_part(folder / _PSP)
        message = "not the settings of SideBySide"
        with refused(ModelDirectoryError, path, message, "save the model again", SettingsError):
            return cls(use, psp, read_json(path)["weight"])


def averaging_part(folder: Path) -> TokenEmbedding:
    """Read tokenizer and embedding matrix from an averaging model's directory."""
    configuration = read_configuration(folder)
    if configuration.architecture != AVERAGING:
        raise ModelDirectoryError(
            f"{folder}: a model of architecture {short(configuration.architecture)}; name an"
            " averaging model (P-SP)"
        )
    return averaging.read(folder, configuration.values)[0]
