"""One model directory for two readers.

Stock reader, `SentenceTransformer(path)`: `modules.json` (one `StaticEmbedding`), `config_sentence_transformers.json`,
`tokenizer.json`, `model.safetensors`. Needs no plugin and no flag. Plugin's reader, `st_paragram.load(path)`:
`st_paragram.json` and `sentencepiece.model` beside the same weights.

`model.safetensors` holds `embedding.weight`, float32 (V, D), and `unknown_embedding`, float32 (D,). The row of the
unknown piece is zero in the former, since the stock reader averages over unknown pieces where the plugin drops them:
directions, hence cosines, are the same. The plugin puts the row back for texts of nothing but unknown pieces.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import nn

from st_paragram.data.vocabulary import Segmentation, Vocabulary
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.modules.mean_pool import MeanPool
from st_paragram.modules.sentencepiece_embedding import MODEL_FILE, WEIGHTS_FILE, SentencePieceEmbedding
from st_paragram.paths import cache_folder
from st_paragram.tokenizer_conversion import convert_tokenizer

CONFIG_FILE = "st_paragram.json"
FORMAT_VERSION = 1
HOME_VARIABLE = "ST_PARAGRAM_HOME"


@dataclass(frozen=True)
class _Config:
    """Contents of `st_paragram.json`."""

    format_version: int
    embedding_dimension: int
    vocabulary_size: int
    lower_case: bool
    segmentation: str
    dropout: float


def pipeline(embedding: SentencePieceEmbedding, device: str | None = None) -> SentenceTransformer:
    """The native pipeline: `embedding`, then `MeanPool`; cosine similarity."""
    modules: list[nn.Module] = [embedding, MeanPool(embedding.embedding_dimension)]
    return SentenceTransformer(modules=modules, device=device, similarity_fn_name="cosine")


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


def save(model: SentenceTransformer, path: str | Path, card: str = "", overwrite: bool = False) -> Path:
    """Save a native pipeline under `path`, all of it or nothing.

    Args:
        model: a pipeline as `pipeline` makes it.
        path: the directory to make.
        card: text of the model card, `README.md`.
        overwrite: replace an existing directory.

    Returns:
        The directory.

    Raises:
        ModelDirectoryError: the directory exists, or the pipeline is another one.
    """
    path = Path(path)
    check_free(path, overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        new, old = Path(folder) / "new", Path(folder) / "old"
        write_files(model, new)
        if card:
            (new / "README.md").write_text(card, encoding="utf-8")
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
    vocabulary = embedding_of(model).vocabulary
    convert_tokenizer(vocabulary.model_proto, lower_case=vocabulary.lower_case)


def write_files(model: SentenceTransformer, folder: Path) -> None:
    """Write a directory's files for both readers, without a model card, into `folder`."""
    embedding = embedding_of(model)
    vocabulary = embedding.vocabulary
    table = embedding.embedding.weight.detach().to("cpu", torch.float32).clone()
    unknown = table[vocabulary.unknown_id].clone()
    table[vocabulary.unknown_id] = 0
    tokenizer = convert_tokenizer(vocabulary.model_proto, lower_case=vocabulary.lower_case)
    folder.mkdir(parents=True, exist_ok=True)
    stock = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_weights=table)], device="cpu", similarity_fn_name="cosine"
    )
    stock.save_pretrained(str(folder), create_model_card=False)
    _name_portably(folder / "modules.json")
    save_file({"embedding.weight": table, "unknown_embedding": unknown}, folder / WEIGHTS_FILE)
    (folder / MODEL_FILE).write_bytes(vocabulary.model_proto)
    config = _Config(
        FORMAT_VERSION,
        embedding.embedding_dimension,
        len(vocabulary),
        vocabulary.lower_case,
        vocabulary.segmentation.value,
        embedding.dropout,
    )
    (folder / CONFIG_FILE).write_text(json.dumps(asdict(config), indent=2) + "\n", encoding="utf-8")


def _name_portably(modules: Path) -> None:
    """Name `StaticEmbedding` by its public alias, not by its place inside sentence-transformers 6."""
    entries = json.loads(modules.read_text(encoding="utf-8"))
    for entry in entries:
        entry["type"] = "sentence_transformers.models.StaticEmbedding"
    modules.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")


def load(name: str | Path, device: str | None = None) -> SentenceTransformer:
    """Load a model directory as the native pipeline.

    Args:
        name: a path, a name under `$ST_PARAGRAM_HOME` or the user's cache, or a hub id `owner/name`.
        device: torch device; chosen by sentence-transformers if not given.

    Returns:
        A SentenceTransformer of `SentencePieceEmbedding` and `MeanPool`.

    Raises:
        ModelDirectoryError: not found (the message lists where it looked), or a file is missing or damaged.
    """
    folder = find(name)
    config = _read_config(folder)
    vocabulary = _read_vocabulary(folder, config)
    embedding = SentencePieceEmbedding(
        vocabulary, weights=torch.empty(len(vocabulary), config.embedding_dimension), dropout=config.dropout
    )
    read_weights(folder, into=embedding)
    model = pipeline(embedding, device)
    model.eval()
    return model


def find(name: str | Path) -> Path:
    """The directory that `load` reads for `name`; arguments and errors as there."""
    name = str(name)
    places = [Path(name), *(folder / name for folder in homes())]
    for place in places:
        if place.is_dir():
            return place
    looked = ", ".join(str(place) for place in places)
    if name.count("/") == 1 and not name.startswith((".", "/")):
        return _from_hub(name, looked)
    raise ModelDirectoryError(
        f"no model {name!r}; looked for {looked}; give a path or train it with recipes/train_bitext.py"
    )


def fingerprint(folder: Path) -> str:
    """What tells a model directory from another: SHA-256 of its weights, vocabulary and configuration."""
    digest = hashlib.sha256()
    for name in (CONFIG_FILE, MODEL_FILE, WEIGHTS_FILE):
        with _file(folder, name).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def only_model_here() -> str:
    """The one model directory `p-sp-*` of the current folder.

    Raises:
        ModelDirectoryError: there is none, or more than one.
    """
    found = sorted(path.parent.name for path in Path().glob(f"p-sp-*/{CONFIG_FILE}"))
    if len(found) != 1:
        seen = f"{len(found)} models here ({', '.join(found)})" if found else "no model p-sp-* in this folder"
        raise ModelDirectoryError(f"{seen}; choose one with --model")
    return found[0]


def homes() -> list[Path]:
    """Folders in which models are found by name: `$ST_PARAGRAM_HOME`, then the user's cache."""
    home = os.environ.get(HOME_VARIABLE)
    return [Path(home), cache_folder()] if home else [cache_folder()]


def _from_hub(name: str, looked: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=[CONFIG_FILE, MODEL_FILE, WEIGHTS_FILE]))
    except Exception as error:  # the hub client raises its own, requests' and OSError; the user needs one line
        reason = str(error).strip().split("\n")[0]
        raise ModelDirectoryError(f"no model {name!r}; looked for {looked} and on the hub ({reason})") from error


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
        if version != FORMAT_VERSION:
            raise ModelDirectoryError(
                f"{path}: format version {version}, this st_paragram reads {FORMAT_VERSION}; update it"
            )
        config = _Config(**values)
        for field in fields(_Config):
            value = getattr(config, field.name)
            if type(value).__name__ != field.type and not (field.type == "float" and type(value) is int):
                raise ValueError(f"{field.name} is {value!r}")
        return config
    except (ValueError, TypeError, KeyError) as error:
        raise ModelDirectoryError(
            f"{path}: not a configuration of st_paragram ({error}); save the model again"
        ) from error


def _read_vocabulary(folder: Path, config: _Config) -> Vocabulary:
    path = _file(folder, MODEL_FILE)
    try:
        vocabulary = Vocabulary(path.read_bytes(), config.lower_case, Segmentation(config.segmentation))
    except (SettingsError, ValueError) as error:
        raise ModelDirectoryError(f"{path}: {error}; save the model again") from error
    if len(vocabulary) != config.vocabulary_size:
        raise ModelDirectoryError(f"{path}: {len(vocabulary)} pieces, {CONFIG_FILE} says {config.vocabulary_size}")
    return vocabulary


def read_weights(folder: Path, into: SentencePieceEmbedding) -> None:
    """Fill an embedding's table from a model directory.

    Raises:
        ModelDirectoryError: the weights are missing, damaged or of another shape.
    """
    path = _file(folder, WEIGHTS_FILE)
    try:
        tensors = load_file(path)
        table, unknown = tensors["embedding.weight"], tensors["unknown_embedding"]
    except (SafetensorError, KeyError) as error:
        raise ModelDirectoryError(f"{path}: not the weights of a st_paragram model ({error}); save it again") from error
    if unknown.shape != table.shape[1:] or not torch.isfinite(table).all() or not torch.isfinite(unknown).all():
        raise ModelDirectoryError(f"{path}: damaged weights (NaN, or parts of different sizes); save the model again")
    if table.shape != into.embedding.weight.shape:
        expected = tuple(into.embedding.weight.shape)
        raise ModelDirectoryError(f"{path}: a table of shape {tuple(table.shape)}, expected {expected}")
    with torch.no_grad():
        into.embedding.weight.copy_(table)
        into.embedding.weight[into.vocabulary.unknown_id] = unknown
