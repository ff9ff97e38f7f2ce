"""What sentence-transformers keeps of a pipeline of `StaticEmbedding` and perhaps `Normalize`, besides its weights.

Format: `modules.json` and `config_sentence_transformers.json` of sentence-transformers 6.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.configuration import STOCK_CONFIG_FILE
from st_paragram.core.files import write_text

if TYPE_CHECKING:
    import tokenizers

MODULES_FILE = "modules.json"
# By their public aliases, not by their places inside sentence-transformers 6.
_PACKAGE = "sentence_transformers.models"
_NORMALIZE = "1_Normalize"
_NORMALIZE_CONFIG = {"module_input_name": "sentence_embedding", "module_output_name": "sentence_embedding"}
_VERSIONS = {"pytorch": "torch", "sentence_transformers": "sentence-transformers", "transformers": "transformers"}


def write(tokenizer: tokenizers.Tokenizer, settings: Mapping[str, Any], unit_vectors: bool, folder: Path) -> None:
    """Write the files; arguments as in `AveragingModel`."""
    modules = [{"idx": 0, "name": "0", "path": "", "type": f"{_PACKAGE}.StaticEmbedding"}]
    if unit_vectors:
        modules.append({"idx": 1, "name": "1", "path": _NORMALIZE, "type": f"{_PACKAGE}.Normalize"})
        (folder / _NORMALIZE).mkdir(exist_ok=True)
        write_text(folder / _NORMALIZE / "config.json", json.dumps(_NORMALIZE_CONFIG, indent=4))
    write_text(folder / MODULES_FILE, json.dumps(modules, indent=2) + "\n")
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
    tokenizer.save(str(folder / "tokenizer.json"))


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
