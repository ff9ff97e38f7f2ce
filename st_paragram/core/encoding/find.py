"""Where a model is: a path, one that comes with the package, or a repository of the hub."""

from __future__ import annotations

import logging
import re
from pathlib import Path

from st_paragram.core.encoding.directory import CONFIG_FILE, MODULES_FILE, STOCK_CONFIG_FILE, files_of
from st_paragram.errors import ModelDirectoryError, one_line

logger = logging.getLogger(__name__)

SHIPPED = "p-sp-mini"  # taken where no model is named
SHIPPED_MODELS = (SHIPPED, "p-sp-base")  # they come with the package
_ADVICE = f"give a path, take {SHIPPED}, train a model with `st-paragram train`, or name one of the hub as owner/name"
HUB_ID = re.compile(r"(\w[\w.-]*/\w[\w.-]*)(?:@(.+))?")
_COMMIT = re.compile("[0-9a-f]{40}")


def find(name: str | Path) -> Path:
    """The directory of a model: a path, `p-sp-mini`, `p-sp-base`, or a hub id, `owner/name`, perhaps `@revision`."""
    name, path = str(name), Path(name).expanduser()
    if path.is_dir():
        return path
    if name in SHIPPED_MODELS:
        return shipped_folder(name)
    if path.is_file():
        raise ModelDirectoryError(f"{path} is a file, where a model directory is expected; name its folder")
    if HUB_ID.fullmatch(name):
        return _from_hub(name)
    raise ModelDirectoryError(f"no model '{one_line(name)}': no such folder; {_ADVICE}")


def shipped_folder(name: str = SHIPPED) -> Path:
    """The folder of one of `SHIPPED_MODELS`, without the files for plain sentence-transformers."""
    return Path(__file__).with_name("shipped") / name


def default_model() -> str:
    """The one model directory `p-sp-*` of the current folder; where there is none, the model that is shipped."""
    found = sorted(path.parent.name for path in Path().glob(f"p-sp-*/{CONFIG_FILE}"))
    if len(found) > 1:
        raise ModelDirectoryError(f"{len(found)} models here ({', '.join(found)}); choose one with --model")
    if not found:
        logger.info("no model p-sp-* in this folder: %s, which comes with st_paragram", SHIPPED)
    return found[0] if found else SHIPPED


def commit_of(folder: Path) -> str | None:
    """The commit of the hub that a folder in the hub's cache holds; None for any other folder."""
    return folder.name if folder.parent.name == "snapshots" and _COMMIT.fullmatch(folder.name) else None


def with_commit(name: str, folder: Path) -> str:
    """A model's name, for records: that of a hub id names the commit that was found in place of its revision."""
    commit = commit_of(folder)
    return name if commit is None or Path(name).is_dir() else f"{name.partition('@')[0]}@{commit}"


def _from_hub(name: str) -> Path:
    """The files that the model's architecture needs, and no others, all of one commit."""
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        known = [CONFIG_FILE, MODULES_FILE]  # one says what a model of ours is, the other is any SentenceTransformer's
        folder = Path(snapshot_download(repository, revision=revision or None, allow_patterns=known))
        patterns, commit = [*files_of(folder), STOCK_CONFIG_FILE, "README.md"], commit_of(folder)
        folder = Path(snapshot_download(repository, revision=commit or revision or None, allow_patterns=patterns))
    except ModelDirectoryError as error:
        raise ModelDirectoryError(f"{name} is on the hub, but is not a SentenceTransformer: {error}") from error
    except Exception as error:  # the hub client raises its own, requests' and OSError; the user needs one line
        reason = one_line(str(error).strip().split("\n")[0], 300)
        raise ModelDirectoryError(f"no model '{one_line(name)}': no such folder, nor on the hub ({reason})") from error
    logger.info("%s: commit %s of the hub", repository, commit or "unknown")
    return folder
