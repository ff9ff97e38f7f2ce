"""What a family of models is to the rest of the package: its settings and its training. Needs no torch itself."""

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
    from st_paragram.learning.training.run import TrainingRun

_CONFIGS = Path(str(st_paragram.__file__)).with_name("configs")


@dataclass(frozen=True)
class TrainingKind:
    """A kind of `st-paragram train`."""

    description: str  # above the options
    epilog: str  # examples, below the options
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], TrainingRun]  # which given options describe


@dataclass(frozen=True)
class Family:
    """A family of models.

    `module` is its training, imported when that starts: `new_model(store, settings)`, and `trainer(model, store,
    settings, folder, evaluator, run)`, a `StoreTrainer`.
    """

    name: str  # as in `core.families`, and of its folder in `configs/`
    settings: type[Any]  # the class of its settings
    default_config: str  # the configuration that serves if none is named
    built_in_config: str  # the one for the built-in bitext
    kinds: Mapping[str, TrainingKind]  # what it answers to in `st-paragram train`
    module: str
    check: Callable[[TrainingRun], None] = lambda _: None  # refuses early, without torch, what only it can refuse

    @property
    def configs(self) -> dict[str, Path]:
        """Its configurations by name: YAML files of settings that come with the package."""
        return {path.stem: path for path in sorted((_CONFIGS / self.name).glob("*.yaml"))}

    def config_path(self, config: str | Path) -> Path:
        """The YAML file of a configuration, given by name or as a file."""
        configs = self.configs
        if str(config) in configs:
            return configs[str(config)]
        if not Path(config).is_file():
            raise SettingsError(f"config is {str(config)!r}; it must be one of {', '.join(configs)}, or a YAML file")
        return Path(config)

    def read_settings(self, config: str | Path, overrides: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Settings of a configuration, with some that are stronger."""
        return read(self.settings, self.config_path(config), overrides)
