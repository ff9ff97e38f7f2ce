"""The base class of model families: their settings, presets, early checks and training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import st_paragram
from st_paragram.core.settings import read
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.evaluation import BaseEvaluator

    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.core.pair_store import PairStore
    from st_paragram.learning.models.card import CardFacts
    from st_paragram.learning.training.trainer import StoreTrainer

_PRESETS = Path(str(st_paragram.__file__)).with_name("configs")


class Training(Protocol):
    """A module that makes the initial model of a run, and its trainer."""

    def new_model(self, store: PairStore, settings: Any) -> SentenceTransformer:
        """Make the initial model over a store's tokenizer; refuse other tokens."""

    def trainer(
        self,
        model: Any,
        store: PairStore,
        settings: Any,
        folder: Path,
        evaluator: BaseEvaluator | None,
        data: Any,
    ) -> StoreTrainer:
        """Make the trainer of a run, with checkpoints in `folder` and additional `data`."""


class Family:
    """A family of models.

    Nothing needs torch before `training`.

    Attributes:
        name: Name of the family, and of its folder of presets.
        settings: Class of the training settings.
        default_config: Preset used by default.
        built_in_config: Preset for the built-in bitext.
        holds_out: Whether the last pairs of a store are held out as development translations.
    """

    name: ClassVar[str]
    settings: ClassVar[type[Any]]
    default_config: ClassVar[str]
    built_in_config: ClassVar[str]
    holds_out: ClassVar[bool] = False

    @property
    def configs(self) -> dict[str, Path]:
        """The presets by name: YAML files of settings."""
        return {path.stem: path for path in sorted((_PRESETS / self.name).glob("*.yaml"))}

    def config_path(self, config: str | Path) -> Path:
        """Return the YAML file of a preset, given by name or as a file."""
        configs = self.configs
        if str(config) in configs:
            return configs[str(config)]
        if Path(config).suffix in (".yaml", ".yml") and not Path(config).exists():
            raise SettingsError(f"{config}: no such file; check the path")
        if not Path(config).is_file():
            raise SettingsError(
                f"config is {str(config)!r}; give one of {', '.join(configs)}, or a YAML file"
            )
        return Path(config)

    def read_settings(self, config: str | Path, overrides: Mapping[str, Any]) -> Any:
        """Read the settings of a preset; `overrides` take precedence."""
        return read(self.settings, self.config_path(config), overrides)

    def check_languages(self, languages: tuple[str, str]) -> None:
        """Refuse languages of the two sides that this family cannot train on."""

    def check_data(self, data: Any, settings: Any) -> None:
        """Refuse additional data of this family that cannot be used, before training starts."""

    def encoder_to_continue(self, settings: Any) -> Encoder | None:
        """Return the model whose vocabulary and dimension a run continues with, if there is one."""
        return None

    @property
    def training(self) -> Training:
        """The module that makes models and trainers; it imports torch."""
        raise NotImplementedError

    def card_facts(self, record: TrainingRecord) -> CardFacts:
        """Return what the cards of this family's models say."""
        raise NotImplementedError
