"""The files of an averaging model: one directory for two readers.

Plain sentence-transformers reads `modules.json` (`StaticEmbedding`, optionally `Normalize`),
`tokenizer.json`, `config_sentence_transformers.json` and `model.safetensors`, if `opens_in_stock`.
This package reads `st_paragram.json` and the tokenizer's file (`sentencepiece.model`, `word.model`)
with the same weights. With a table of int4, `modules.json` names modules of this package, which
sentence-transformers imports with `trust_remote_code=True`.

| table            | tensors of `model.safetensors`                                               |
|------------------|-------------------------------------------------------------------------------|
| float32, float16 | `embedding.weight` (V, D)                                                     |
| int8             | `embeddings`, int8 (V, D), and `weights`, float32 (V,): a factor for each row |
| int4             | `embedding.weight`, uint8 (V, D / 2), see `quantization`, and                 |
|                  | `embedding.scale`, float32 (V,): a factor for each row                        |

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
from typing import TYPE_CHECKING, Any, NamedTuple

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
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.loading import KINDS, load_tokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
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


class _Tensors(NamedTuple):
    """Names of the tensors of a table."""

    table: str
    scale: str | None
    unknown: str | None  # the row of the unknown id


_FLOATS = _Tensors("embedding.weight", None, "unknown_embedding")
_TENSORS = {
    TableType.FLOAT32: _FLOATS,
    TableType.FLOAT16: _FLOATS,
    TableType.INT8: _Tensors("embeddings", "weights", "unknown_embedding"),
    TableType.INT4: _Tensors("embedding.weight", "embedding.scale", None),
}
_TOO_LARGE = 1e15  # limit of scales: below it, sums and their squares stay finite
_NUMBERS = {"F32": "<f4", "F16": "<f2", "I8": "i1", "U8": "u1"}  # types in safetensors files
# By their public aliases, not by their module paths in sentence-transformers 6.
_STOCK = "sentence_transformers.models.StaticEmbedding"
_NORMALIZE = "sentence_transformers.models.Normalize"
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
    """Read a model whose `st_paragram.json` has `values`.

    With `truncate_dim`, only the first dimensions are copied into memory.
    """
    stored = checked(folder, values)
    path = file_of(folder, tokenizer_file(stored.tokenizer_kind))
    problem = "not the tokenizer of the model"
    with refused(ModelDirectoryError, path, problem, _SAVE_AGAIN, SettingsError):
        tokenizer = load_tokenizer(
            stored.tokenizer_kind, path.read_bytes(), stored.tokenizer_options
        )
        if len(tokenizer) != stored.vocabulary_size:
            raise ValueError(
                f"{len(tokenizer)} ids, but st_paragram.json has {stored.vocabulary_size}"
            )
    shape = (len(tokenizer), stored.embedding_dimension)
    table = map_table(file_of(folder, WEIGHTS_FILE), shape, stored.table_type, tokenizer.unknown_id)
    return AveragingModel(
        tokenizer,
        table.truncated(truncate_dim),
        unit_vectors=stored.normalize,
        settings=read_pipeline_settings(folder),
        dropout=stored.dropout,
    )


def write(
    model: AveragingModel,
    folder: Path,
    dtype: TableType | str | None = None,
    dim: int | None = None,
) -> None:
    """Create a folder with the files for both readers, or only for this package.

    Numbers are never rounded twice.
    """
    check_dimension(dim)
    tokenizer = model.tokenizer
    table = model.table.truncated(dim)
    if dtype is not None:
        table = table.converted(TableType.of(dtype))
    dimensions = {"embedding_dimension": table.dimension}
    values = {
        **dimensions,
        "tokenizer_kind": tokenizer.kind,
        "tokenizer_options": tokenizer.options,
        "dropout": model.dropout,
    }
    folder.mkdir(parents=True, exist_ok=True)
    if table.kind is TableType.INT4:
        # as modules of this package: `StaticEmbedding` cannot read such weights
        write_json(folder / "token_embedding_config.json", values, indent=2)
        write_json(folder / "1_MeanPool" / "mean_pool_config.json", dimensions, indent=2)
        _write_modules(folder, _OWN, model.unit_vectors)
    else:
        stock = stock_tokenizer(tokenizer)
        if stock is not None:
            text = stock.to_str(pretty=True)
            (folder / "tokenizer.json").write_text(text, encoding="utf-8", newline="\n")
            _write_modules(folder, {"": _STOCK}, model.unit_vectors)
    _write_pipeline_settings(folder, model.settings)
    write_table(folder / WEIGHTS_FILE, table, tokenizer.unknown_id)
    (folder / tokenizer_file(tokenizer.kind)).write_bytes(tokenizer.content)
    values["vocabulary_size"] = len(tokenizer)
    values["table_type"] = table.kind.value
    values["normalize"] = model.unit_vectors
    write_configuration(folder, Configuration(AVERAGING, values))


def _write_modules(folder: Path, kinds: Mapping[str, str], unit_vectors: bool) -> None:
    """Write `modules.json` with modules by folder, followed by `Normalize` for unit vectors."""
    kinds = dict(kinds)
    if unit_vectors:
        name = f"{len(kinds)}_Normalize"
        kinds[name] = _NORMALIZE
        config = {
            "module_input_name": "sentence_embedding",
            "module_output_name": "sentence_embedding",
        }
        write_json(folder / name / "config.json", config)
    modules = []
    for number, (path, kind) in enumerate(kinds.items()):
        modules.append({"idx": number, "name": str(number), "path": path, "type": kind})
    write_json(folder / MODULES_FILE, modules, indent=2)


def _write_pipeline_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write sentence-transformers' file of settings."""
    content: dict[str, Any] = {
        "model_type": "SentenceTransformer",
        "similarity_fn_name": "cosine",
    }
    for name in PIPELINE_SETTINGS:
        if settings.get(name) is not None:
            content[name] = settings[name]
    content["prompts"] = PROMPTS | content.get("prompts", {})
    write_json(folder / STOCK_CONFIG_FILE, content, indent=2)


def check_type(name: str, value: object, kinds: tuple[type, ...]) -> None:
    """Raise ValueError if a value from a JSON file does not have one of some types.

    True and false are not numbers.
    """
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(_TYPE_NAMES[kind] for kind in kinds)
        raise ValueError(f"{name} is {short(value)}, not {expected}")


def tokenizer_file(kind: str) -> str:
    """Return the name of the file for a tokenizer of this kind, such as `sentencepiece.model`.

    Other kinds are refused, since a name from a JSON file could lead out of the model's folder.
    """
    if kind not in KINDS:
        raise ModelDirectoryError(
            f"tokenizer_kind is {short(kind)}, not one of {', '.join(KINDS)}; save the model again,"
            " or update st_paragram"
        )
    return f"{kind}.model"


def checked(folder: Path, values: Mapping[str, Any]) -> AveragingValues:
    """Check that the values are those of an averaging model."""
    with configured(folder, SettingsError):
        for name, kinds in _VALUE_TYPES.items():
            if name in values:
                check_type(name, values[name], kinds)
        table_type = TableType.of(values.get("table_type", ""))
        stored = AveragingValues(**{**values, "table_type": table_type})
        for name in ("embedding_dimension", "vocabulary_size"):
            if values[name] < 1:
                raise ValueError(f"{name} is {values[name]}; it must be at least 1")
        if table_type is TableType.INT4:
            check_even(stored.embedding_dimension)
        if not 0 <= stored.dropout < 1:
            raise ValueError(f"dropout is {stored.dropout}; it must be at least 0 and below 1")
        return stored


def table_type(folder: Path) -> TableType:
    """Return the number type of an averaging model's table; refuse other models."""
    configuration = read_configuration(folder)
    if configuration.architecture != AVERAGING:
        raise ModelDirectoryError(
            f"{folder}: a model of architecture {configuration.architecture!r}; only averaging"
            " models can be exported"
        )
    return checked(folder, configuration.values).table_type


def read_pipeline_settings(folder: Path) -> dict[str, Any]:
    """Read prompts, similarity and other pipeline settings.

    They are empty if sentence-transformers' file is missing.
    """
    path = folder / STOCK_CONFIG_FILE
    if not path.is_file():
        return {}
    with refused(ModelDirectoryError, path, "not readable", _SAVE_AGAIN, SettingsError):
        content = read_json(path)
        check_type("the content", content, (dict,))
        settings = {}
        for name in PIPELINE_SETTINGS:
            if content.get(name) is not None:
                check_type(name, content[name], _SETTING_TYPES[name])
                settings[name] = content[name]
        similarity = settings.get("similarity_fn_name", "cosine")
        if similarity not in SIMILARITIES:
            raise ValueError(
                f"similarity_fn_name is {short(similarity)}, not one of {', '.join(SIMILARITIES)}"
            )
        for prompt in settings.get("prompts", {}).values():
            if not isinstance(prompt, str | None):
                raise ValueError(f"a prompt is {short(prompt)}, not a text")
        check_dimension(settings.get("truncate_dim"))
        return settings


def model_digest(folder: Path) -> str:
    """Return the SHA-256 of everything that determines a model's embeddings.

    This is its fingerprint, prompts and truncation. Two folders with the same digest hold the same
    model, whatever their names are.
    """
    settings = read_pipeline_settings(folder)
    prompts = {name: prompt for name, prompt in settings.get("prompts", {}).items() if prompt}
    chosen = {
        "prompts": prompts,
        "default_prompt_name": settings.get("default_prompt_name"),
        "truncate_dim": settings.get("truncate_dim"),
    }
    if not any(chosen.values()):
        return fingerprint(folder)
    text = json.dumps([fingerprint(folder), chosen], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def check_initial_dimension(dim: int, *, model: str | Path, model_dim: int) -> None:
    """Refuse a dimension other than that of the averaging model to start from."""
    if dim != model_dim:
        raise SettingsError(
            f"dim is {dim}, but {model} has {model_dim} dimensions; set --dim {model_dim}"
        )


def check_dimension(truncate_dim: int | None) -> None:
    """Refuse to keep less than one dimension."""
    if truncate_dim is not None and truncate_dim < 1:
        raise SettingsError(f"truncate_dim is {truncate_dim}; give at least 1")


def check_components(dim: int | None, dimension: int) -> None:
    """Refuse to keep more dimensions than there are."""
    if dim is not None and dim > dimension:
        raise SettingsError(
            f"dim is {dim}, but the embeddings of this model have {dimension} dimensions; choose at"
            f" most {dimension}"
        )


def opens_in_stock(tokenizer: Tokenizer) -> bool:
    """Whether a model with this tokenizer opens in sentence-transformers without the plugin."""
    if tokenizer.kind == "word":
        return bool(tokenizer.options["splitter"] == "regex")
    return tokenizer.kind == "sentencepiece"


def check_tokenizer(tokenizer: Tokenizer) -> None:
    """Refuse a tokenizer that no model directory can hold."""
    tokenizer_file(tokenizer.kind)
    if isinstance(tokenizer, SentencePieceTokenizer):
        from st_paragram.core.tokenizers.stock import check_convertible

        check_convertible(tokenizer)


def stock_tokenizer(tokenizer: Tokenizer) -> tokenizers.Tokenizer | None:
    """Convert the tokenizer to a `tokenizer.json` for readers without the plugin, if possible."""
    tokenizer_file(tokenizer.kind)  # refuses a tokenizer that no model directory can hold
    if not opens_in_stock(tokenizer):
        return None
    from st_paragram.core.tokenizers.stock import convert

    return convert(tokenizer)


def write_table(path: Path, table: Table, unknown_id: int) -> None:
    """Write a table whose row `unknown_id` is the row of the unknown id."""
    from safetensors.numpy import save

    if not table.is_finite():
        raise ModelDirectoryError(
            "the embeddings have NaN or infinite values; train with a lower learning rate"
        )
    names = _TENSORS[table.kind]
    tensors = {names.table: table.weight}
    if names.unknown is not None:
        weight = table.weight.copy()
        weight[unknown_id] = 0
        tensors = {names.table: weight, names.unknown: table.rows(unknown_id)}
    if names.scale is not None:
        tensors[names.scale] = np.ascontiguousarray(table.scale)
    path.write_bytes(save(tensors))


def map_table(path: Path, shape: tuple[int, int], kind: TableType, unknown_id: int) -> Table:
    """Map a table written by `write_table`, of shape (V, D) and the given type.

    The row of the unknown id is restored.
    """
    names = _TENSORS[kind]
    problem = "not the weights of this st_paragram model"
    with refused(ModelDirectoryError, path, problem, _SAVE_AGAIN):
        arrays = _mapped(path)
        for name in names:
            if name is not None and name not in arrays:
                raise ValueError(f"the tensor {name!r} is missing")
        rows, dimension = shape
        number_type = kind.value
        if kind is TableType.INT4:
            number_type = "uint8"
            shape = (rows, dimension // 2)
        table = arrays[names.table]
        if table.dtype.name != number_type or table.shape != shape:
            raise ValueError(
                f"a table of {table.dtype}, {table.shape}; {number_type}, {shape} expected"
            )
        for name in (names.scale, names.unknown):
            if name is not None and not (np.abs(arrays[name]) < _TOO_LARGE).all():
                raise ValueError(f"{name} has NaN, infinite or huge numbers")
        scale = None
        if names.scale is not None:
            scale = arrays[names.scale].astype(np.float32).reshape(rows)
        if names.unknown is not None:
            unknown = arrays[names.unknown].reshape(dimension)
            if scale is not None:
                unknown = to_int8(unknown, scale[unknown_id])
            table[unknown_id] = unknown
        return Table(table, scale)


def _mapped(path: Path) -> dict[str, NDArray[Any]]:
    """Map the tensors of a safetensors file, which the library would copy.

    They are writable without changing the file. The file begins with the length of its JSON header,
    uint64; `data_offsets` there count from the end of the header.
    """
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    begin = 8 + int.from_bytes(content[:8], "little")
    arrays = {}
    for name, entry in json.loads(content[8:begin]).items():
        if name == "__metadata__":
            continue
        dtype = np.dtype(_NUMBERS[entry["dtype"]])
        first, last = entry["data_offsets"]
        array = np.frombuffer(content, dtype, (last - first) // dtype.itemsize, begin + first)
        arrays[name] = np.require(array.reshape(entry["shape"]), requirements="A")
    return arrays
