"""Describe a model to mteb, so that mteb stores its results under the model's name and the version of its weights."""

from __future__ import annotations

import importlib
import re
from datetime import date
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.directory import CONFIG_FILE, fingerprint
from st_paragram.core.encoding.find import find
from st_paragram.core.extras import require
from st_paragram.core.files import digest, file_digest

if TYPE_CHECKING:
    from mteb.models import ModelMeta

_SCRIPTS = {"ar": "ara-Arab", "de": "deu-Latn", "en": "eng-Latn", "es": "spa-Latn", "fr": "fra-Latn", "ru": "rus-Cyrl"}
_SCRIPTS |= {"tr": "tur-Latn", "zh": "zho-Hans"}
_TATOEBA = re.compile(r"^\| (pivot_)?tatoeba", re.MULTILINE)  # in the table of sources on a model card


def model_meta(name: str, **known: Any) -> ModelMeta:  # noqa: ANN401
    """Return mteb's metadata of any model that `st_paragram.load` reads, with the loader that `mteb.evaluate` calls.

    Our models are named `st-paragram/<directory>`, other directories `local/<directory>`. Models from the hub keep
    their names. The revision is the start of the SHA-256 of everything that determines the embeddings, so other weights
    count as another model. The model card gives languages and license; the date of the weights is the release date.
    Fields in `known`, such as `reference` (a URL) or `training_datasets` (mteb's task names), replace these values.

    Example:
        >>> from st_paragram import model_meta
        >>> model_meta("p-sp-es").name  # doctest: +SKIP
        'st-paragram/p-sp-es'
    """
    require("mteb", "eval")
    from huggingface_hub import ModelCard
    from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper
    from mteb.models.model_meta import ScoringFunction

    folder, model = find(name), _load(name)
    ours = (folder / CONFIG_FILE).is_file()
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".md")
    weights = list(model.state_dict().values())
    local_name = f"{'st-paragram' if ours else 'local'}/{folder.absolute().name}"
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    data: Any = ModelCard(text).data
    codes = [data.language] if isinstance(data.language, str) else data.language or []
    written = max(path.stat().st_mtime for path in folder.rglob("*.safetensors"))
    fields: dict[str, Any] = {
        "loader": lambda *_, **__: SentenceTransformerEncoderWrapper(_load(name)),
        "name": name.partition("@")[0] if folder.parent.name == "snapshots" else local_name,  # hub cache
        "revision": (fingerprint(folder) if ours else digest(*map(file_digest, files)))[:12],
        "release_date": date.fromtimestamp(written).isoformat(),
        "languages": sorted(_SCRIPTS[code] for code in codes if code in _SCRIPTS) or None,
        "license": data.license,
        "n_parameters": sum(tensor.numel() for tensor in weights),
        "memory_usage_mb": round(sum(tensor.numel() * tensor.element_size() for tensor in weights) / 2**20, 1),
        "max_tokens": model.max_seq_length,
        "embed_dim": model.get_embedding_dimension(),
        "open_weights": True,
        "public_training_code": None,
        "public_training_data": None,
        "framework": ["Sentence Transformers", "PyTorch", "safetensors"],
        "similarity_fn_name": ScoringFunction.COSINE,
        "use_instructions": False,
        "training_datasets": {"Tatoeba"} if _TATOEBA.search(text) else set() if ours else None,
    }
    return ModelMeta(**{**fields, **known})


def _load(name: str) -> Any:  # noqa: ANN401 - a SentenceTransformer; imported by name, since only mteb needs torch here
    return importlib.import_module("st_paragram.learning.models.directory").load(name)
