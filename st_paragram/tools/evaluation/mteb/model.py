"""A model directory as a model of mteb, so that mteb files results under its name and the state of its weights."""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.encoding.directory import CONFIG_FILE, fingerprint
from st_paragram.core.encoding.find import find
from st_paragram.core.encoding.models import batch_size as default_batch_size
from st_paragram.core.encoding.record import read_training_record
from st_paragram.core.extras import require

if TYPE_CHECKING:
    from mteb.models import ModelMeta
    from sentence_transformers import SentenceTransformer

REVISION_DIGITS = 12
_LANGUAGES = {
    "ar": "ara-Arab",
    "de": "deu-Latn",
    "en": "eng-Latn",
    "es": "spa-Latn",
    "fr": "fra-Latn",
    "ru": "rus-Cyrl",
    "tr": "tur-Latn",
    "zh": "cmn-Hans",
}


def import_mteb() -> ModuleType:
    """The package mteb, which takes seconds to import.

    Raises:
        MissingExtraError: it is not installed.
    """
    return require("mteb", "eval")


def model_meta(name: str) -> ModelMeta:
    """What mteb wants to know of a model, with the loader that `mteb.get_model` calls.

    A model of ours is called `st-paragram/<directory>`, another directory `local/<directory>`, a model of the hub what
    it is called there. The revision is the start of the SHA-256 of what determines the embeddings, so that other
    weights under the same name are another model. No path of this machine is kept in it: mteb writes it next to
        results.

    Args:
        name: whatever `st_paragram.load` reads.

    Raises:
        MissingExtraError: mteb is not installed.
        ModelDirectoryError: there is no such model, or it cannot be read.

    Example:
        >>> from st_paragram import model_meta
        >>> model_meta("p-sp-es").name  # doctest: +SKIP
        'st-paragram/p-sp-es'
    """
    import_mteb()
    from mteb.models.model_meta import ModelMeta, ScoringFunction

    model = _load(name)
    folder = Path(name) if Path(name).is_dir() else find(name)
    ours = (folder / CONFIG_FILE).is_file()
    numbers = sum(tensor.numel() for tensor in model.state_dict().values())
    size = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    training = read_training_record(folder)
    languages = [_LANGUAGES[code] for code in (training.languages if training else ()) if code in _LANGUAGES]
    known: dict[str, Any] = {
        "loader": partial(MtebEncoder, path=name),
        "name": _model_name(name, folder, ours),
        "revision": _revision(folder, ours),
        "languages": sorted(set(languages)) or None,
        "n_parameters": numbers,
        "n_embedding_parameters": numbers if ours else None,
        "memory_usage_mb": round(size / 2**20, 1),
        "max_tokens": model.max_seq_length or math.inf,
        "embed_dim": model.get_embedding_dimension(),
        "framework": ["Sentence Transformers", "PyTorch"],
        "similarity_fn_name": ScoringFunction.COSINE,
        "use_instructions": False,
    }
    return ModelMeta.create_empty(overwrites=known)


def register(name: str) -> ModelMeta:
    """Enter a model into mteb's registry: `mteb.get_model(meta.name)` finds it from now on in this process.

    A model of the same name that was entered before is replaced. Arguments and errors as of `model_meta`.
    """
    meta = model_meta(name)
    from mteb.models.model_implementations import MODEL_REGISTRY

    MODEL_REGISTRY[str(meta.name)] = meta
    return meta


class MtebEncoder:
    """What mteb asks of a model, around a SentenceTransformer: its `encode` and its similarity.

    mteb's own wrapper would read the metadata of a hub's model out of it, with many warnings.

    Args:
        name: in mteb's registry; not needed.
        revision: not needed.
        device: torch device; chosen by sentence-transformers if not given.
        path: whatever `st_paragram.load` reads.
    """

    mteb_model_meta: ModelMeta  # set by mteb

    def __init__(self, name: str, revision: str | None = None, *, device: str | None = None, path: str) -> None:
        model = _load(path)
        self.model = model.to(device) if device else model

    def encode(
        self,
        inputs: Iterable[Mapping[str, Any]],
        *,
        batch_size: int | None = None,
        show_progress_bar: bool = False,
        **described: object,
    ) -> NDArray[np.float32]:
        """Embeddings, float32 (n, D), of the texts of batches; what mteb says of task and split is not needed."""
        texts = [text for batch in inputs for text in batch["text"]]
        at_once = batch_size or default_batch_size(self.model)
        vectors: Any = self.model.encode(texts, batch_size=at_once, show_progress_bar=show_progress_bar)
        return np.asarray(vectors, dtype=np.float32)

    def similarity(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
        """Similarity of each row with each, (n, m)."""
        return self.model.similarity(first, second).numpy()

    def similarity_pairwise(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
        """Similarity of corresponding rows, (n,)."""
        return self.model.similarity_pairwise(first, second).numpy()


def _load(name: str) -> SentenceTransformer:
    """A model of ours, or another directory, as a SentenceTransformer: mteb asks for more than embeddings."""
    models = importlib.import_module("st_paragram.learning.models.directory")  # by name: mteb needs torch itself
    loaded: SentenceTransformer = models.load(name)
    return loaded


def _model_name(name: str, folder: Path, ours: bool) -> str:
    if folder.parent.name == "snapshots":  # of the hub's cache
        return name.partition("@")[0]
    return f"{'st-paragram' if ours else 'local'}/{folder.absolute().name}"


def _revision(folder: Path, ours: bool) -> str:
    if ours:
        return fingerprint(folder)[:REVISION_DIGITS]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            digest.update(str(path.relative_to(folder)).encode())
            with path.open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()[:REVISION_DIGITS]
