"""The files of an averaging model, `TokenEmbedding`, `MeanPool` and perhaps `Normalize`: one directory for two readers.

Stock reader, `SentenceTransformer(path)`: `modules.json` (`StaticEmbedding`, and `Normalize` if the model has it),
`config_sentence_transformers.json`, `tokenizer.json`, `model.safetensors`. Needs no plugin and no flag. Plugin's
reader, `st_paragram.load(path)`: `st_paragram.json` and the tokenizer's own file (`sentencepiece.model`, `word.model`)
beside the same weights.

The stock reader's library can do what sentencepiece does, and find words by a regular expression. Models of character
trigrams, of words as Moses finds them and of two vocabularies have neither `modules.json` nor `tokenizer.json`, and
only the plugin reads them (see `opens_in_stock`).

`model.safetensors` (see `weights_file`) holds the table, float32, float16 or int8 (V, D), and `unknown_embedding`,
float32 (D,). The row of the unknown id is zero in the former, since the stock reader averages over unknown tokens where
the plugin drops them: directions, hence cosines, are the same. The plugin puts the row back for texts of nothing but
unknown tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import pydantic
import pydantic.dataclasses
import tokenizers
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from torch import Tensor, nn

from st_paragram.damage import DAMAGED, one_line, short
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.files import write_json
from st_paragram.json_files import read_json
from st_paragram.models import weights_file
from st_paragram.models.configuration import (
    AVERAGING,
    STOCK_CONFIG_FILE,
    Configuration,
    damaged,
    file_of,
    write_configuration,
)
from st_paragram.models.modules_file import name_modules
from st_paragram.modules.compact_embedding import CompactEmbedding, TableType
from st_paragram.modules.mean_pool import MeanPool
from st_paragram.modules.sentencepiece_embedding import token_embedding
from st_paragram.modules.token_embedding import WEIGHTS_FILE, TokenEmbedding, tokenizer_file
from st_paragram.tokenizers.base import KINDS, Tokenizer, load_tokenizer
from st_paragram.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.tokenizers.sentencepiece_subset import SentencePieceSubsetTokenizer
from st_paragram.tokenizers.stock_conversion import convert_tokenizer
from st_paragram.tokenizers.stock_words import convert_words
from st_paragram.tokenizers.words import Splitter, WordTokenizer

#: What `config_sentence_transformers.json` says of a pipeline beside its modules.
PIPELINE_SETTINGS = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")


@pydantic.dataclasses.dataclass(frozen=True, config=pydantic.ConfigDict(strict=True, extra="ignore"))
class _PipelineSettings:
    """What `config_sentence_transformers.json` says of a pipeline beside its modules."""

    prompts: dict[str, str | None] | None = None
    default_prompt_name: str | None = None
    similarity_fn_name: str | None = None
    truncate_dim: Annotated[int, pydantic.Field(ge=1)] | None = None


@pydantic.dataclasses.dataclass(frozen=True, config=pydantic.ConfigDict(strict=True, extra="forbid"))
class AveragingValues:
    """What `st_paragram.json` says of an averaging model."""

    embedding_dimension: Annotated[int, pydantic.Field(ge=1)]
    vocabulary_size: Annotated[int, pydantic.Field(ge=1)]
    tokenizer_kind: str
    tokenizer_options: dict[str, Any]
    dropout: float
    table_type: str
    normalize: bool = False


def averaging_embedding(model: SentenceTransformer) -> TokenEmbedding | None:
    """The first module, if the pipeline only averages token embeddings, and perhaps normalises the mean; else None."""
    first, *others = model._modules.values() or [None]
    if not isinstance(first, TokenEmbedding) or not others or type(others[0]) is not MeanPool:
        return None
    kind = type(first)
    inherited = (kind.forward, kind.preprocess) == (TokenEmbedding.forward, TokenEmbedding.preprocess)
    return first if inherited and (not others[1:] or _normalize_alone(others[1:])) else None


def _normalize_alone(modules: Sequence[nn.Module | None]) -> bool:
    """Whether modules are one `Normalize` that scales sentence embeddings in place."""
    if len(modules) != 1 or type(modules[0]) is not Normalize:
        return False
    names = (modules[0].module_input_name, modules[0].module_output_name)
    return names == ("sentence_embedding", "sentence_embedding")


def gives_unit_vectors(model: SentenceTransformer) -> bool:
    """Whether an averaging model ends with `Normalize`, so that its embeddings have length 1."""
    return averaging_embedding(model) is not None and len(model._modules) == 3


def embedding_of(model: SentenceTransformer) -> TokenEmbedding:
    """The first module of an averaging model, which holds its table.

    Raises:
        ModelDirectoryError: another pipeline.
    """
    embedding = averaging_embedding(model)
    if embedding is None:
        kinds = " and ".join(type(module).__name__ for module in model)
        raise ModelDirectoryError(f"a pipeline of {kinds}: only TokenEmbedding and MeanPool have a table to average")
    return embedding


def check(model: SentenceTransformer) -> None:
    """Refuse early a tokenizer of an unknown kind, and a sentencepiece model that cannot become a `tokenizer.json`.

    Raises:
        ModelDirectoryError: it is one of them, or the pipeline is another.
    """
    stock_tokenizer(embedding_of(model).tokenizer)


def write(
    model: SentenceTransformer, folder: Path, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> None:
    """Write the files of both readers, or of the plugin's alone; without a model card.

    Args:
        model: an averaging model.
        folder: made if it is not there.
        dtype: store the table as float32, float16 or int8; as it is if not given.
        truncate_dim: store the first components of each row only.

    Raises:
        ModelDirectoryError: another pipeline, or a tokenizer that `check` refuses.
        SettingsError: no such type, a dimension below 1, or numbers too large for float16.
    """
    embedding = embedding_of(model)
    table = table_to_save(embedding, dtype, truncate_dim)
    stock, unit_vectors = stock_tokenizer(embedding.tokenizer), gives_unit_vectors(model)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {name: getattr(model, name) for name in PIPELINE_SETTINGS}
    if stock is None:
        write_json(folder / STOCK_CONFIG_FILE, settings, indent=2)
    else:
        _write_stock_files(stock, settings, unit_vectors, folder)
    weights_file.write_weights(folder / WEIGHTS_FILE, table, embedding.tokenizer.unknown_id)
    (folder / tokenizer_file(embedding.tokenizer.kind)).write_bytes(embedding.tokenizer.content)
    values: dict[str, Any] = {
        "embedding_dimension": table.shape[1] if isinstance(table, Tensor) else table.embedding_dim,
        "vocabulary_size": len(embedding.tokenizer),
        "tokenizer_kind": embedding.tokenizer.kind,
        "tokenizer_options": embedding.tokenizer.options,
        "dropout": embedding.dropout,
        "table_type": (TableType.FLOAT32 if isinstance(table, Tensor) else table.kind).value,
    }
    if unit_vectors:  # else no entry: versions before it read these directories, too
        values["normalize"] = True
    write_configuration(folder, Configuration(AVERAGING, values))


def table_to_save(
    embedding: TokenEmbedding, dtype: TableType | str | None = None, truncate_dim: int | None = None
) -> Tensor | CompactEmbedding:
    """An embedding's table on the CPU, of another type and with fewer columns if asked for.

    Raises:
        SettingsError: no such type, a dimension below 1, or numbers too large for float16.
    """
    check_dimension(truncate_dim)
    source = embedding.embedding
    own = source.kind if isinstance(source, CompactEmbedding) else TableType.FLOAT32
    kind = own if dtype is None else TableType.of(dtype)
    if isinstance(source, CompactEmbedding) and kind is own:  # no second rounding
        scale = None if source.scale is None else source.scale.cpu()
        return CompactEmbedding(source.weight[:, :truncate_dim].cpu().contiguous(), scale)
    rows = source.to_float32() if isinstance(source, CompactEmbedding) else source.weight.detach()
    rows = rows[:, :truncate_dim].to("cpu", torch.float32).contiguous()
    return rows if kind is TableType.FLOAT32 else CompactEmbedding.from_rows(rows, kind)


def check_dimension(truncate_dim: int | None) -> None:
    """Refuse a number of components below 1.

    Raises:
        SettingsError: it is.
    """
    if truncate_dim is not None and truncate_dim < 1:
        raise SettingsError(f"truncate_dim is {truncate_dim}; keep at least 1 component")


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
    words = isinstance(tokenizer, WordTokenizer) and tokenizer.splitter is Splitter.REGEX
    return words or isinstance(tokenizer, SentencePieceTokenizer | SentencePieceSubsetTokenizer)


def stock_tokenizer(tokenizer: Tokenizer) -> tokenizers.Tokenizer | None:
    """The tokenizer as a `tokenizer.json`, for readers without the plugin; None if there is no such thing.

    Raises:
        ModelDirectoryError: no reader could make the tokenizer, or it is a sentencepiece model of another type.
    """
    if tokenizer.kind not in KINDS:
        raise ModelDirectoryError(
            f"a tokenizer of kind {tokenizer.kind!r}, which st_paragram.load cannot make; it knows {', '.join(KINDS)}"
        )
    if isinstance(tokenizer, SentencePieceTokenizer | SentencePieceSubsetTokenizer):  # rows of dropped pieces are zero
        return convert_tokenizer(tokenizer.content, lower_case=tokenizer.lower_case)
    if isinstance(tokenizer, WordTokenizer) and opens_in_stock(tokenizer):
        return convert_words(tokenizer)
    return None


def _write_stock_files(
    tokenizer: tokenizers.Tokenizer, settings: dict[str, Any], unit_vectors: bool, folder: Path
) -> None:
    table = torch.zeros(tokenizer.get_vocab_size(), 1)  # stands in for the table, which is written afterwards
    modules: list[nn.Module] = [StaticEmbedding(tokenizer, embedding_weights=table)]
    modules += [Normalize()] if unit_vectors else []
    stock = SentenceTransformer(modules=modules, device="cpu", **settings)
    stock.save_pretrained(str(folder), create_model_card=False)
    # By their public aliases, not by their places inside sentence-transformers 6.
    name_modules(folder, "sentence_transformers.models")


def read(folder: Path, values: dict[str, Any], truncate_dim: int | None = None) -> TokenEmbedding:
    """Read tokenizer and table.

    Args:
        folder: of the model.
        values: what its `st_paragram.json` says.
        truncate_dim: read the first components of each row only.

    Returns:
        The first module. A table of float16 or int8 stays what it is, and becomes float32 only in an installation
        without compiled kernels.

    Raises:
        ModelDirectoryError: a file is missing or damaged.
        SettingsError: a `truncate_dim` below 1.
    """
    check_dimension(truncate_dim)
    stored = checked(folder, values)
    tokenizer = read_tokenizer(folder, stored)
    table = weights_file.read_weights(
        file_of(folder, WEIGHTS_FILE),
        (len(tokenizer), stored.embedding_dimension),
        TableType(stored.table_type),
        tokenizer.unknown_id,
        truncate_dim,
    )
    return token_embedding(tokenizer, weights=table, dropout=stored.dropout)


def checked(folder: Path, values: dict[str, Any]) -> AveragingValues:
    """What `st_paragram.json` says, with every value of its type.

    Raises:
        ModelDirectoryError: an entry is missing, unknown or wrong.
    """
    try:
        stored = AveragingValues(**values)
        TableType.of(stored.table_type)
        return stored
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        name, seen = first["loc"][0], first["input"]
        reason = f"{name} is missing" if first["type"] == "missing" else f"{name} is {short(seen)}: {first['msg']}"
        raise damaged(folder, reason) from error
    except (SettingsError, *DAMAGED) as error:
        raise damaged(folder, one_line(error)) from error


def read_tokenizer(folder: Path, stored: AveragingValues) -> Tokenizer:
    """The tokenizer of a folder.

    Raises:
        ModelDirectoryError: its file is missing or damaged, or is another's.
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
    """Prompts, similarity and the like, as arguments of a pipeline; none where the stock reader's file is missing.

    Raises:
        ModelDirectoryError: the file is damaged.
    """
    path = folder / STOCK_CONFIG_FILE
    if not path.is_file():
        return {}
    try:
        settings = _PipelineSettings(**read_json(path))
        return {name: value for name in PIPELINE_SETTINGS if (value := getattr(settings, name)) is not None}
    except DAMAGED as error:
        raise ModelDirectoryError(f"{path}: not readable ({one_line(error)}); save the model again") from error


def read_weights(folder: Path, into: SentenceTransformer) -> None:
    """Fill a pipeline's table, float32, from a folder that `write` made.

    Raises:
        ModelDirectoryError: the weights are missing, damaged or of another shape or type.
    """
    embedding = embedding_of(into)
    weight = embedding.embedding.weight
    path, shape = file_of(folder, WEIGHTS_FILE), (weight.shape[0], weight.shape[1])
    table = weights_file.read_weights(path, shape, TableType.FLOAT32, embedding.tokenizer.unknown_id)
    with torch.no_grad():
        weight.copy_(cast("Tensor", table))
