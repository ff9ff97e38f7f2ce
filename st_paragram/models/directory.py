"""One model directory for two readers.

Stock reader, `SentenceTransformer(path)`: `modules.json` (one `StaticEmbedding`), `config_sentence_transformers.json`,
`tokenizer.json`, `model.safetensors`. Needs no plugin and no flag. Plugin's reader, `st_paragram.load(path)`:
`st_paragram.json` and `sentencepiece.model` beside the same weights.

`model.safetensors` (see `weights_file`) holds the table, float32, float16 or int8 (V, D), and `unknown_embedding`,
float32 (D,). The row of the unknown piece is zero in the former, since the stock reader averages over unknown pieces
where the plugin drops them: directions, hence cosines, are the same. The plugin puts the row back for texts of nothing
but unknown pieces.

Format version 1 of `st_paragram.json` knows float32 alone and is still written for it; version 2 names the type.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import Tensor, nn

from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.models import weights_file
from st_paragram.models.encoder import ParagramEncoder
from st_paragram.models.find import CONFIG_FILE, find
from st_paragram.models.training_record import TRAINING_FILE, TrainingRecord
from st_paragram.models.weights_file import write_weights
from st_paragram.modules.compact_embedding import CompactEmbedding, TableType
from st_paragram.modules.mean_pool import MeanPool
from st_paragram.modules.sentencepiece_embedding import MODEL_FILE, WEIGHTS_FILE, SentencePieceEmbedding
from st_paragram.tokenizers.sentencepiece import Segmentation, SentencePieceTokenizer
from st_paragram.tokenizers.stock_conversion import convert_tokenizer

FORMAT_VERSION = 2

_NOTES = {
    TableType.FLOAT16: """\
## Table of float16

Half the size of float32. `st_paragram.load` averages in float32; a stock `SentenceTransformer` computes and returns
float16.
""",
    TableType.INT8: """\
## Table of int8

A quarter of the size of float32: 8-bit integers with one scale a row. `st_paragram.load` keeps them as they are in
memory. A stock `SentenceTransformer` reads them as float32 since sentence-transformers 6.2; an older one stops with
an error about tensors that "can require gradients".
""",
}


@dataclass(frozen=True)
class _Config:
    """Contents of `st_paragram.json`."""

    format_version: int
    embedding_dimension: int
    vocabulary_size: int
    lower_case: bool
    segmentation: str
    dropout: float
    table_type: str = TableType.FLOAT32.value

    def to_json(self) -> str:
        """The file's text."""
        values = asdict(self)
        if self.format_version == 1:
            del values["table_type"]
        return json.dumps(values, indent=2) + "\n"


def pipeline(embedding: SentencePieceEmbedding, device: str | None = None) -> ParagramEncoder:
    """The native pipeline: `embedding`, then `MeanPool`; cosine similarity."""
    modules: list[nn.Module] = [embedding, MeanPool(embedding.embedding_dimension)]
    return ParagramEncoder(modules=modules, device=device, similarity_fn_name="cosine")


def embedding_of(model: SentenceTransformer) -> SentencePieceEmbedding:
    """The first module of a native pipeline.

    Raises:
        ModelDirectoryError: another pipeline, which a model directory cannot hold.
    """
    kinds = [type(module).__name__ for module in model]
    if len(kinds) != 2 or not isinstance(model[0], SentencePieceEmbedding) or not isinstance(model[1], MeanPool):
        raise ModelDirectoryError(
            f"a model directory holds SentencePieceEmbedding and MeanPool, not {' and '.join(kinds)}"
        )
    return model[0]


def save(
    model: SentenceTransformer,
    path: str | Path,
    card: str = "",
    overwrite: bool = False,
    dtype: TableType | str | None = None,
    truncate_dim: int | None = None,
    training: TrainingRecord | None = None,
) -> Path:
    """Save a native pipeline under `path`, all of it or nothing.

    Args:
        model: a pipeline as `pipeline` makes it.
        path: the directory to make.
        card: text of the model card, `README.md`; a note on a table of float16 or int8 is put at its end.
        overwrite: replace an existing directory.
        dtype: store the table as float32, float16 (half the size) or int8 (a quarter); as it is if not given.
        truncate_dim: store the first components of each row only.
        training: what the training was, kept as `training.json`.

    Returns:
        The directory.

    Raises:
        ModelDirectoryError: the directory exists, or the pipeline is another one.
        SettingsError: no such type, a dimension below 1, or numbers too large for float16.
    """
    path = Path(path)
    table = _table_to_save(embedding_of(model), dtype, truncate_dim)
    check_free(path, overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        new, old = Path(folder) / "new", Path(folder) / "old"
        write_files(model, new, table)
        if isinstance(table, CompactEmbedding):
            card = f"{card}\n{_NOTES[table.kind]}".lstrip("\n")
        if card:
            (new / "README.md").write_text(card, encoding="utf-8")
        if training:
            (new / TRAINING_FILE).write_text(training.as_json(), encoding="utf-8")
        if path.exists():
            path.rename(old)
        new.rename(path)
    return path


def check_free(path: str | Path, overwrite: bool = False) -> None:
    """Refuse early, before hours of training, what `save` would refuse.

    Raises:
        ModelDirectoryError: `path` exists, and is no model directory or must not be overwritten; or it cannot be made.
    """
    path = Path(path)
    blocker = next((folder for folder in path.absolute().parents if folder.exists()), None)
    if not path.name or blocker is None or not blocker.is_dir() or not os.access(blocker, os.W_OK):
        raise ModelDirectoryError(f"{path}: no directory can be made there; choose another place")
    if not path.exists():
        return
    if not overwrite:
        raise ModelDirectoryError(f"{path} exists; choose another name or give --overwrite")
    if not (path / CONFIG_FILE).is_file():
        raise ModelDirectoryError(f"{path} exists and is no model directory of st_paragram; choose another name")


def check_savable(model: SentenceTransformer) -> None:
    """Refuse early, before hours of training, a model that `save` would refuse.

    Raises:
        ModelDirectoryError: another pipeline, or a vocabulary that cannot become a `tokenizer.json`.
    """
    vocabulary = embedding_of(model).tokenizer
    convert_tokenizer(vocabulary.model_proto, lower_case=vocabulary.lower_case)


def _table_to_save(
    embedding: SentencePieceEmbedding, dtype: TableType | str | None, truncate_dim: int | None
) -> Tensor | CompactEmbedding:
    """An embedding's table on the CPU, of another type and with fewer columns if asked for."""
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


def write_files(model: SentenceTransformer, folder: Path, table: Tensor | CompactEmbedding | None = None) -> None:
    """Write a directory's files for both readers, without a model card, into `folder`; `table` in place of its own."""
    embedding = embedding_of(model)
    vocabulary = embedding.tokenizer
    table = _table_to_save(embedding, None, None) if table is None else table
    kind = table.kind if isinstance(table, CompactEmbedding) else TableType.FLOAT32
    tokenizer = convert_tokenizer(vocabulary.model_proto, lower_case=vocabulary.lower_case)
    folder.mkdir(parents=True, exist_ok=True)
    # Zeros stand in for the table, which is written below.
    stock = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_weights=torch.zeros(len(vocabulary), 1))],
        device="cpu",
        similarity_fn_name="cosine",
    )
    stock.save_pretrained(str(folder), create_model_card=False)
    _name_portably(folder / "modules.json")
    write_weights(folder / WEIGHTS_FILE, table, vocabulary.unknown_id)
    (folder / MODEL_FILE).write_bytes(vocabulary.model_proto)
    config = _Config(
        1 if kind is TableType.FLOAT32 else FORMAT_VERSION,
        table.shape[1] if isinstance(table, Tensor) else table.embedding_dim,
        len(vocabulary),
        vocabulary.lower_case,
        vocabulary.segmentation.value,
        embedding.dropout,
        kind.value,
    )
    (folder / CONFIG_FILE).write_text(config.to_json(), encoding="utf-8")


def _name_portably(modules: Path) -> None:
    """Name `StaticEmbedding` by its public alias, not by its place inside sentence-transformers 6."""
    entries = json.loads(modules.read_text(encoding="utf-8"))
    for entry in entries:
        entry["type"] = "sentence_transformers.models.StaticEmbedding"
    modules.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")


def load(name: str | Path, device: str | None = None, truncate_dim: int | None = None) -> ParagramEncoder:
    """Load a model directory as the native pipeline.

    Args:
        name: a path, a name under `$ST_PARAGRAM_HOME` or the user's cache, or a hub id `owner/name`.
        device: torch device; chosen by sentence-transformers if not given.
        truncate_dim: load the first components of each row only; smaller and faster, less exact.

    Returns:
        A SentenceTransformer of `SentencePieceEmbedding` and `MeanPool`. A table of float16 or int8 stays what it is,
        and becomes float32 only in an installation without compiled kernels.

    Raises:
        ModelDirectoryError: not found (the message lists where it looked), or a file is missing or damaged.
        SettingsError: a `truncate_dim` below 1.
    """
    check_dimension(truncate_dim)
    folder = find(name)
    config = _read_config(folder)
    vocabulary = _read_vocabulary(folder, config)
    table = _read_table(folder, config, vocabulary, truncate_dim)
    embedding = SentencePieceEmbedding(vocabulary, weights=table, dropout=config.dropout)
    model = pipeline(embedding, device)
    model.eval()
    return model


def fingerprint(folder: Path) -> str:
    """What tells a model directory from another: SHA-256 of its weights, vocabulary and configuration."""
    digest = hashlib.sha256()
    for name in (CONFIG_FILE, MODEL_FILE, WEIGHTS_FILE):
        with _file(folder, name).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def table_type(folder: Path) -> TableType:
    """How the numbers of a model directory's table are stored."""
    return TableType(_read_config(folder).table_type)


def weights_size(folder: Path) -> int:
    """Bytes of a model directory's weights."""
    return _file(folder, WEIGHTS_FILE).stat().st_size


def _file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        hint = "save the model again with st_paragram, which writes all of its files"
        raise ModelDirectoryError(f"{folder}: {name} is missing; {hint}")
    return folder / name


def _read_config(folder: Path) -> _Config:
    path = _file(folder, CONFIG_FILE)
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = values["format_version"]
        if version not in range(1, FORMAT_VERSION + 1):
            raise ModelDirectoryError(
                f"{path}: format version {version}, this st_paragram reads 1 to {FORMAT_VERSION}; update it"
            )
        config = _Config(**values)
        for field in fields(_Config):
            value = getattr(config, field.name)
            if type(value).__name__ != field.type and not (field.type == "float" and type(value) is int):
                raise ValueError(f"{field.name} is {value!r}")
        TableType.of(config.table_type)
        return config
    except (ValueError, TypeError, KeyError, SettingsError) as error:
        raise ModelDirectoryError(
            f"{path}: not a configuration of st_paragram ({error}); save the model again"
        ) from error


def _read_vocabulary(folder: Path, config: _Config) -> SentencePieceTokenizer:
    path = _file(folder, MODEL_FILE)
    try:
        vocabulary = SentencePieceTokenizer(path.read_bytes(), config.lower_case, Segmentation(config.segmentation))
    except (SettingsError, ValueError) as error:
        raise ModelDirectoryError(f"{path}: {error}; save the model again") from error
    if len(vocabulary) != config.vocabulary_size:
        raise ModelDirectoryError(f"{path}: {len(vocabulary)} pieces, {CONFIG_FILE} says {config.vocabulary_size}")
    return vocabulary


def _read_table(
    folder: Path, config: _Config, vocabulary: SentencePieceTokenizer, truncate_dim: int | None
) -> Tensor | CompactEmbedding:
    return weights_file.read_weights(
        _file(folder, WEIGHTS_FILE),
        (len(vocabulary), config.embedding_dimension),
        TableType(config.table_type),
        vocabulary.unknown_id,
        truncate_dim,
    )


def read_weights(folder: Path, into: SentencePieceEmbedding) -> None:
    """Fill an embedding's table, float32, from a model directory.

    Raises:
        ModelDirectoryError: the weights are missing, damaged or of another shape or type.
    """
    weight = into.embedding.weight
    shape = (weight.shape[0], weight.shape[1])
    table = weights_file.read_weights(_file(folder, WEIGHTS_FILE), shape, TableType.FLOAT32, into.tokenizer.unknown_id)
    with torch.no_grad():
        weight.copy_(cast("Tensor", table))
