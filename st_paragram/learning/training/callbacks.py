"""What a training run says while it works, and what Ctrl-C does to it."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

from tqdm.auto import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

logger = logging.getLogger(__name__)

_NOT_SHOWN = ("eval_runtime", "eval_samples_per_second", "eval_steps_per_second", "eval_sequential_score")
_TRAINERS_OWN = ("loss", "grad_norm", "learning_rate", "epoch")


class RateCallback(TrainerCallback):
    """A progress bar (on a terminal) and one log line now and then, with the rate of training alone.

    Attributes:
        seconds: Of the steps: the clock stops while the model is evaluated or saved.
        pairs: Of those steps; the trainer counts them here.
    """

    def __init__(self) -> None:
        self.bar: tqdm[Any] | None = None
        self.clear()

    def clear(self) -> None:
        """Begin a run."""
        self.begin_with(0.0, 0.0, 0)

    def begin_with(self, wall_seconds: float, seconds: float, pairs: int) -> None:
        """Count on from what the earlier parts of a run took."""
        self.seconds = self._logged_seconds = seconds
        self.pairs = self._logged_pairs = pairs
        self._started = time.perf_counter() - wall_seconds
        self._running_since: float | None = None

    @property
    def wall_seconds(self) -> float:
        """Of the run so far, with evaluation and checkpoints."""
        return time.perf_counter() - self._started

    @property
    def pairs_per_second(self) -> float:
        """Of the steps."""
        return self.pairs / max(self.seconds, 1e-9)

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401
        """Start the clock and the bar."""
        total, done = state.max_steps, state.global_step
        shown = sys.stderr.isatty() and not args.disable_tqdm
        self.bar = tqdm(total=total, initial=done, unit="step", dynamic_ncols=True, disable=not shown)
        self._running_since = time.perf_counter()

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401
        """Let the clock run again after an evaluation or a checkpoint."""
        if self._running_since is None:
            self._running_since = time.perf_counter()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401
        """Stop the clock and advance the bar."""
        if self._running_since is not None:
            self.seconds += time.perf_counter() - self._running_since
            self._running_since = None
        if self.bar is not None:
            self.bar.update(1)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, float] | None = None,
        **_: Any,  # noqa: ANN401
    ) -> None:
        """Write a line with the loss and the rate; evaluation results get a separate line."""
        if logs and "loss" in logs:
            rate = (self.pairs - self._logged_pairs) / max(self.seconds - self._logged_seconds, 1e-9)
            self._logged_pairs, self._logged_seconds = self.pairs, self.seconds
            parts = {name: value for name, value in logs.items() if name not in _TRAINERS_OWN}
            names = {"megabatch_size": "M"}
            more = "".join(f"  {names.get(name, name.replace('_', ' '))} {value:.4g}" for name, value in parts.items())
            self._say(
                f"{_place(state)}  epoch {state.epoch or 0:.2f}  loss {logs['loss']:.4f}{more}  {rate:.0f} pairs/s"
            )
        elif logs and (scores := {k: v for k, v in logs.items() if k.startswith("eval_") and isinstance(v, float)}):
            shown = "  ".join(f"{key[5:]} {value:.4f}" for key, value in scores.items() if key not in _NOT_SHOWN)
            self._say(f"{_place(state)}  {shown}")

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401
        """Say how much was trained, and how fast."""
        logger.info(f"trained on {self.pairs} pairs in {self.seconds:.1f} s: {self.pairs_per_second:.0f} pairs/s")

    def close(self) -> None:
        """Take the bar off the terminal."""
        if self.bar is not None:
            self.bar.close()

    def _say(self, line: str) -> None:
        if self.bar is not None and not self.bar.disable:
            self.bar.write(line, file=sys.stderr)
        else:
            logger.info(line)


def _place(state: TrainerState) -> str:
    return f"step {state.global_step}/{state.max_steps}"


class InterruptCallback(TrainerCallback):
    """Ctrl-C or SIGTERM ends the run after the present step, with a checkpoint; a second one ends it at once."""

    def __init__(self) -> None:
        self.interrupted = False
        self._previous: dict[signal.Signals, Any] = {}

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401
        """Take over the signals, in the main thread (elsewhere Python does not allow it)."""
        self.interrupted = False
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        logger.warning("interrupted: a checkpoint will be saved after this step (interrupt again to stop at once)")

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401
        """Ask for the checkpoint."""
        if self.interrupted:
            control.should_save = True
            control.should_training_stop = True

    def on_epoch_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:  # noqa: ANN401
        """The epoch has not really ended: the checkpoint was saved at the step's end, and nothing else is due."""
        if self.interrupted:
            control.should_evaluate = control.should_save = False

    def release(self) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()
