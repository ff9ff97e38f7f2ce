"""The folder of a pipeline's module, for modules that read several files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sentence_transformers.base.modules import Module

from st_paragram.errors import ModelDirectoryError

_HUB_ARGUMENTS = ("subfolder", "token", "cache_folder", "revision", "local_files_only")


def module_folder(model_name_or_path: str, arguments: dict[str, Any]) -> Path:
    """Return the folder of a module, downloaded first if the model is on the hub.

    `arguments` are those that sentence-transformers passes to `load`.
    """
    hub = {name: arguments[name] for name in _HUB_ARGUMENTS if name in arguments}
    folder = Module.load_dir_path(model_name_or_path, **hub)
    if folder is None:
        raise ModelDirectoryError(
            f"{model_name_or_path}: a module's folder is missing; save the model again"
        )
    return Path(folder)
