"""transformers' `trainer_state.json`, looked at before transformers believes it."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import Field
from transformers import TrainerState

from st_paragram.core.json_files import read_json
from st_paragram.errors import SettingsError
from st_paragram.learning.training import checkpoints

_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Every = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Expected(pydantic.BaseModel, strict=True, extra="ignore"):
    """The values of a state that a run computes with."""

    epoch: Annotated[_Number, Field(ge=0)]
    global_step: _Count
    max_steps: _Count
    num_train_epochs: _Count
    num_input_tokens_seen: _Count
    logging_steps: _Every
    eval_steps: _Every
    save_steps: _Every
    train_batch_size: _Count
    total_flos: _Number
    log_history: list[dict[str, Any]]
    best_metric: float | None
    best_global_step: _Count | None
    best_model_checkpoint: str | None
    is_hyper_param_search: bool
    stateful_callbacks: dict[str, dict[str, Any] | list[dict[str, Any]]]


def check(checkpoint: Path, steps: int, callbacks: Set[str]) -> None:
    """Look at the trainer's state in a checkpoint.

    Args:
        checkpoint: its folder.
        steps: of the whole run.
        callbacks: names of the callbacks of the run that have a state.

    Raises:
        SettingsError: it is damaged, or of another run.
    """
    path = checkpoint / checkpoints.TRAINER_STATE
    with checkpoints.reading(path):
        read_json(path)  # refuses what is nested too deeply to be written again
        state = TrainerState.load_from_json(str(path))
        try:
            _Expected.model_validate(vars(state))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        if missing := sorted(callbacks - state.stateful_callbacks.keys()):
            raise ValueError(f"no state of {missing[0]}")
    if state.global_step > steps:
        seen = f"a checkpoint after {state.global_step:,} steps, where the run has {steps:,}"
        raise SettingsError(f"{checkpoint}: {seen}; resume with the same data and settings")
