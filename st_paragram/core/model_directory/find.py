"""Find models by path, included in the package, or on the hub."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from st_paragram.core.model_directory.configuration import (
    CONFIG_FILE,
    MODULES_FILE,
    STOCK_CONFIG_FILE,
    files_of,
)
from st_paragram.errors import ModelDirectoryError, one_line

logger = logging.getLogger(__name__)

SHIPPED = "p-sp-mini"  # the default model
SHIPPED_MODELS = (SHIPPED, "p-sp-base")  # included in the package
_ADVICE = (
    f"give a path, {', '.join(SHIPPED_MODELS)} or a hub id (owner/name), or train one with"
    " `st-paragram train`"
)
HUB_ID = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:@(.+))?")
_COMMIT = re.compile("[0-9a-f]{40}")


def find(name: str | Path) -> Path:
    """Return the directory of a model.

    The name is a path, `p-sp-mini`, `p-sp-base`, or a hub id `owner/name[@revision]`.
    """
    name = str(name)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    if name in SHIPPED_MODELS:
        return shipped_folder(name)
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


def default_model() -> str:
    """Return the only model directory `p-sp-*` in the current folder, or the included model."""
    names = sorted(path.parent.name for path in Path().glob(f"p-sp-*/{CONFIG_FILE}"))
    if len(names) > 1:
        raise ModelDirectoryError(
            f"{len(names)} models in this folder ({', '.join(names)}); choose one with --model"
        )
    if names:
        return names[0]
    logger.info(
        "no p-sp-* model in this folder; using %s, which is included in st_paragram", SHIPPED
    )
    return SHIPPED


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
