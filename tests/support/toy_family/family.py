"""The toy family: its settings, its options, its training."""

from pathlib import Path
from typing import ClassVar

from st_paragram.core.settings import setting, settings
from st_paragram.learning.training.family import Family, TrainingKind
from st_paragram.learning.training.options import PAIRS, FileHelp, add_language, add_training_options, training_run


@settings
class ToySettings:
    """What a toy is made of."""

    family: ClassVar[str] = "toy"

    dim: int = setting(4, "components of an embedding", ge=1)
    epochs: int = setting(1, "passes over the pairs", ge=1)
    init: str = setting("", "a model to begin with", metavar="MODEL")
    seed: int = setting(0, "seed of all random numbers", ge=0)
    device: str = setting("cpu", "torch device")

    @property
    def extent(self):
        return f"{self.epochs} epochs"

    @property
    def tokens(self):
        return "sentencepiece"


def _add_options(parser, default_config=None):
    add_language(parser)
    add_training_options(parser, FAMILY, FileHelp(PAIRS.format("LANG"), "toy-LANG"), default_config)


class ToyFamily(Family):
    """Models that are hardly trained at all."""

    name = "toy"
    settings = ToySettings
    default_config = built_in_config = "toy"
    kinds: ClassVar = {
        "toy": TrainingKind(
            "Train a toy.",
            "  st-paragram train toy --lang es",
            _add_options,
            lambda given: training_run(given, FAMILY, given.lang, Path(f"toy-{given.lang}")),
        )
    }

    def objective(self):
        from support.toy_family import objective

        return objective


FAMILY = ToyFamily()
