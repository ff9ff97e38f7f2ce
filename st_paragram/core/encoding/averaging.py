"""The files of an averaging model: one directory for two readers.

Plain sentence-transformers, `SentenceTransformer(path)`: `modules.json` (`StaticEmbedding`, and `Normalize` if the
model has it), `config_sentence_transformers.json`, `tokenizer.json`, `model.safetensors`. Needs no plugin and no flag.
This package: `st_paragram.json` and the tokenizer's own file (`sentencepiece.model`, `word.model`) next to the same
weights.

The tokenizers library can do what sentencepiece does, and find words by a regular expression. Models of character
trigrams, of words as Moses finds them and of two vocabularies have neither `modules.json` nor `tokenizer.json`, and
only this package reads them (see `opens_in_stock`). With a table of int4, `modules.json` names modules of this package,
which sentence-transformers imports if it is called with `trust_remote_code=True`.

`model.safetensors` (see `weights_file`) holds the table, float32, float16 or int8 (V, D), and `unknown_embedding`,
float32 (D,). The row of the unknown id is zero in the former, since `StaticEmbedding` averages over unknown tokens,
which are dropped here: directions, hence cosines, are the same. Texts of only unknown tokens get the row back.
Tables of int4 hold the row itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding import nibbles, stock_files, weights_file
from st_paragram.core.encoding.checksums_file import Seal
from st_paragram.core.encoding.configuration import (
    AVERAGING,
    STOCK_CONFIG_FILE,
    WEIGHTS_FILE,
    Configuration,
    configured,
    file_of,
    read_configuration,
    write_configuration,
)
from st_paragram.core.encoding.similarity import SIMILARITIES
from st_paragram.core.encoding.table import Table, TableType
from st_paragram.core.files import read_json, write_json
from st_paragram.core.tokenizers.base import KINDS, Tokenizer, load_tokenizer
from st_paragram.errors import DAMAGED, ModelDirectoryError, SettingsError, one_line, refused, short

if TYPE_CHECKING:
    import tokenizers

#: What `config_sentence_transformers.json` says of a pipeline, besides its modules.
PIPELINE_SETTINGS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
#: Prompts that every model has; sentence-transformers adds them, too.
PROMPTS = {"query": "", "document": ""}


@dataclass(frozen=True)
class AveragingModel:
    """An averaging model in parts.

    Attributes:
        tokenizer: text to ids.
        table: a row for each id.
        unit_vectors: every embedding is scaled to length 1.
        settings: prompts, similarity and the like, see `PIPELINE_SETTINGS`; those that are set.
        dropout: of the training.
    """

    tokenizer: Tokenizer
    table: Table
    unit_vectors: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    dropout: float = 0.0


@dataclass(frozen=True)
class AveragingValues:
    """What `st_paragram.json` says of an averaging model."""

    embedding_dimension: int
    vocabulary_size: int
    tokenizer_kind: str
    tokenizer_options: dict[str, Any]
    dropout: float
    table_type: str
    normalize: bool = False


_VALUE_TYPES: dict[str, tuple[type, ...]] = {
    "embedding_dimension": (int,),
    "vocabulary_size": (int,),
    "tokenizer_kind": (str,),
    "tokenizer_options": (dict,),
    "dropout": (float, int),
    "table_type": (str,),
    "normalize": (bool,),
}
_SETTING_TYPES: dict[str, tuple[type, ...]] = {
    "prompts": (dict,),
    "default_prompt_name": (str,),
    "similarity_fn_name": (str,),
    "truncate_dim": (int,),
}
_COUNTS = ("embedding_dimension", "vocabulary_size", "truncate_dim")
_WORDS = {int: "a whole number", str: "a text", dict: "a mapping", float: "a number", bool: "true or false"}


def read(folder: Path, values: Mapping[str, Any], truncate_dim: int | None = None) -> AveragingModel:
    """Read a model; its table is mapped into memory (see `weights_file`).

    Args:
        folder: of the model.
        values: what its `st_paragram.json` says.
        truncate_dim: keep the first components of each row only, in a copy.

    Raises:
        ModelDirectoryError: a file is missing or damaged.
        SettingsError: a `truncate_dim` below 1.
    """
    check_dimension(truncate_dim)
    stored, seal = checked(folder, values), Seal(folder)
    tokenizer = read_tokenizer(folder, stored)
    table = weights_file.map_table(
        file_of(folder, WEIGHTS_FILE),
        (len(tokenizer), stored.embedding_dimension),
        TableType(stored.table_type),
        tokenizer.unknown_id,
        checked=seal.known,
    )
    model = AveragingModel(
        tokenizer, table.truncated(truncate_dim), stored.normalize, read_pipeline_settings(folder), stored.dropout
    )
    seal.close()
    return model


def write(model: AveragingModel, folder: Path, dtype: TableType | str | None = None, dim: int | None = None) -> None:
    """Write the files of both readers, or of this package's alone; without a model card and checksums.

    Args:
        model: what to write.
        folder: made if it is not there.
        dtype: store the table as float32, float16, int8 or int4; as it is if not given.
        dim: store the first components of each row only.

    Raises:
        ModelDirectoryError: a tokenizer that no reader could make, or a sentencepiece model of another type.
        SettingsError: no such type, a dimension below 1, or numbers that do not fit the type.
    """
    table, tokenizer = stored_table(model.table, dtype, dim), model.tokenizer
    stock = stock_tokenizer(tokenizer)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {name: model.settings.get(name) for name in PIPELINE_SETTINGS}
    settings["prompts"] = PROMPTS | (settings["prompts"] or {})
    settings["similarity_fn_name"] = settings["similarity_fn_name"] or "cosine"
    if table.kind is TableType.INT4:
        first = stock_files.FirstModule(table.dimension, tokenizer.kind, tokenizer.options, model.dropout)
        stock_files.write_own(first, settings, model.unit_vectors, folder)
    elif stock is None:
        write_json(folder / STOCK_CONFIG_FILE, settings, indent=2)
    else:
        stock_files.write(stock, settings, model.unit_vectors, folder)
    weights_file.write_table(folder / WEIGHTS_FILE, table, tokenizer.unknown_id)
    (folder / tokenizer_file(tokenizer.kind)).write_bytes(tokenizer.content)
    values: dict[str, Any] = {
        "embedding_dimension": table.dimension,
        "vocabulary_size": len(tokenizer),
        "tokenizer_kind": tokenizer.kind,
        "tokenizer_options": tokenizer.options,
        "dropout": model.dropout,
        "table_type": table.kind.value,
    }
    if model.unit_vectors:  # else no entry: versions before it read these directories, too
        values["normalize"] = True
    write_configuration(folder, Configuration(AVERAGING, values))


def stored_table(table: Table, dtype: TableType | str | None = None, dim: int | None = None) -> Table:
    """A table in another type and with fewer columns, if asked for; it is never rounded twice.

    Raises:
        SettingsError: no such type, a dimension below 1, or numbers that do not fit the type.
    """
    check_dimension(dim)
    return table.truncated(dim).converted(table.kind if dtype is None else TableType.of(dtype))


def tokenizer_file(kind: str) -> str:
    """The file that holds a tokenizer's content, by its kind: `sentencepiece.model`."""
    return f"{kind}.model"


def checked(folder: Path, values: Mapping[str, Any]) -> AveragingValues:
    """What `st_paragram.json` says, with every value of its type.

    Raises:
        ModelDirectoryError: an entry is missing, unknown or wrong.
    """
    with configured(folder, SettingsError):
        required = {each.name for each in fields(AveragingValues) if each.default is MISSING}
        for name in sorted(required - values.keys()):
            raise ValueError(f"{name} is missing")
        for name in sorted(values.keys() - _VALUE_TYPES.keys()):
            raise ValueError(f"{short(name)} is unknown")
        _check_types(values, _VALUE_TYPES)
        if TableType.of(values["table_type"]) is TableType.INT4:
            nibbles.check_even(values["embedding_dimension"])
        if not 0 <= values["dropout"] < 1:
            raise ValueError(f"dropout is {values['dropout']}; it must be at least 0 and below 1")
        return AveragingValues(**{**values, "dropout": float(values["dropout"])})


def table_type(folder: Path) -> TableType:
    """How the numbers of an averaging model's table are stored.

    Raises:
        ModelDirectoryError: another model, which has no such table.
    """
    configuration = read_configuration(folder)
    if configuration.architecture != AVERAGING:
        raise ModelDirectoryError(
            f"{folder}: a model of architecture {configuration.architecture!r}; only averaging models have a table "
            "that can be stored in another type or with fewer components"
        )
    return TableType(checked(folder, configuration.values).table_type)


def read_tokenizer(folder: Path, stored: AveragingValues) -> Tokenizer:
    """The tokenizer of a folder.

    Raises:
        ModelDirectoryError: its file is missing or damaged, or belongs to another model.
    """
    path = file_of(folder, tokenizer_file(stored.tokenizer_kind))
    try:
        tokenizer = load_tokenizer(stored.tokenizer_kind, path.read_bytes(), stored.tokenizer_options)
    except (SettingsError, *DAMAGED) as error:
        raise ModelDirectoryError(f"{path}: {one_line(error)}; save the model again") from error
    if len(tokenizer) != stored.vocabulary_size:
        seen = f"{len(tokenizer)} ids, st_paragram.json says {stored.vocabulary_size}"
        raise ModelDirectoryError(f"{path}: {seen}; save the model again")
    return tokenizer


def read_pipeline_settings(folder: Path) -> dict[str, Any]:
    """Prompts, similarity and the like; none where the file of sentence-transformers is missing.

    Raises:
        ModelDirectoryError: the file is damaged.
    """
    path = folder / STOCK_CONFIG_FILE
    if not path.is_file():
        return {}
    with refused(ModelDirectoryError, path, "not readable", "save the model again"):
        stored = read_json(path)
        settings = {name: stored[name] for name in PIPELINE_SETTINGS if stored.get(name) is not None}
        _check_types(settings, _SETTING_TYPES)
        _check_settings(settings)
        return settings


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse an unknown similarity, prompts that are not texts, and a default prompt that does not exist.

    Raises:
        ValueError: with the setting.
    """
    if (name := settings.get("similarity_fn_name", "cosine")) not in SIMILARITIES:
        raise ValueError(f"similarity_fn_name is {short(name)}; choose {', '.join(SIMILARITIES)}")
    prompts, default = settings.get("prompts", {}), settings.get("default_prompt_name")
    for name, prompt in prompts.items():
        if not isinstance(prompt, str | None):
            raise ValueError(f"the prompt {short(name)} is {short(prompt)}; a text is expected")
    if default not in (None, *PROMPTS, *prompts):
        raise ValueError(f"default_prompt_name is {short(default)}; there is no prompt of this name")


def _check_types(values: Mapping[str, Any], types: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse a value of another type, and counts below 1.

    Raises:
        ValueError: with the name, the value, and what is expected.
    """
    for name, value in values.items():
        if type(value) not in types[name] or (name in _COUNTS and value < 1):
            least = " of at least 1" if name in _COUNTS else ""
            raise ValueError(f"{name} is {short(value)}; {_WORDS[types[name][0]]}{least} is expected")


def check_dimension(truncate_dim: int | None) -> None:
    """Refuse a number of components below 1.

    Raises:
        SettingsError: it is.
    """
    if truncate_dim is not None and truncate_dim < 1:
        raise SettingsError(f"truncate_dim is {truncate_dim}; give at least 1")


def check_components(dim: int | None, dimension: int) -> None:
    """Refuse to keep more components than there are.

    Raises:
        SettingsError: `dim` is larger than the dimension of a model.
    """
    if dim is not None and dim > dimension:
        seen = f"dim is {dim}, and the embeddings of this model have {dimension} components"
        raise SettingsError(f"{seen}; choose at most {dimension}")


def opens_in_stock(tokenizer: Tokenizer) -> bool:
    """Whether an averaging model with this tokenizer opens in sentence-transformers without the plugin."""
    words = tokenizer.kind == "word" and tokenizer.options["splitter"] == "regex"
    return words or tokenizer.kind == "sentencepiece"


def stock_tokenizer(tokenizer: Tokenizer) -> tokenizers.Tokenizer | None:
    """The tokenizer as a `tokenizer.json`, for readers without the plugin; None if it cannot be one.

    Raises:
        ModelDirectoryError: no reader could make the tokenizer, or it is a sentencepiece model of another type.
    """
    if tokenizer.kind not in KINDS:
        raise ModelDirectoryError(
            f"a tokenizer of kind {tokenizer.kind!r}, which st_paragram.load cannot make; it knows {', '.join(KINDS)}"
        )
    if not opens_in_stock(tokenizer):
        return None
    from st_paragram.core.tokenizers import stock

    if tokenizer.kind == "word":
        return stock.convert_words(tokenizer)  # type: ignore[arg-type]
    return stock.convert_tokenizer(tokenizer)  # type: ignore[arg-type]
