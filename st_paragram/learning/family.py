"""The interface of a model family: its settings and its training. Does not need torch."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import st_paragram
from st_paragram.core.settings import read
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.runs.run import TrainingRun

_CONFIGS = Path(str(st_paragram.__file__)).with_name("configs")


@dataclass(frozen=True)
class TrainingKind:
    """A kind of `st-paragram train`."""

    description: str  # above the options
    epilog: str  # examples, below the options
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], TrainingRun]  # makes the run from given options


@dataclass(frozen=True)
class Family:
    """A family of models.

    `module` is the training module, imported when training starts, with `new_model(store,
    settings)`, and `trainer(model, store, settings, folder, evaluator, run)`, which returns a
    `StoreTrainer`.
    """

    name: str  # name in `core.families`, and of its folder in `configs/`
    settings: type[Any]  # class of the settings
    default_config: str  # configuration used by default
    built_in_config: str  # configuration for the built-in bitext
    kinds: Mapping[str, TrainingKind]  # kinds of `st-paragram train`
    module: str
    # early checks of this family, without torch
    check: Callable[[TrainingRun], None] = lambda _: None

    @property
    def configs(self) -> dict[str, Path]:
        """The included configurations by name: YAML files of settings."""
        return {path.stem: path for path in sorted((_CONFIGS / self.name).glob("*.yaml"))}

    def config_path(self, config: str | Path) -> Path:
        """Return the YAML file of a configuration, given by name or as a file."""
        configs = self.configs
        if str(config) in configs:
            return configs[str(config)]
        if not Path(config).is_file():
            raise SettingsError(
                f"config is {str(config)!r}; give one of {', '.join(configs)}, or a YAML file"
            )
        return Path(config)

    def read_settings(self, config: str | Path, overrides: Mapping[str, Any]) -> Any:
        """Read the settings of a configuration; `overrides` take precedence."""
        return read(self.settings, self.config_path(config), overrides)
