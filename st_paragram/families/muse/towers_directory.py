"""The files of towers over a finished encoder: its pipeline with `Router` at the end, and the classifier.

modules.json, ...       what `save_pretrained` writes of the encoder's modules and the towers
heads.safetensors       the classifier of inference, if one was trained
st_paragram.json        components, and the tasks of the training
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import pydantic
from safetensors.torch import save_file
from sentence_transformers.sentence_transformer.modules import Router

from st_paragram.core.encoding.directory import Configuration, configured, write_configuration
from st_paragram.core.encoding.model_files import PIPELINE_SETTINGS
from st_paragram.core.encoding.table import TableType
from st_paragram.errors import ModelDirectoryError
from st_paragram.families.muse.sentence_transformers_towers import EncoderWithTowers, TowersValues
from st_paragram.families.muse.towers import TaskHeads, towers
from st_paragram.learning.models import own_modules
from st_paragram.learning.models.tensors_file import read_tensors

#: The name of the architecture in `st_paragram.json`.
DUAL_ENCODER = "dual-encoder"

_HEADS = "heads.safetensors"


def write(
    model: EncoderWithTowers, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the pipeline and its classifier; arguments and errors as of `own_modules.write`."""
    own_modules.write(model, folder, dtype, truncate_dim)
    if model.has_classifier:
        write_heads(model.heads, folder)
    write_configuration(folder, Configuration(DUAL_ENCODER, asdict(model.values)))


def read(folder: Path, values: dict[str, Any], device: str | None, truncate_dim: int | None) -> EncoderWithTowers:
    """Read what `write` wrote; arguments as in `directory.load`.

    Raises:
        ModelDirectoryError: A file is missing or damaged, or does not fit the others.
    """
    with configured(folder):
        stored = pydantic.TypeAdapter(TowersValues).validate_python(values)
        stored = replace(stored, tasks=tuple(stored.tasks))
        if stored.dim < 1:
            raise ValueError(f"dim is {stored.dim}")
    pipeline = own_modules.read(folder, {}, device, truncate_dim)
    last = pipeline[-1]
    if not isinstance(last, Router) or design(last) != design(towers(stored.dim)):
        raise ModelDirectoryError(
            f"{folder}: its last module is not the towers of {stored.dim} components; save it again"
        )
    heads = TaskHeads(stored.dim, contexts=False)
    if "nli" in stored.tasks:
        heads = read_heads(folder, stored.dim, contexts=False)
    settings = {name: getattr(pipeline, name) for name in PIPELINE_SETTINGS}
    model = EncoderWithTowers.of(list(pipeline), heads, stored, device, **settings)
    model.eval()
    return model


def write_heads(heads: TaskHeads, folder: Path) -> None:
    """Write the weights of heads."""
    state = {name: tensor.detach().cpu().contiguous() for name, tensor in heads.state_dict().items()}
    save_file(state, folder / _HEADS)


def read_heads(folder: Path, dim: int, contexts: bool = True) -> TaskHeads:
    """Heads for sentences of `dim` components.

    Raises:
        ModelDirectoryError: The file is missing or damaged, or holds other heads.
    """
    heads = TaskHeads(dim, contexts)
    shapes = {name: tuple(tensor.shape) for name, tensor in heads.state_dict().items()}
    heads.load_state_dict(read_tensors(folder, _HEADS, shapes))
    return heads.eval()


def design(router: Router) -> tuple[object, ...]:
    """All that makes two routers alike but their numbers: settings, the modules of each route, shapes."""
    routes: dict[str, list[object]] = {}
    for route, modules in router.sub_modules.items():
        routes[route] = [(type(each), each.get_config_dict()) for each in cast("Iterable[Any]", modules)]
    return router.get_config_dict(), routes, {name: tensor.shape for name, tensor in router.state_dict().items()}
