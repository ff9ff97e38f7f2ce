"""Describe a model to mteb, so that mteb stores its results under the model's name and the version
of its weights.
"""

from __future__ import annotations

import importlib
import math
import re
from datetime import date
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
# in the table of sources on a model card
_TATOEBA = re.compile(r"^\| (pivot_)?tatoeba", re.MULTILINE)


def model_meta(name: str, **known: Any) -> ModelMeta:
    """Return mteb's metadata of any model that `st_paragram.load` reads, with the loader that
    `mteb.evaluate` calls.

    Our models are named `st-paragram/<directory>`, other directories `local/<directory>`. Models
    from the hub keep their names. The revision is the start of the SHA-256 of everything that
    determines the embeddings, so other weights count as another model, and copies as the same
    model. The model card gives languages and license, as far as mteb knows them; the date of the
    weights is the release date. Fields in `known`, such as `reference` (a URL) or
    `training_datasets` (mteb's task names), replace these values.

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
    weights = list(model.state_dict().values())
    local_name = f"{'st-paragram' if ours else 'local'}/{folder.absolute().name}"
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    data: Any = ModelCard(text).data
    codes = data.language if isinstance(data.language, list) else [data.language]
    length = model.max_seq_length
    written = max(path.stat().st_mtime for path in folder.rglob("*.safetensors"))
    fields: dict[str, Any] = {
        "loader": lambda *_, **__: SentenceTransformerEncoderWrapper(_load(name)),
        # hub cache
        "name": name.partition("@")[0] if folder.parent.name == "snapshots" else local_name,
        "revision": model_digest(folder)[:12],
        "release_date": date.fromtimestamp(written).isoformat(),
        "languages": sorted(set(filter(None, map(mteb_language, codes)))) or None,
        "license": _mteb_license(data.license),
        "n_parameters": sum(tensor.numel() for tensor in weights),
        "memory_usage_mb": round(
            sum(tensor.numel() * tensor.element_size() for tensor in weights) / 2**20, 1
        ),
        "max_tokens": math.inf if length is None else length,
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


def mteb_language(code: Any) -> str | None:
    """Return a language of a model card as mteb names it, ISO 639-3 with the script in ISO 15924:
    "hin-Deva" for hi.

    Without a script in the code, it is the language's most likely script, or none if Unicode does
    not know one. None for codes that are not languages, and for private and unknown codes.
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

    is_accepted = isinstance(license, str) and (
        license in get_args(Licenses) or license.startswith("https://")
    )
    return license if is_accepted else None


def _load(name: str) -> Any:
    return importlib.import_module("st_paragram.families.loading").load(name)
