"""What mteb wants to know of a model, so that it files results under the model's name and the state of its weights."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.encoding.directory import CONFIG_FILE, fingerprint
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.record import read_training_record
from st_paragram.core.extras import require
from st_paragram.core.files import file_digest

if TYPE_CHECKING:
    from mteb.models import ModelMeta

_DIGITS = 12  # of a revision
_SCRIPTS = {"ar": "ara-Arab", "de": "deu-Latn", "en": "eng-Latn", "es": "spa-Latn", "fr": "fra-Latn", "ru": "rus-Cyrl"}
_SCRIPTS |= {"tr": "tur-Latn", "zh": "cmn-Hans"}


def model_meta(name: str) -> ModelMeta:
    """Metadata of any model that `st_paragram.load` reads, with the loader that `mteb.evaluate` calls.

    A model of ours is called `st-paragram/<directory>`, another directory `local/<directory>`, a model of the hub what
    it is called there. The revision is the start of the SHA-256 of what determines the embeddings, so that other
    weights under the same name are another model.

    Example:
        >>> from st_paragram import model_meta
        >>> model_meta("p-sp-es").name  # doctest: +SKIP
        'st-paragram/p-sp-es'
    """
    require("mteb", "eval")
    from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper
    from mteb.models.model_meta import ScoringFunction

    folder = Path(name) if Path(name).is_dir() else find(name)
    model = _load(name)
    ours = (folder / CONFIG_FILE).is_file()
    weights = list(model.state_dict().values())
    training = read_training_record(folder)
    languages = {_SCRIPTS[code] for code in (training.languages if training else ()) if code in _SCRIPTS}
    called = f"{'st-paragram' if ours else 'local'}/{folder.absolute().name}"
    known: dict[str, Any] = {
        "loader": lambda *_, **__: SentenceTransformerEncoderWrapper(_load(name)),
        "name": name.partition("@")[0] if folder.parent.name == "snapshots" else called,  # of the hub's cache
        "revision": _revision(folder, ours),
        "languages": sorted(languages) or None,
        "n_parameters": sum(tensor.numel() for tensor in weights),
        "memory_usage_mb": round(sum(tensor.numel() * tensor.element_size() for tensor in weights) / 2**20, 1),
        "max_tokens": model.max_seq_length,
        "embed_dim": model.get_embedding_dimension(),
        "framework": ["Sentence Transformers", "PyTorch"],
        "similarity_fn_name": ScoringFunction.COSINE,
        "use_instructions": False,
    }
    return ModelMeta.create_empty(overwrites=known)


def _load(name: str) -> Any:  # noqa: ANN401 - a SentenceTransformer; by name, since mteb alone needs torch here
    return importlib.import_module("st_paragram.learning.models.directory").load(name)


def _revision(folder: Path, ours: bool) -> str:
    if ours:
        return fingerprint(folder)[:_DIGITS]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".md"]
    parts = "".join(f"{path.relative_to(folder)} {file_digest(path)}\n" for path in files)
    return hashlib.sha256(parts.encode()).hexdigest()[:_DIGITS]
