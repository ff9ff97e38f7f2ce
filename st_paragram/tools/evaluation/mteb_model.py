"""Describe a model to mteb, which stores its results by the model's name and version."""

from __future__ import annotations

import math
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import langcodes
from langcodes.data_dicts import LIKELY_SUBTAGS

from st_paragram.core.extras import require
from st_paragram.core.model_directory.configuration import CONFIG_FILE
from st_paragram.core.model_directory.find import find
from st_paragram.core.model_directory.model_files import model_digest

if TYPE_CHECKING:
    from mteb.models import ModelMeta

# Codes that are not languages: several, none, undetermined, uncoded.
_NO_LANGUAGES = ("mul", "zxx", "und", "mis")
# endings of the names of embedding matrices
_EMBEDDINGS = ("embedding.weight", "embeddings.weight")
# in the table of sources on a model card
_TATOEBA = re.compile(r"^\| (pivot_)?tatoeba", re.MULTILINE)


def model_meta(name: str, **fields: Any) -> ModelMeta:
    """Return mteb's metadata of any model that `st_paragram.load` reads, with a loader for mteb.

    Our models are named `st-paragram/<directory>`, other directories `local/<directory>`. Models
    from the hub keep their names. The revision is the start of the SHA-256 of everything that
    determines the embeddings, so other weights count as another model, and copies as the same
    model. The model card gives languages and license, as far as mteb knows them; the date of the
    weights is the release date. Further arguments, such as `reference` (a URL) or
    `training_datasets` (mteb's task names), replace these values.

    Examples:
        >>> from st_paragram import model_meta
        >>> model_meta("p-sp-es").name  # doctest: +SKIP
        'st-paragram/p-sp-es'
    """
    require("mteb", "eval")
    from mteb.models import ModelMeta

    return ModelMeta(**{**_fields(name), **fields})


def _fields(name: str) -> dict[str, Any]:
    """Return mteb's metadata of a model."""
    from huggingface_hub import ModelCard
    from mteb.models import SentenceTransformerEncoderWrapper
    from mteb.models.model_meta import ScoringFunction

    import st_paragram

    folder = find(name)
    hub_id = name.partition("@")[0] if folder.parent.name == "snapshots" else ""  # hub cache
    model = st_paragram.load(name)
    weights = model.state_dict()
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    counts = {key: _count(tensor) for key, tensor in weights.items()}
    embeddings = [count for key, count in counts.items() if key.endswith(_EMBEDDINGS)]
    written = max(path.stat().st_mtime for path in folder.rglob("*.safetensors"))
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    data: Any = ModelCard(text).data
    max_tokens = model.max_seq_length

    def load_model(*_: Any, **__: Any) -> SentenceTransformerEncoderWrapper:
        return SentenceTransformerEncoderWrapper(st_paragram.load(name))

    return {
        "loader": load_model,
        "name": hub_id or _local_name(folder),
        "revision": model_digest(folder)[:12],
        "release_date": date.fromtimestamp(written).isoformat(),
        "languages": _mteb_languages(data.language),
        "license": _mteb_license(data.license),
        "n_parameters": sum(counts.values()),
        "n_embedding_parameters": sum(embeddings),
        "memory_usage_mb": round(size / 2**20, 1),
        "max_tokens": math.inf if max_tokens is None else max_tokens,
        "embed_dim": model.get_embedding_dimension(),
        "open_weights": True,
        "public_training_code": None,
        "public_training_data": None,
        "framework": ["Sentence Transformers", "PyTorch", "safetensors"],
        "similarity_fn_name": ScoringFunction.COSINE,
        "reference": f"https://huggingface.co/{hub_id}" if hub_id else None,
        "use_instructions": False,
        "training_datasets": _training_datasets(folder, text),
    }


def _is_ours(folder: Path) -> bool:
    return (folder / CONFIG_FILE).is_file()


def _local_name(folder: Path) -> str:
    """Return the name of a model that is not on the hub: that of its folder with an owner."""
    owner = "st-paragram" if _is_ours(folder) else "local"
    return f"{owner}/{folder.absolute().name}"


def _count(tensor: Any) -> int:
    """Return the number of weights in a tensor; a byte has two of 4 bits."""
    numel: int = tensor.numel()
    return 2 * numel if str(tensor.dtype) == "torch.uint8" else numel


def _training_datasets(folder: Path, card: str) -> set[str] | None:
    """Return mteb's names of the training data; None if they are unknown."""
    if _TATOEBA.search(card):
        return {"Tatoeba"}
    return set() if _is_ours(folder) else None


def _mteb_languages(codes: Any) -> list[str] | None:
    """Return the languages of a model card as mteb names them; None if it knows none."""
    names = set()
    for code in codes if isinstance(codes, list) else [codes]:
        language = mteb_language(code)
        if language is not None:
            names.add(language)
    return sorted(names) or None


def mteb_language(code: Any) -> str | None:
    """Return a language of a model card as mteb names it: "hin-Deva" for hi.

    These are codes of ISO 639-3 and, for scripts, of ISO 15924. A code without a script gets the
    language's most likely script, or none if Unicode does not know one. None is returned for codes
    that are not languages, and for private and unknown codes.
    """
    from mteb.languages import ISO_TO_LANGUAGE, ISO_TO_SCRIPT

    if code is False:  # `no`, Norwegian, without quotation marks in YAML
        code = "no"
    try:
        language = langcodes.Language.get(str(code))
        name = language.to_alpha3()
        # zh for cmn
        wider = langcodes.Language.get(langcodes.standardize_tag(str(code), macro=True))
    except (ValueError, LookupError):  # not a language tag, and not a language
        return None
    if name in _NO_LANGUAGES or name not in ISO_TO_LANGUAGE:
        return None
    script = language.script
    for tag in (language, wider):
        # of other languages, `maximize` guesses English's script
        if script is None and tag.language in LIKELY_SUBTAGS:
            script = tag.maximize().script
    return f"{name}-{script}" if script in ISO_TO_SCRIPT else name


def _mteb_license(license: Any) -> str | None:
    """Return a license that mteb accepts, one that it knows or an address, or None."""
    from mteb.types import Licenses

    if not isinstance(license, str):
        return None
    is_accepted = license in get_args(Licenses) or license.startswith("https://")
    return license if is_accepted else None
