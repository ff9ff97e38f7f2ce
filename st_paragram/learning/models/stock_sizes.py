"""Sizes that the settings of stock modules name, compared with their weights before anything of that size is made.

A stranger's settings could ask for a billion layers, which PyTorch would make one by one.
"""

from __future__ import annotations

from pathlib import Path

from safetensors import safe_open

from st_paragram.core.files import read_json
from st_paragram.learning.models.modules_file import ModuleEntry

_LAYERS = "num_layers"
_WEIGHTED_LAYERS = "num_hidden_layers"  # of `WeightedLayerPooling`, which has a weight for each and no other size
_EXTENTS = (
    "embedding_dimension",
    "hidden_dim",
    "in_features",
    "in_word_embedding_dimension",
    "out_channels",
    "out_features",
    "word_embedding_dimension",
)


def check_sizes(folder: Path, module: ModuleEntry) -> None:
    """Compare the settings of a module with the shapes of its weights; modules without weights have no such sizes.

    Args:
        folder: of the model.
        module: of sentence-transformers.

    Raises:
        ValueError: there are more layers than tensors, or a size is larger than every extent of a tensor.
        OSError, SafetensorError, TypeError: a file of it is damaged.
    """
    weights = folder / module.path / "model.safetensors"
    settings = folder / module.path / module.kind.config_file_name
    if not weights.is_file() or not settings.is_file():
        return
    values = read_json(settings)
    if not isinstance(values, dict):
        raise ValueError(f"{settings.relative_to(folder)} is not an object")
    with safe_open(weights, "pt") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - no mapping
    largest = max((max(shape, default=1) for shape in shapes), default=0)
    most = {_LAYERS: len(shapes), **dict.fromkeys(_EXTENTS, largest)}
    if _WEIGHTED_LAYERS in values:
        most = {_WEIGHTED_LAYERS: largest}
    for name, limit in most.items():
        if isinstance(value := values.get(name), int) and value > limit:
            raise ValueError(f"{settings.relative_to(folder)} has {name} {value:.4g}, and its weights at most {limit}")
