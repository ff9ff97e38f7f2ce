"""What sentence-transformers keeps of an averaging pipeline besides its weights.

The pipeline is `StaticEmbedding`, or this package's `TokenEmbedding` and `MeanPool`, and perhaps `Normalize`.

Format: `modules.json` and `config_sentence_transformers.json` of sentence-transformers 6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.configuration import STOCK_CONFIG_FILE
from st_paragram.core.files import write_json, write_text

if TYPE_CHECKING:
    import tokenizers

MODULES_FILE = "modules.json"
# By their public aliases, not by their places inside sentence-transformers 6.
_PACKAGE = "sentence_transformers.models"
_POOL = "1_MeanPool"
_NORMALIZE_CONFIG = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
_VERSIONS = {"pytorch": "torch", "sentence_transformers": "sentence-transformers", "transformers": "transformers"}


@dataclass(frozen=True)
class FirstModule:
    """What `TokenEmbedding` of this package needs besides its weights; the names are those of its file."""

    embedding_dimension: int
    tokenizer_kind: str
    tokenizer_options: dict[str, Any]
    dropout: float


def write(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any], unit_vectors: bool, folder: Path) -> None:
    """Write the files; arguments as in `AveragingModel`."""
    _write_modules({"": f"{_PACKAGE}.StaticEmbedding"}, unit_vectors, folder)
    _write_settings(settings, folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def write_own(first: FirstModule, settings: Mapping[str, Any], unit_vectors: bool, folder: Path) -> None:
    """Write files that name modules of this package, for weights that `StaticEmbedding` cannot read."""
    _write_modules({"": "st_paragram.TokenEmbedding", _POOL: "st_paragram.MeanPool"}, unit_vectors, folder)
    _write_settings(settings, folder)
    write_json(folder / "token_embedding_config.json", asdict(first), indent=2)
    (folder / _POOL).mkdir(exist_ok=True)
    write_json(folder / _POOL / "mean_pool_config.json", {"embedding_dimension": first.embedding_dimension}, indent=2)


def _write_modules(kinds: Mapping[str, str], unit_vectors: bool, folder: Path) -> None:
    """Name modules by their folders, and put `Normalize` behind them for unit vectors."""
    if unit_vectors:
        name = f"{len(kinds)}_Normalize"
        kinds = {**kinds, name: f"{_PACKAGE}.Normalize"}
        (folder / name).mkdir(exist_ok=True)
        write_text(folder / name / "config.json", json.dumps(_NORMALIZE_CONFIG, indent=4))
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(kinds.items())]
    write_text(folder / MODULES_FILE, json.dumps(modules, indent=2) + "\n")


def _write_settings(settings: Mapping[str, Any], folder: Path) -> None:
    config = {
        "__version__": _versions(),
        "default_prompt_name": settings["default_prompt_name"],
        "model_type": "SentenceTransformer",
        "prompts": settings["prompts"],
        "similarity_fn_name": settings["similarity_fn_name"],
    }
    if settings["truncate_dim"] is not None:
        config["truncate_dim"] = settings["truncate_dim"]
    write_text(folder / STOCK_CONFIG_FILE, json.dumps(config, indent=2, sort_keys=True))


def _versions() -> dict[str, str]:
    """Of the packages that would have written the files, as far as they are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name, package in _VERSIONS.items():
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            continue
    return found
