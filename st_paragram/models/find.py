"""Where a model directory is: a path, a name under `$ST_PARAGRAM_HOME` or in the user's cache, or a hub id."""

from __future__ import annotations

import os
from pathlib import Path

from st_paragram.errors import ModelDirectoryError
from st_paragram.files import cache_folder

CONFIG_FILE = "st_paragram.json"
HOME_VARIABLE = "ST_PARAGRAM_HOME"
_DOWNLOADED = (CONFIG_FILE, "sentencepiece.model", "model.safetensors")


def find(name: str | Path) -> Path:
    """The model directory of a name; nothing of it is read.

    Args:
        name: A path, a name under `$ST_PARAGRAM_HOME` or the user's cache, or a hub id `owner/name`.

    Raises:
        ModelDirectoryError: It is not found; the message lists where it was looked for.
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
        f"no model {name!r}; looked for {looked}; give a path or train it with recipes/train_bitext.py"
    )


def only_model_here() -> str:
    """The one model directory `p-sp-*` of the current folder.

    Raises:
        ModelDirectoryError: There is none, or more than one.
    """
    found = sorted(path.parent.name for path in Path().glob(f"p-sp-*/{CONFIG_FILE}"))
    if len(found) != 1:
        seen = f"{len(found)} models here ({', '.join(found)})" if found else "no model p-sp-* in this folder"
        raise ModelDirectoryError(f"{seen}; choose one with --model")
    return found[0]


def homes() -> list[Path]:
    """Folders in which models are found by name: `$ST_PARAGRAM_HOME`, then the user's cache."""
    home = os.environ.get(HOME_VARIABLE)
    return [Path(home), cache_folder()] if home else [cache_folder()]


def _from_hub(name: str, looked: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, allow_patterns=list(_DOWNLOADED)))
    except Exception as error:  # the hub client raises its own, requests' and OSError; the user needs one line
        reason = str(error).strip().split("\n")[0]
        raise ModelDirectoryError(f"no model {name!r}; looked for {looked} and on the hub ({reason})") from error
