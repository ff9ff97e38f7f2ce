"""The files of an averaging model: one directory for two readers.

Plain sentence-transformers reads `modules.json` (`StaticEmbedding`, optionally `Normalize`),
`tokenizer.json`, `config_sentence_transformers.json` and `model.safetensors`, if `opens_in_stock`.
This package reads `st_paragram.json` and the tokenizer's file (`sentencepiece.model`, `word.model`)
with the same weights. With a table of int4, `modules.json` names modules of this package, which
sentence-transformers imports with `trust_remote_code=True`.

| table | tensors of `model.safetensors` | |---|---| | float32, float16 | `embedding.weight` (V, D)
| | int8 | `embeddings`, int8 (V, D), and `weights`, float32 (V,): a factor for each row, as in
model2vec | | int4 | `embedding.weight`, uint8 (V, D / 2), see `packing`, and `embedding.scale`,
float32 (V,): a factor per row |

Except in int4, the row of the unknown id is stored as `unknown_embedding`, float32 (D,), and is
zero in the table. `StaticEmbedding` averages over unknown tokens, which this package drops; with a
zero row, the directions are the same.

Tables are memory-mapped: processes that open the same model share one copy. The mapping is private,
so that the row of the unknown id can be restored. Saving replaces the file; mappings of the old
file remain valid.
"""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.embedding_table import Table, TableType
from st_paragram.core.files import read_json, write_json
from st_paragram.core.model_directory.configuration import (
    AVERAGING,
    MODULES_FILE,
    STOCK_CONFIG_FILE,
    WEIGHTS_FILE,
    Configuration,
    configured,
    file_of,
    fingerprint,
    read_configuration,
    write_configuration,
)
from st_paragram.core.quantization import check_even, to_int8
from st_paragram.core.tokenizers.base import KINDS, Tokenizer, load_tokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError, refused, short

if TYPE_CHECKING:
    import tokenizers

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
PIPELINE_SETTINGS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
PROMPTS = {"query": "", "document": ""}  # defaults of every model, as in sentence-transformers

_TYPE_NAMES = {
    bool: "true or false",
    dict: "an object",
    float: "a number",
    int: "a whole number",
    str: "a text",
}
_VALUE_TYPES: dict[str, tuple[type, ...]] = {
    "embedding_dimension": (int,),
    "vocabulary_size": (int,),
    "tokenizer_kind": (str,),
    "tokenizer_options": (dict,),
    "dropout": (int, float),
    "table_type": (str,),
    "normalize": (bool,),
}
_SETTING_TYPES: dict[str, tuple[type, ...]] = {
    "prompts": (dict,),
    "default_prompt_name": (str,),
    "similarity_fn_name": (str,),
    "truncate_dim": (int,),
}
_SAVE_AGAIN = "save the model again"
_FLOATS = ("embedding.weight", None, "unknown_embedding")
_TENSORS = {  # names of the table, the scales, and the row of the unknown id
    TableType.FLOAT32: _FLOATS,
    TableType.FLOAT16: _FLOATS,
    TableType.INT8: ("embeddings", "weights", "unknown_embedding"),
    TableType.INT4: ("embedding.weight", "embedding.scale", None),
}
_TOO_LARGE = 1e15  # limit of scales: below it, sums and their squares stay finite
_NUMBERS = {"F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1"}  # types in safetensors files
# By their public aliases, not by their module paths in sentence-transformers 6.
_STOCK, _NORMALIZE = (
    "sentence_transformers.models.StaticEmbedding",
    "sentence_transformers.models.Normalize",
)
_OWN = {"": "st_paragram.TokenEmbedding", "1_MeanPool": "st_paragram.MeanPool"}


@dataclass(frozen=True)
class AveragingModel:
    """An averaging model in parts."""

    tokenizer: Tokenizer
    table: Table  # a row for each id
    unit_vectors: bool = False  # every embedding is scaled to length 1
    # those of `PIPELINE_SETTINGS` that are set
    settings: Mapping[str, Any] = field(default_factory=dict)
    dropout: float = 0.0  # used in training


@dataclass(frozen=True)
class AveragingValues:
    """The entries of `st_paragram.json` for an averaging model."""

    embedding_dimension: int
    vocabulary_size: int
    tokenizer_kind: str
    tokenizer_options: dict[str, Any]
    dropout: float
    table_type: TableType
    normalize: bool = False


def read(
    folder: Path, values: Mapping[str, Any], truncate_dim: int | None = None
) -> AveragingModel:
    """Read a model whose `st_paragram.json` has `values`; with `truncate_dim`, copy only the first
    dimensions.
    """
    stored = checked(folder, values)
    path = file_of(folder, tokenizer_file(stored.tokenizer_kind))
    with refused(
        ModelDirectoryError, path, "not the tokenizer of the model", _SAVE_AGAIN, SettingsError
    ):
        tokenizer = load_tokenizer(
            stored.tokenizer_kind, path.read_bytes(), stored.tokenizer_options
        )
        if len(tokenizer) != stored.vocabulary_size:
            raise ValueError(
                f"{len(tokenizer)} ids, but st_paragram.json has {stored.vocabulary_size}"
            )
    shape = len(tokenizer), stored.embedding_dimension
    table = map_table(file_of(folder, WEIGHTS_FILE), shape, stored.table_type, tokenizer.unknown_id)
    table, settings = table.truncated(truncate_dim), read_pipeline_settings(folder)
    return AveragingModel(tokenizer, table, stored.normalize, settings, stored.dropout)


def write(
    model: AveragingModel,
    folder: Path,
    dtype: TableType | str | None = None,
    dim: int | None = None,
) -> None:
    """Create a folder with the files for both readers, or only for this package; numbers are never
    rounded twice.
    """
    check_dimension(dim)
    table, tokenizer = model.table.truncated(dim), model.tokenizer
    table = table.converted(table.kind if dtype is None else TableType.of(dtype))
    first = {"embedding_dimension": table.dimension, "tokenizer_kind": tokenizer.kind}
    first |= {"tokenizer_options": tokenizer.options, "dropout": model.dropout}
    stock = None if table.kind is TableType.INT4 else stock_tokenizer(tokenizer)
    folder.mkdir(parents=True, exist_ok=True)
    if stock is not None:
        (folder / "tokenizer.json").write_text(
            stock.to_str(pretty=True), encoding="utf-8", newline="\n"
        )
        _write_modules(folder, {"": _STOCK}, model.unit_vectors)
    # as modules of this package: `StaticEmbedding` cannot read such weights
    elif table.kind is TableType.INT4:
        write_json(folder / "token_embedding_config.json", first, indent=2)
        write_json(
            folder / "1_MeanPool" / "mean_pool_config.json",
            {"embedding_dimension": table.dimension},
            indent=2,
        )
        _write_modules(folder, _OWN, model.unit_vectors)
    settings = {
        name: model.settings[name]
        for name in PIPELINE_SETTINGS
        if model.settings.get(name) is not None
    }
    settings = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"} | settings
    write_json(
        folder / STOCK_CONFIG_FILE,
        settings | {"prompts": PROMPTS | settings.get("prompts", {})},
        indent=2,
    )
    write_table(folder / WEIGHTS_FILE, table, tokenizer.unknown_id)
    (folder / tokenizer_file(tokenizer.kind)).write_bytes(tokenizer.content)
    more = {
        "vocabulary_size": len(tokenizer),
        "table_type": table.kind.value,
        "normalize": model.unit_vectors,
    }
    write_configuration(folder, Configuration(AVERAGING, first | more))


def _write_modules(folder: Path, kinds: Mapping[str, str], unit_vectors: bool) -> None:
    """Write `modules.json` with modules by folder, followed by `Normalize` for unit vectors."""
    if unit_vectors:
        kinds = {**kinds, f"{len(kinds)}_Normalize": _NORMALIZE}
        names = dict.fromkeys(("module_input_name", "module_output_name"), "sentence_embedding")
        write_json(folder / list(kinds)[-1] / "config.json", names)
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    write_json(folder / MODULES_FILE, modules, indent=2)


def check_type(name: str, value: object, kinds: tuple[type, ...]) -> None:
    """Raise ValueError if a value from a JSON file does not have one of some types; true and false
    are not numbers.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(_TYPE_NAMES[kind] for kind in kinds)
        raise ValueError(f"{name} is {short(value)}, not {expected}")


def tokenizer_file(kind: str) -> str:
    """Return the name of the file for a tokenizer of this kind, such as `sentencepiece.model`.

    Other kinds are refused, since a name from a JSON file could lead out of the model's folder.
    """
    if kind not in list(KINDS):
        seen = f"tokenizer_kind is {short(kind)}, not one of {', '.join(KINDS)}"
        raise ModelDirectoryError(f"{seen}; save the model again, or update st_paragram")
    return f"{kind}.model"


def checked(folder: Path, values: Mapping[str, Any]) -> AveragingValues:
    """Check that the values are those of an averaging model."""
    with configured(folder, SettingsError):
        for name, kinds in _VALUE_TYPES.items():
            if name in values:
                check_type(name, values[name], kinds)
        stored = AveragingValues(
            **{**values, "table_type": TableType.of(values.get("table_type", ""))}
        )
        for name in ("embedding_dimension", "vocabulary_size"):
            if values[name] < 1:
                raise ValueError(f"{name} is {values[name]}; it must be at least 1")
        if stored.table_type is TableType.INT4:
            check_even(stored.embedding_dimension)
        if not 0 <= stored.dropout < 1:
            raise ValueError(f"dropout is {stored.dropout}; it must be at least 0 and below 1")
        return stored


def table_type(folder: Path) -> TableType:
    """Return the number type of an averaging model's table; refuse other models."""
    found = read_configuration(folder)
    if found.architecture != AVERAGING:
        rule = "only averaging models can be exported"
        raise ModelDirectoryError(
            f"{folder}: a model of architecture {found.architecture!r}; {rule}"
        )
    return checked(folder, found.values).table_type


def read_pipeline_settings(folder: Path) -> dict[str, Any]:
    """Read prompts, similarity and other pipeline settings; empty if sentence-transformers' file is
    missing.
    """
    path = folder / STOCK_CONFIG_FILE
    if not path.is_file():
        return {}
    with refused(ModelDirectoryError, path, "not readable", _SAVE_AGAIN, SettingsError):
        stored = read_json(path)
        check_type("the content", stored, (dict,))
        settings = {
            name: value for name in PIPELINE_SETTINGS if (value := stored.get(name)) is not None
        }
        for name, value in settings.items():
            check_type(name, value, _SETTING_TYPES[name])
        if (name := settings.get("similarity_fn_name", "cosine")) not in SIMILARITIES:
            raise ValueError(
                f"similarity_fn_name is {short(name)}, not one of {', '.join(SIMILARITIES)}"
            )
        if wrong := [
            prompt
            for prompt in settings.get("prompts", {}).values()
            if not isinstance(prompt, str | None)
        ]:
            raise ValueError(f"a prompt is {short(wrong[0])}, not a text")
        check_dimension(settings.get("truncate_dim"))
        return settings


def model_digest(folder: Path) -> str:
    """Return the SHA-256 of everything that determines a model's embeddings: its fingerprint,
    prompts and truncation.

    Two folders with the same digest hold the same model, whatever their names are.
    """
    settings = read_pipeline_settings(folder)
    prompts = {name: prompt for name, prompt in settings.get("prompts", {}).items() if prompt}
    chosen = {
        "prompts": prompts,
        **{name: settings.get(name) for name in ("default_prompt_name", "truncate_dim")},
    }
    if not any(chosen.values()):
        return fingerprint(folder)
    text = json.dumps([fingerprint(folder), chosen], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def check_dimension(truncate_dim: int | None) -> None:
    """Refuse to keep less than one dimension."""
    if truncate_dim is not None and truncate_dim < 1:
        raise SettingsError(f"truncate_dim is {truncate_dim}; give at least 1")


def check_components(dim: int | None, dimension: int) -> None:
    """Refuse to keep more dimensions than there are."""
    if dim is not None and dim > dimension:
        seen = f"dim is {dim}, but the embeddings of this model have {dimension} dimensions"
        raise SettingsError(f"{seen}; choose at most {dimension}")


def opens_in_stock(tokenizer: Tokenizer) -> bool:
    """Whether an averaging model with this tokenizer opens in sentence-transformers without the
    plugin.
    """
    words = tokenizer.kind == "word" and tokenizer.options["splitter"] == "regex"
    return words or tokenizer.kind == "sentencepiece"


def stock_tokenizer(tokenizer: Tokenizer) -> tokenizers.Tokenizer | None:
    """Convert the tokenizer to a `tokenizer.json`, for readers without the plugin; None if that is
    impossible.
    """
    if tokenizer.kind not in KINDS:
        raise ModelDirectoryError(
            f"a tokenizer of kind {tokenizer.kind!r}; st_paragram.load knows {', '.join(KINDS)}"
        )
    if not opens_in_stock(tokenizer):
        return None
    from st_paragram.core.tokenizers import stock

    convert: Any = stock.convert_words if tokenizer.kind == "word" else stock.convert_tokenizer
    return cast("tokenizers.Tokenizer", convert(tokenizer))


def write_table(path: Path, table: Table, unknown_id: int) -> None:
    """Write a table whose row `unknown_id` is the row of the unknown id."""
    from safetensors.numpy import save

    if not table.is_finite():
        raise ModelDirectoryError(
            "the embeddings have NaN or infinite values; train with a lower learning rate"
        )
    table_name, scale_name, unknown_name = _TENSORS[table.kind]
    tensors = {table_name: table.weight}
    if unknown_name is not None:
        tensors = {table_name: table.weight.copy(), unknown_name: table.rows(unknown_id)}
        tensors[table_name][unknown_id] = 0
    if scale_name is not None:
        tensors[scale_name] = np.ascontiguousarray(table.scale)
    path.write_bytes(save(tensors))


def map_table(path: Path, shape: tuple[int, int], kind: TableType, unknown_id: int) -> Table:
    """Map a table written by `write_table`, of shape (V, D) and the given type; restore the row of
    the unknown id.
    """
    table_name, scale_name, unknown_name = _TENSORS[kind]
    with refused(
        ModelDirectoryError, path, "not the weights of this st_paragram model", _SAVE_AGAIN
    ):
        arrays, (rows, dimension) = _mapped(path), shape
        if missing := {table_name, scale_name, unknown_name} - {None, *arrays}:
            raise ValueError(f"the tensor {missing.pop()!r} is missing")
        table = arrays[table_name]
        stored = (
            ("uint8", (rows, dimension // 2)) if kind is TableType.INT4 else (kind.value, shape)
        )
        if (table.dtype.name, table.shape) != stored:
            raise ValueError(
                f"a table of {table.dtype}, {table.shape}; {stored[0]}, {stored[1]} expected"
            )
        for name in filter(None, (scale_name, unknown_name)):
            if not (np.abs(arrays[name]) < _TOO_LARGE).all():
                raise ValueError(f"{name} has NaN, infinite or huge numbers")
        scale = arrays[scale_name].astype(np.float32).reshape(rows) if scale_name else None
        if unknown_name:
            unknown = arrays[unknown_name].reshape(dimension)
            table[unknown_id] = unknown if scale is None else to_int8(unknown, scale[unknown_id])
        return Table(table, scale)


def _mapped(path: Path) -> dict[str, NDArray[Any]]:
    """Map the tensors of a safetensors file, writable without changing the file; the library would
    copy them.

    It begins with the length of its JSON header, uint64; `data_offsets` there count from the end of
    the header.
    """
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    begin = 8 + int.from_bytes(content[:8], "little")
    arrays = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name != "__metadata__":
            dtype, (first, last) = np.dtype(_NUMBERS[entry["dtype"]]), entry["data_offsets"]
            array = np.frombuffer(content, dtype, (last - first) // dtype.itemsize, begin + first)
            arrays[name] = np.require(array.reshape(entry["shape"]), requirements="A")
    return arrays
