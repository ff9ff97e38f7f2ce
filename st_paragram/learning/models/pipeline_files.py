"""Pipelines in model directories: the files that `save_pretrained` writes, and `st_paragram.json`.

Reading imports the classes that `modules.json` names and lets them read the folders that it names,
so both are checked first: classes must be modules of sentence-transformers or of this package,
folders must be inside the model's folder, and weights must be safetensors, since pickles could run
code. `SentenceTransformer(path)` opens stock modules directly.

A family whose models have more than a pipeline defines, in its module
`sentence_transformers_encoder`, subclasses of `PipelineWithMore`, and `read_beside(pipeline,
folder, values)`. This function makes a model from the pipeline, the files that `write_beside` wrote
into the folder, and the entries of `st_paragram.json` that it returned.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from safetensors import SafetensorError
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Module
from sentence_transformers.util import import_from_string
from torch import Tensor

from st_paragram.core.files import read_json
from st_paragram.core.model_directory.configuration import (
    MODULES_FILE,
    PIPELINE,
    Configuration,
    file_of,
    write_configuration,
)
from st_paragram.core.model_directory.model_files import check_type, read_pipeline_settings
from st_paragram.errors import ModelDirectoryError, one_line, refused, short
from st_paragram.learning.models.averaging import averaging_embedding
from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder, listed
from st_paragram.learning.modules.compact_embedding import is_finite
from st_paragram.learning.modules.transformer_encoder import MOST_LAYERS, no_progress_bars

_PACKAGES = ("sentence_transformers.", "st_paragram.")


class PipelineWithMore(SentenceTransformer):
    """A pipeline and a family's additional files; `save_pretrained` and `push_to_hub` write all of
    them.
    """

    architecture: ClassVar[str]

    if not TYPE_CHECKING:  # type checkers see the overloads of the base class

        @functools.wraps(SentenceTransformer.encode)
        def encode(self, *args, **kwargs):  # noqa: ANN002, ANN003, ANN201, D102 - as in the base
            if args:
                args = (listed(args[0])[0], *args[1:])
            elif "inputs" in kwargs:
                kwargs["inputs"] = listed(kwargs["inputs"])[0]
            return super().encode(*args, **kwargs)

    def write_beside(self, folder: Path) -> dict[str, Any]:
        """Write the additional files into the pipeline's folder; return the entries of
        `st_paragram.json`.
        """
        raise NotImplementedError

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Save the pipeline like `SentenceTransformer`, and the additional files."""
        super().save(path, *args, **kwargs)
        if path is not None:
            write_configuration(
                Path(path), Configuration(self.architecture, self.write_beside(Path(path)))
            )


def check(model: SentenceTransformer) -> None:
    """Refuse modules of other packages: reading them would import whatever class the files name."""
    for kind in map(type, model):
        if not f"{kind.__module__}.".startswith(_PACKAGES):
            seen = (
                f"{kind.__module__}.{kind.__name__} is not a module of st_paragram or"
                " sentence-transformers"
            )
            raise ModelDirectoryError(f"{seen}; use only modules of these")


def write(model: SentenceTransformer, folder: Path) -> None:
    """Write a pipeline and its additional files, without a model card."""
    check(model)
    for module in model:  # tokenizers would save their last truncation and padding
        if (
            backend := getattr(getattr(module, "tokenizer", None), "backend_tokenizer", None)
        ) is not None:
            backend.no_truncation()
            backend.no_padding()
    with no_progress_bars():
        model.save(str(folder), create_model_card=False)
    if not isinstance(model, PipelineWithMore):
        write_configuration(folder, Configuration(PIPELINE, {}))


def read(
    folder: Path, device: str | None = None, truncate_dim: int | None = None
) -> SentenceTransformer:
    """Read a pipeline and its additional files; if it averages token embeddings, it becomes a
    `ParagramEncoder`.
    """
    settings = read_pipeline_settings(folder) | (
        {} if truncate_dim is None else {"truncate_dim": truncate_dim}
    )
    entries_file = file_of(folder, MODULES_FILE)
    try:
        entries = read_json(entries_file)
        _check_entries(entries)
        kinds = [_checked(folder, entry["type"], entry["path"]) for entry in entries]
        for path in folder.rglob("pytorch_model*.bin"):
            if not (path.parent / "model.safetensors").is_file():
                raise ValueError(
                    f"{path.relative_to(folder)} is pickled, but only safetensors are read"
                )
        for path in folder.rglob("*config.json"):
            with refused(
                ModelDirectoryError, path, "not settings of a module", "save the model again"
            ):
                values = dict(read_json(path))
            layers = [
                count
                for name, count in values.items()
                if "layers" in name and isinstance(count, int)
            ]
            if max(layers, default=0) > MOST_LAYERS:
                raise ValueError(f"{path.relative_to(folder)} names {max(layers)} layers")
        modules: Any = OrderedDict()
        with no_progress_bars():
            for kind, entry in zip(kinds, entries, strict=True):
                modules[entry["name"]] = kind.load(
                    str(folder), subfolder=entry["path"], local_files_only=True
                )
        model = SentenceTransformer(modules=modules, device=device, **settings)
        if averaging_embedding(model) is not None:
            model = ParagramEncoder(modules=modules, device=device, **settings)
        model.module_kwargs = OrderedDict(
            (entry["name"], entry.get("kwargs", [])) for entry in entries
        )
        for name, parameter in model.named_parameters():
            if not is_finite(parameter.detach()):
                raise ValueError(f"{name} is NaN or infinite in places")
    except ModelDirectoryError:
        raise
    # modules raise any error, and the Rust library tokenizers panics
    except BaseException as error:
        if not (isinstance(error, Exception) or type(error).__name__ == "PanicException"):
            raise
        raise ModelDirectoryError(
            f"{folder}: its modules cannot be read ({one_line(error)}); save it again"
        ) from error
    return model


def _check_entries(entries: Any) -> None:
    """Raise ValueError if the content of `modules.json` is not a list of modules."""
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{MODULES_FILE} has {short(entries)}, not a list of modules")
    for entry in entries:
        check_type(f"an entry of {MODULES_FILE}", entry, (dict,))
        for name in ("name", "path", "type"):
            check_type(f"{name} of a module", entry.get(name), (str,))


def _checked(folder: Path, name: str, path: str) -> type[Module]:
    """Return the class of a module that `modules.json` names, after checking it and its folder."""
    if not name.startswith(_PACKAGES):
        raise ValueError(
            f"{one_line(name, 80)} is not a module of st_paragram or sentence-transformers"
        )
    kind = import_from_string(name)
    if not (isinstance(kind, type) and issubclass(kind, Module)):
        raise ValueError(f"{one_line(name, 80)} is not a pipeline module")
    if not (folder / path).resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"the folder {one_line(path, 80)} is outside the model's folder")
    return kind


def read_tensors(folder: Path, name: str, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read the tensors of an additional file; they must be finite and have the names, types and
    shapes of `like`.
    """
    path = file_of(folder, name)
    with refused(
        ModelDirectoryError, path, "not the weights of this model", "save it again", SafetensorError
    ):
        tensors = load_file(path)
        found, wanted = (
            {name: (each.shape, each.dtype) for name, each in some.items()}
            for some in (tensors, like)
        )
        if found != wanted:
            raise ValueError("its tensors do not fit this model")
        if not all(map(is_finite, tensors.values())):
            raise ValueError("NaN or infinite numbers")
        return tensors
