"""Where a model is: a path, a name under `$ST_PARAGRAM_HOME` or in the user's cache, or a hub id."""

from __future__ import annotations

import os
from pathlib import Path

from st_paragram.errors import ModelDirectoryError
from st_paragram.files import cache_folder
from st_paragram.models.configuration import CONFIG_FILE, STOCK_CONFIG_FILE, read_configuration

HOME_VARIABLE = "ST_PARAGRAM_HOME"
_BESIDE = (STOCK_CONFIG_FILE, "README.md")


def find(name: str | Path) -> Path:
    """The directory of a model.

    Args:
        name: a path, a name under `$ST_PARAGRAM_HOME` or in the user's cache, or a hub id `owner/name`.

    Raises:
        ModelDirectoryError: not found; the message lists the places.
    """
    name = str(name)
    places = [Path(name), *(folder / name for folder in homes())]
    for place in places:
        if place.is_dir():
            return place
    looked = ", ".join(str(place) for place in places)
    if name.count("/") == 1 and not name.startswith((".", "/")):
        return _from_hub(name, looked)
    raise ModelDirectoryError(
        f"no model {name!r}; looked for {looked}; give a path, or train a model with `st-paragram train`"
    )


def homes() -> list[Path]:
    """Folders in which models are found by name: `$ST_PARAGRAM_HOME`, then the user's cache."""
    home = os.environ.get(HOME_VARIABLE)
    return [Path(home), cache_folder()] if home else [cache_folder()]


def only_model_here() -> str:
    """The one model directory `p-sp-*` of the current folder.

    Raises:
        ModelDirectoryError: there is none, or more than one.
    """
    found = sorted(path.parent.name for path in Path().glob(f"p-sp-*/{CONFIG_FILE}"))
    if len(found) != 1:
        seen = f"{len(found)} models here ({', '.join(found)})" if found else "no model p-sp-* in this folder"
        raise ModelDirectoryError(f"{seen}; choose one with --model")
    return found[0]


def _from_hub(name: str, looked: str) -> Path:
    """The files that the model's architecture needs, and no others."""
    from huggingface_hub import snapshot_download

    from st_paragram.models.architectures import architecture_named

    try:
        folder = Path(snapshot_download(name, allow_patterns=[CONFIG_FILE]))
        architecture = architecture_named(read_configuration(folder).architecture, folder)
        return Path(snapshot_download(name, allow_patterns=[*architecture.files, *_BESIDE]))
    except ModelDirectoryError as error:
        raise ModelDirectoryError(f"{name} is on the hub, but no model of st_paragram: {error}") from error
    except Exception as error:  # the hub client raises its own, requests' and OSError; the user needs one line
        reason = str(error).strip().split("\n")[0]
        raise ModelDirectoryError(f"no model {name!r}; looked for {looked} and on the hub ({reason})") from error
