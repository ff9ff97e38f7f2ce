"""Where a model is: a path, a name under `$ST_PARAGRAM_HOME` or in the user's cache, a shipped one, a hub id."""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from pathlib import Path

from st_paragram.core.encoding.configuration import CHECKSUMS_FILE, CONFIG_FILE, STOCK_CONFIG_FILE
from st_paragram.core.files import cache_folder, file_for_folder
from st_paragram.errors import ModelDirectoryError, ParagramError, one_line, short

logger = logging.getLogger(__name__)

HOME_VARIABLE = "ST_PARAGRAM_HOME"
#: The model that is taken where none is named.
SHIPPED = "p-sp-mini"
#: The models that come with the package, the smallest first.
SHIPPED_MODELS = (SHIPPED, "p-sp-base")
_ADVICE = f"give a path, take {SHIPPED}, or train a model with `st-paragram train`"
_BESIDE = (STOCK_CONFIG_FILE, CHECKSUMS_FILE, "README.md")
_COMMIT = re.compile("[0-9a-f]{40}")


def find(name: str | Path) -> Path:
    """The directory of a model.

    Args:
        name: a path, a name under `$ST_PARAGRAM_HOME` or in the user's cache, `p-sp-mini` or `p-sp-base`, which come
            with the package, or a hub id `owner/name`, which may name a revision (a branch, a tag or a commit):
            `owner/name@v1`.

    Raises:
        ModelDirectoryError: not found; the message lists the places.
    """
    return find_here(name) or _from_hub(str(name), _places(str(name)))


def find_here(name: str | Path) -> Path | None:
    """The directory of a model, as `find` gives it, without asking the hub: None for a hub id.

    Raises:
        ModelDirectoryError: not found; the message lists the places.
    """
    name = str(name)
    for place in _places(name):
        if _is_folder(place):
            return place
    if name in SHIPPED_MODELS:
        return shipped_folder(name)
    if wrong := file_for_folder(name, "a model directory"):
        raise ModelDirectoryError(f"{one_line(wrong)}; name the folder that holds the model")
    if name.partition("@")[0].count("/") == 1 and not name.startswith((".", "/")):
        return None
    if name.startswith((".", "/", "~")):
        raise ModelDirectoryError(f"{one_line(name)}: no such model directory; {_ADVICE}")
    hub = "a model of the hub needs its owner, as owner/name"
    raise ModelDirectoryError(f"no model {short(name)}; looked for {_listed(_places(name))}; {_ADVICE}; {hub}")


def _places(name: str) -> list[Path]:
    """Where a model is looked for, the hub apart."""
    return [Path(name), *(folder / name for folder in homes())]


def _listed(places: list[Path]) -> str:
    return one_line(", ".join(map(str, places)))


def shipped_folder(name: str = SHIPPED) -> Path:
    """The folder of one of `SHIPPED_MODELS`: what `load` reads, without the files for plain sentence-transformers."""
    return Path(__file__).with_name("shipped") / name


def _is_folder(place: Path) -> bool:
    try:
        return place.is_dir()
    except (OSError, ValueError):  # what cannot be a name of a file
        return False


def homes() -> list[Path]:
    """Folders in which models are found by name: `$ST_PARAGRAM_HOME`, then the user's cache."""
    folders = [Path(home)] if (home := os.environ.get(HOME_VARIABLE)) else []
    with suppress(ParagramError):  # no cache, no models in it
        folders.append(cache_folder())
    return folders


def default_model() -> str:
    """The one model directory `p-sp-*` of the current folder; where there is none, the model that is shipped.

    Raises:
        ModelDirectoryError: There is more than one.
    """
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
    return name if commit is None or _is_folder(Path(name)) else f"{name.partition('@')[0]}@{commit}"


def cached_commit(name: str) -> str | None:
    """The commit that a hub id stands for in the hub's cache, where it was found before; None for any other name."""
    if _is_folder(Path(name)) or name.partition("@")[0].count("/") != 1:
        return None
    from huggingface_hub import try_to_load_from_cache

    repository, _, revision = name.partition("@")
    try:
        found = try_to_load_from_cache(repository, CONFIG_FILE, revision=revision or None)
    except ValueError:  # no name that the hub has
        return None
    return commit_of(Path(found).parent) if isinstance(found, str) else None


def _from_hub(name: str, places: list[Path]) -> Path:
    """The files that the model's architecture needs, and no others, all of one commit."""
    from huggingface_hub import snapshot_download

    from st_paragram.core.encoding.architectures import files_of

    repository, _, revision = name.partition("@")
    try:
        folder = Path(snapshot_download(repository, revision=revision or None, allow_patterns=[CONFIG_FILE]))
        commit = commit_of(folder)
        patterns = [*files_of(folder), *_BESIDE]
        folder = Path(snapshot_download(repository, revision=commit or revision or None, allow_patterns=patterns))
    except ModelDirectoryError as error:
        raise ModelDirectoryError(
            f"{one_line(name)} is on the hub, but is not a model of st_paragram: {error}"
        ) from error
    except Exception as error:  # the hub client raises its own, requests' and OSError; the user needs one line
        reason = one_line(str(error).strip().split("\n")[0], 300)
        raise ModelDirectoryError(
            f"no model {short(name)}; looked for {_listed(places)} and on the hub ({reason})"
        ) from error
    logger.info("%s: commit %s of the hub", repository, commit or "unknown")
    return folder
