"""The settings of a training: defaults, YAML, checks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
import yaml

from st_paragram.errors import SettingsError
from st_paragram.losses.hardest_negatives import Precision


@dataclass(frozen=True)
class TrainingSettings:
    """What a training is made of; the defaults are the paper's (EMNLP 2022).

    Args:
        dim: components of an embedding.
        dropout: probability of dropping a component of a token's embedding in training.
        margin: δ of the loss.
        learning_rate: of Adam, constant.
        epochs: passes over the pairs; fractions allowed.
        batch_size: pairs of a mini-batch.
        megabatch_size: largest M, in mini-batches.
        anneal_interval: mini-batches after which M grows by one; 0: the largest M from the start.
        negatives: "opposite" (bitext) or "both" (paraphrases): the sides of the mega-batch negatives come from; or
            "random": not mined, drawn from the opposite side.
        mask_duplicates: pairs that share a text give each other no negatives.
        optimizer: "row-lazy" or "dense" Adam.
        mining_precision: what similarities are computed in while negatives are sought: "auto" (the fastest that the
            device has), "float32", "tf32", "bfloat16" or "int8".
        seed: of everything random.
        evaluate_steps: steps between evaluations on the development pairs; 0: at the end of each epoch.
        device: torch device; "auto" takes a GPU where there is one.
    """

    dim: int = 1024
    dropout: float = 0.0
    margin: float = 0.4
    learning_rate: float = 1e-3
    epochs: float = 25.0
    batch_size: int = 128
    megabatch_size: int = 60
    anneal_interval: int = 150
    negatives: str = "opposite"
    mask_duplicates: bool = True
    optimizer: str = "row-lazy"
    mining_precision: str = "auto"
    seed: int = 0
    evaluate_steps: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        """Check every setting.

        Raises:
            SettingsError: a value of the wrong type or outside its range; the message names the setting.
        """
        for field in fields(self):
            object.__setattr__(self, field.name, _of_type(field.name, str(field.type), getattr(self, field.name)))
        least = {"dim": 1, "batch_size": 2, "megabatch_size": 1, "anneal_interval": 0, "seed": 0, "evaluate_steps": 0}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be at least {bound}")
        for name in ("margin", "learning_rate", "epochs"):
            if not 0 < getattr(self, name) < math.inf:
                raise SettingsError(f"{name} is {getattr(self, name)}; it must be a number above 0")
        if not 0 <= self.dropout < 1:
            raise SettingsError(f"dropout is {self.dropout}; it must be at least 0 and below 1")
        if self.seed >= 1 << 32:
            raise SettingsError(f"seed is {self.seed}; it must be below 2**32")
        choices = {
            "negatives": ("opposite", "both", "random"),
            "optimizer": ("row-lazy", "dense"),
            "mining_precision": tuple(precision.value for precision in Precision),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise SettingsError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}")
        _check_device(self.device)

    @classmethod
    def read(
        cls,
        path: str | Path | None,
        overrides: Mapping[str, Any] | None = None,
        **defaults: Any,  # noqa: ANN401
    ) -> TrainingSettings:
        """Settings from three places, the later ones stronger.

        Args:
            defaults: values in place of this class's.
            path: a YAML file, or None.
            overrides: values that count where they are not None.

        Raises:
            SettingsError: the file is missing or no mapping, or has a key that is no setting or a wrong value.
        """
        values = _read_yaml(Path(path)) if path is not None else {}
        known = {field.name for field in fields(cls)}
        if unknown := sorted(str(key) for key in values if key not in known):
            raise SettingsError(f"{path}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
        given = {name: value for name, value in (overrides or {}).items() if value is not None}
        return cls(**{**defaults, **values, **given})


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = str(error).split("\n")[0]
        raise SettingsError(f"{path}: not readable as YAML ({reason})") from error
    if not isinstance(values, dict):
        raise SettingsError(f"{path}: a mapping of settings is expected, e.g. `dim: 300`")
    return values


def _of_type(name: str, kind: str, value: Any) -> Any:  # noqa: ANN401
    """The value as `kind`; YAML 1.1 takes 1e-3 for a string and 10.0 for no integer, both are accepted here."""
    try:
        if kind == "float" and not isinstance(value, bool):
            return float(value)
        if kind == "int" and not isinstance(value, bool) and float(value) == int(value):
            return int(value)
    except (TypeError, ValueError, OverflowError):
        pass
    if kind in ("bool", "str") and type(value).__name__ == kind:
        return value
    raise SettingsError(f"{name} is {value!r}; a value of type {kind} is expected")


def _check_device(name: str) -> None:
    try:
        if name != "auto":
            torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise SettingsError(f"device is {name!r}, which cannot be used here ({reason}); try cpu") from error
