"""The families of models that are trained, by the class of their settings. Nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass

from st_paragram.families.bgt.settings import GenerativeSettings
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.learning.training.settings import DUAL_ENCODER_CONFIGS, GENERATIVE_CONFIGS, TrainingSettings

#: The settings of a run say what is trained.
AnySettings = TrainingSettings | GenerativeSettings | DualEncoderSettings


@dataclass(frozen=True)
class Family:
    """Models that are trained alike.

    Attributes:
        settings: The class of their settings.
        built_in_config: The configuration for the built-in bitext.
        configs: What begins the names of their configurations, see `config_names`.
    """

    settings: type[AnySettings]
    built_in_config: str
    configs: str = ""


ENCODERS = Family(TrainingSettings, "small")
GENERATIVE = Family(GenerativeSettings, "bgt_small", GENERATIVE_CONFIGS)
DUAL_ENCODERS = Family(DualEncoderSettings, "muse_small", DUAL_ENCODER_CONFIGS)
