"""Find models by path, included in the package, or on the hub."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from st_paragram.core.extras import installed_version
from st_paragram.core.files import digest, file_digest
from st_paragram.core.folders import cache_folder, make_own_folder, writable_cache
from st_paragram.core.languages import LARGE_LANGUAGES, MODEL_LANGUAGES
from st_paragram.core.model_directory.configuration import (
    CONFIG_FILE,
    MODULES_FILE,
    STOCK_CONFIG_FILE,
    WEIGHTS_FILE,
    files_of,
)
from st_paragram.core.outputs import output_lock
from st_paragram.errors import ModelDirectoryError, ParagramError, one_line

logger = logging.getLogger(__name__)

SHIPPED = "p-sp-mini"  # the default model
WHOLE = "p-sp-base"  # the model that p-sp-es is part of
LARGE = "p-sp-large"  # the model that p-sp-it is part of
SHIPPED_MODELS = (SHIPPED, WHOLE, LARGE)  # included in the package
#: Name of a model of English and another language -> its languages.
LANGUAGE_MODELS = {f"p-sp-{language}": ("en", language) for language in LARGE_LANGUAGES[1:]}
_ADVICE = (
    f"give a path, {', '.join(SHIPPED_MODELS)}, p-sp-LANG for one of {len(LANGUAGE_MODELS)}"
    " languages, such as p-sp-es, or a hub id (owner/name), or train one with `st-paragram train`"
)
_MODELS = "models"  # folder in the cache for models of some languages
HUB_ID = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:@(.+))?")
_COMMIT = re.compile("[0-9a-f]{40}")


def find(name: str | Path) -> Path:
    """Return the directory of a model.

    The name is a path, one of `SHIPPED_MODELS`, `p-sp-es` or another name of `LANGUAGE_MODELS`, or
    a hub id `owner/name[@revision]`. A folder of that name comes first.
    """
    if not isinstance(name, str | os.PathLike):
        raise ModelDirectoryError(
            f"a model of type {type(name).__name__}; give a path or a name, such as p-sp-mini"
        )
    name = str(name)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if name in SHIPPED_MODELS:
        return shipped_folder(name)
    if name in LANGUAGE_MODELS and not path.exists():
        return _cut(name)
    if path.is_file():
        raise ModelDirectoryError(
            f"{path} is a file, but a model directory is expected; name its folder"
        )
    if HUB_ID.fullmatch(name):
        return _from_hub(name)
    raise ModelDirectoryError(f"no model '{one_line(name)}': no such folder; {_ADVICE}")


def shipped_folder(name: str = SHIPPED) -> Path:
    """Return the folder of an included model, without the files for plain sentence-transformers."""
    return Path(__file__).with_name("shipped") / name


def whole_model(languages: Iterable[str]) -> str:
    """Return the included model that languages are cut out of: p-sp-base, or p-sp-large."""
    return WHOLE if set(languages) <= set(MODEL_LANGUAGES) else LARGE


def _cut(name: str) -> Path:
    """Return the folder of a model of `LANGUAGE_MODELS`, the same as `st-paragram get` writes.

    It is cut out of a larger model at the first use, and kept in the cache.
    """
    from st_paragram.core.model_directory import languages

    whole = shipped_folder(whole_model(LANGUAGE_MODELS[name]))
    sources = [file_digest(whole / file) for file in (WEIGHTS_FILE, languages.FILE)]
    try:
        own_folder = cache_folder() / _MODELS / f"{name}-{digest(installed_version(), sources)}"
        folder = own_folder / name
        if not folder.is_dir():
            writable_cache(_MODELS)
            with output_lock(own_folder, wait=True):  # two processes may need the model at once
                make_own_folder(own_folder)
                if not folder.is_dir():
                    languages.write_model(whole, folder, LANGUAGE_MODELS[name])
    except (ParagramError, OSError) as error:
        raise ModelDirectoryError(
            f"no folder {name}, and no place for the model: {one_line(error)}; write it with"
            f" `st-paragram get {name}`"
        ) from error
    _log_cut(name)
    return folder


@cache
def _log_cut(name: str) -> None:
    """Log, once in a process, that a model is not from a folder of this name."""
    logger.info(
        "no folder %s; using %s with the tokens of %s",
        name,
        whole_model(LANGUAGE_MODELS[name]),
        " and ".join(LANGUAGE_MODELS[name]),
    )


def default_model(languages: Iterable[str] = ()) -> str:
    """Return the only model directory `p-sp-*` in the current folder, or an included model.

    That is p-sp-mini, or p-sp-large for a language that only p-sp-large knows.
    """
    names = sorted(path.parent.name for path in Path().glob(f"p-sp-*/{CONFIG_FILE}"))
    if len(names) > 1:
        raise ModelDirectoryError(
            f"{len(names)} models in this folder ({', '.join(names)}); choose one with --model"
        )
    if names:
        return names[0]
    is_large = any(code in LARGE_LANGUAGES and code not in MODEL_LANGUAGES for code in languages)
    name = LARGE if is_large else SHIPPED
    logger.info("no p-sp-* model in this folder; using %s, which is included in st_paragram", name)
    return name


def commit_of(folder: Path) -> str | None:
    """Return the commit that a folder in the hub's cache holds; None for any other folder."""
    if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name):
        return folder.name
    return None


def with_commit(name: str, folder: Path) -> str:
    """Return a model's name for records: a hub id with its commit in place of the revision."""
    commit = commit_of(folder)
    if commit is None or Path(name).is_dir():
        return name
    return f"{name.partition('@')[0]}@{commit}"


def _from_hub(name: str) -> Path:
    """Download only the files that the model's architecture needs, all from one commit."""
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        # ours, and that of any SentenceTransformer
        snapshot = snapshot_download(
            repository, revision=revision or None, allow_patterns=[CONFIG_FILE, MODULES_FILE]
        )
        commit = commit_of(Path(snapshot))
        patterns = [*files_of(Path(snapshot)), STOCK_CONFIG_FILE, "README.md"]
        folder = snapshot_download(
            repository, revision=commit or revision or None, allow_patterns=patterns
        )
    except ModelDirectoryError as error:
        raise ModelDirectoryError(
            f"{name} is on the hub, but is not a SentenceTransformer: {error}"
        ) from error
    except Exception as error:  # the hub client's errors, requests' and OSError
        reason = one_line(str(error).strip().split("\n")[0], 300)
        raise ModelDirectoryError(
            f"no model '{one_line(name)}': neither a folder nor on the hub ({reason})"
        ) from error
    logger.info("%s: commit %s of the hub", repository, commit or "unknown")
    return Path(folder)
