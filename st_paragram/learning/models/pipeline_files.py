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
from st_paragram.learning.models.sentence_transformers_encoder import (
    ParagramEncoder,
    encode_listed,
    listed,
)
from st_paragram.learning.modules.compact_embedding import is_finite
from st_paragram.learning.modules.transformer_encoder import MOST_LAYERS, no_progress_bars

_PACKAGES = ("sentence_transformers.", "st_paragram.")


class Pipeline(SentenceTransformer):
    """A pipeline whose `encode` takes columns and other iterables of texts, also empty ones."""

    if not TYPE_CHECKING:  # type checkers see the overloads of the base class

        @functools.wraps(SentenceTransformer.encode)
        def encode(self, *args, **kwargs):  # noqa: ANN002, ANN003, ANN201, D102 - as in the base
            positional = list(args)
            try:
                inputs = positional.pop(0) if positional else kwargs.pop("inputs")
            except KeyError:  # an older name: leave it to the base class
                return super().encode(**kwargs)
            return encode_listed(super().encode, listed(inputs)[0], *positional, **kwargs)

    def _update_default_model_id(self, model_card: str) -> str:
        """Name the model in the snippet of the card of `push_to_hub`.

        The base class looks for a snippet with the name of this class.
        """
        name = self.model_card_data.model_id or self._model_card_model_id_placeholder
        return model_card.replace(f'("{self._model_card_model_id_placeholder}"', f'("{name}"')


class PipelineWithMore(Pipeline):
    """A pipeline and a family's additional files; `save_pretrained` writes all of them."""

    architecture: ClassVar[str]

    def write_beside(self, folder: Path) -> dict[str, Any]:
        """Write the additional files; return the entries of `st_paragram.json`."""
        raise NotImplementedError

    def save(self, path: str, *args: Any, **kwargs: Any) -> None:
        """Save the pipeline like `SentenceTransformer`, and the additional files."""
        super().save(path, *args, **kwargs)
        if path is not None:
            values = self.write_beside(Path(path))
            write_configuration(Path(path), Configuration(self.architecture, values))


def check(model: SentenceTransformer) -> None:
    """Refuse modules of other packages: reading them would import whatever class the files name."""
    for module in model:
        kind = type(module)
        if not f"{kind.__module__}.".startswith(_PACKAGES):
            raise ModelDirectoryError(
                f"{kind.__module__}.{kind.__name__} is not a module of st_paragram or"
                " sentence-transformers; use only modules of these"
            )


def write(model: SentenceTransformer, folder: Path) -> None:
    """Write a pipeline and its additional files, without a model card."""
    check(model)
    for module in model:
        tokenizer = getattr(module, "tokenizer", None)
        if backend := getattr(tokenizer, "backend_tokenizer", None):
            # Tokenizers would save their last truncation and padding.
            backend.no_truncation()
            backend.no_padding()
    with no_progress_bars():
        model.save(str(folder), create_model_card=False)
    if not isinstance(model, PipelineWithMore):
        write_configuration(folder, Configuration(PIPELINE, {}))


def read(
    folder: Path, device: str | None = None, truncate_dim: int | None = None
) -> SentenceTransformer:
    """Read a pipeline; if it averages token embeddings, it becomes a `ParagramEncoder`."""
    settings = read_pipeline_settings(folder)
    if truncate_dim is not None:
        settings["truncate_dim"] = truncate_dim
    entries_file = file_of(folder, MODULES_FILE)
    try:
        entries = read_json(entries_file)
        modules = _read_modules(folder, entries)
        model: SentenceTransformer = Pipeline(modules=modules, device=device, **settings)
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
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise ModelDirectoryError(
            f"{folder}: its modules cannot be read ({one_line(error)}); save it again"
        ) from error
    return model


def _read_modules(folder: Path, entries: Any) -> Any:
    """Read the modules of `modules.json` after checking everything that reading them relies on."""
    if not isinstance(entries, list) or not entries:
        raise ValueError(f"{MODULES_FILE} has {short(entries)}, not a list of modules")
    kinds = [_checked_kind(folder, entry) for entry in entries]
    for path in folder.rglob("pytorch_model*.bin"):
        if not path.with_name("model.safetensors").is_file():
            name = path.relative_to(folder)
            raise ValueError(f"{name} is pickled, but only safetensors are read")
    for path in folder.rglob("*config.json"):
        with refused(ModelDirectoryError, path, "not settings of a module", "save the model again"):
            values = dict(read_json(path))
        for name, value in values.items():
            if "layers" in name and isinstance(value, int) and value > MOST_LAYERS:
                raise ValueError(f"{path.relative_to(folder)} names {value} layers")
    modules = OrderedDict[str, Any]()
    with no_progress_bars():
        for kind, entry in zip(kinds, entries, strict=True):
            modules[entry["name"]] = kind.load(
                str(folder), subfolder=entry["path"], local_files_only=True
            )
    return modules


def _checked_kind(folder: Path, entry: Any) -> type[Module]:
    """Return the class that an entry of `modules.json` names, after checking it and its folder."""
    check_type(f"an entry of {MODULES_FILE}", entry, (dict,))
    for key in ("name", "path", "type"):
        check_type(f"{key} of a module", entry.get(key), (str,))
    name = one_line(entry["type"], 80)
    if not entry["type"].startswith(_PACKAGES):
        raise ValueError(f"{name} is not a module of st_paragram or sentence-transformers")
    kind = import_from_string(entry["type"])
    if not (isinstance(kind, type) and issubclass(kind, Module)):
        raise ValueError(f"{name} is not a pipeline module")
    if not (folder / entry["path"]).resolve().is_relative_to(folder.resolve()):
        path = one_line(entry["path"], 80)
        raise ValueError(f"the folder {path} is outside the model's folder")
    return kind


def read_tensors(folder: Path, name: str, like: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read an additional file's tensors, which have the names, types and shapes of `like`."""
    path = file_of(folder, name)
    what = "not the weights of this model"
    with refused(ModelDirectoryError, path, what, "save it again", SafetensorError):
        tensors = load_file(path)
        if tensors.keys() != like.keys():
            raise ValueError("its tensors do not fit this model")
        for key, tensor in tensors.items():
            if tensor.shape != like[key].shape or tensor.dtype != like[key].dtype:
                raise ValueError("its tensors do not fit this model")
            if not is_finite(tensor):
                raise ValueError("NaN or infinite numbers")
    return tensors
