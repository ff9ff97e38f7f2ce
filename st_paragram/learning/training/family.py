"""What a family of models is to the rest of the package: its settings and its training. Needs no torch itself."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from st_paragram.core.families import FAMILIES
from st_paragram.core.settings import read
from st_paragram.learning.training.configs import config_path

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.evaluation import BaseEvaluator

    from st_paragram.core.pair_store import PairStore
    from st_paragram.learning.training.run import TrainingPlan, TrainingRun
    from st_paragram.learning.training.train import TrainingReport, TrainingResult, Watched
    from st_paragram.learning.training.training_data import TrainingData
    from st_paragram.tools.preparation.settings import Tokens


class RunSettings(Protocol):
    """What the settings of all families have, besides their own."""

    family: ClassVar[str]

    @property
    def init(self) -> str:
        """A model to begin with, or nothing."""

    @property
    def seed(self) -> int:
        """Of all random numbers."""

    @property
    def device(self) -> str:
        """Torch device, or auto."""

    @property
    def extent(self) -> str:
        """How long a run is, in words."""

    @property
    def tokens(self) -> Tokens:
        """What is read: the kind of a store's tokenizer."""


class MoreData(Protocol):
    """What a family is trained on besides the pairs."""

    @property
    def all_stores(self) -> Sequence[PairStore]:
        """The stores, in a fixed order."""

    @property
    def sizes(self) -> Mapping[str, int]:
        """Rows of each part, for the model card."""


class Objective(Protocol):
    """How a family's models are trained: the functions of a module, imported when training starts."""

    #: Whether what is logged of a run is kept with the model.
    HAS_HISTORY: bool

    def new_model(self, store: PairStore, settings: Any) -> SentenceTransformer:  # noqa: ANN401
        """The model over the store's tokenizer that training begins with."""

    def trainer(
        self,
        model: Any,  # noqa: ANN401
        store: PairStore,
        settings: Any,  # noqa: ANN401
        folder: Path,
        evaluator: BaseEvaluator | None = None,
    ) -> Any:  # noqa: ANN401
        """The trainer of a run, with the data of `Family.more_data` as a last argument where there is any."""

    def trained(self, trainer: Any) -> SentenceTransformer:  # noqa: ANN401
        """The model to save."""


@dataclass(frozen=True)
class TrainingKind:
    """A kind of `st-paragram train`.

    Attributes:
        description: Above the options.
        epilog: Examples, below the options.
        add_options: Adds the options to a parser; a second argument is the configuration that serves if none is named.
        run: The training run that given options describe.
    """

    description: str
    epilog: str
    add_options: Callable[..., None]
    run: Callable[[argparse.Namespace], TrainingRun]


class Family(ABC):
    """A family of models.

    Attributes:
        name: As in `core.families`.
        settings: The class of its settings, with `name` as its `family`.
        default_config: The configuration that serves if none is named.
        built_in_config: The one for the built-in bitext.
        kinds: What it answers to in `st-paragram train`.
    """

    name: ClassVar[str]
    settings: ClassVar[type[Any]]
    default_config: ClassVar[str]
    built_in_config: ClassVar[str]
    kinds: ClassVar[Mapping[str, TrainingKind]]

    @property
    def config_folders(self) -> list[Path]:
        """Folders of configurations: its own."""
        return [Path(str(FAMILIES[self.name].module("family").__file__)).with_name("configs")]

    def read_settings(self, config: str | Path, overrides: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """Settings of a configuration, with some that are stronger.

        Raises:
            SettingsError: one is refused, or there is no such configuration.
        """
        return read(self.settings, config_path(config, self.config_folders), overrides)

    def check(self, run: TrainingRun) -> None:  # noqa: B027 - most families have nothing to add
        """Refuse what only this family can refuse in a run, before anything is read.

        Raises:
            ParagramError: something is refused.
        """

    def reads(self, settings: Any) -> list[str]:  # noqa: ANN401
        """What settings name that is read besides the pairs, in words.

        Raises:
            ParagramError: It is not there, or cannot be read.
        """
        return []

    def recorded(self, settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """What the record of a training has in place of settings that name a file of this machine."""
        return {}

    @abstractmethod
    def objective(self) -> Objective:
        """How models are trained; imports torch."""

    def more_data(self, plan: TrainingPlan, data: TrainingData) -> MoreData | None:
        """What is trained on besides the pairs.

        Raises:
            TextError: it is refused.
        """
        return None

    def fit(
        self, plan: TrainingPlan, data: TrainingData, watched: Watched, more: MoreData | None = None
    ) -> tuple[TrainingResult, Sequence[TrainingReport]]:
        """Train: the model to save, and the reports on all that were tried, if several were."""
        from st_paragram.learning.training.train import train

        run, store, settings = plan.run, data.store, plan.settings
        watching = (watched.development, run.checkpoints, run.resume, watched.translations)
        return train(store, settings, *watching, more), ()
