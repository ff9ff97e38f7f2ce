"""The configurations that come with the package: YAML files of settings, in the folders of the families."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from st_paragram.core.files import folder_for_file
from st_paragram.errors import SettingsError


def config_names(folders: Sequence[Path]) -> list[str]:
    """The names of the configurations in some folders."""
    return sorted(_files(folders))


def config_path(config: str | Path, folders: Sequence[Path]) -> Path:
    """The YAML file of a configuration.

    Args:
        config: A name, see `config_names`, or a file.
        folders: As in `config_names`.

    Raises:
        SettingsError: It is neither.
    """
    files = _files(folders)
    if str(config) in files:
        return files[str(config)]
    if wrong := folder_for_file(config, "a YAML file"):
        raise SettingsError(f"{wrong}; name a file")
    if not Path(config).is_file():
        names = ", ".join(sorted(files))
        raise SettingsError(f"config is {str(config)!r}; it must be one of {names}, or a YAML file")
    return Path(config)


def _files(folders: Sequence[Path]) -> dict[str, Path]:
    return {path.stem: path for folder in folders for path in folder.glob("*.yaml")}
