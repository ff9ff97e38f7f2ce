"""Progress messages of a training run, and its reaction to Ctrl-C."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tqdm.auto import tqdm
from transformers import TrainerCallback

logger = logging.getLogger(__name__)

_NOT_SHOWN = (
    "eval_runtime",
    "eval_samples_per_second",
    "eval_steps_per_second",
    "eval_sequential_score",
)
_TRAINERS_OWN = ("loss", "grad_norm", "learning_rate", "epoch")


class RateCallback(TrainerCallback):
    """A progress bar (on a terminal) and regular log lines, with the rate of training only.

    Attributes:
        seconds: Time of the steps; the clock stops while the model is evaluated or saved.
        pairs: Pairs in those steps, counted by the trainer.
    """

    def __init__(self) -> None:
        self.bar: tqdm[Any] = tqdm(disable=True)
        self.begin_with()

    def begin_with(self, wall_seconds: float = 0.0, seconds: float = 0.0, pairs: int = 0) -> None:
        """Begin a run, or continue counting from its earlier parts."""
        self.seconds = self._logged_seconds = seconds
        self.pairs = self._logged_pairs = pairs
        self._started = time.perf_counter() - wall_seconds

    @property
    def wall_seconds(self) -> float:
        """Time of the run so far, including evaluation and checkpoints."""
        return time.perf_counter() - self._started

    @property
    def pairs_per_second(self) -> float:
        """Rate of the training steps."""
        return self.pairs / max(self.seconds, 1e-9)

    def on_train_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Show the bar."""
        hidden = args.disable_tqdm or not sys.stderr.isatty()
        total, done = state.max_steps, state.global_step
        self.bar = tqdm(total=total, initial=done, unit="step", dynamic_ncols=True, disable=hidden)

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self._step_started = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Stop the clock and advance the bar."""
        self.seconds += time.perf_counter() - self._step_started
        self.bar.update(1)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Write a line with the loss and the rate; evaluation results get a separate line."""
        if "loss" in logs:
            rate = (self.pairs - self._logged_pairs) / max(
                self.seconds - self._logged_seconds, 1e-9
            )
            self._logged_pairs, self._logged_seconds = self.pairs, self.seconds
            names = {name: name.replace("megabatch_size", "M").replace("_", " ") for name in logs}
            more = "".join(
                f"  {names[name]} {logs[name]:.4g}" for name in logs if name not in _TRAINERS_OWN
            )
            line = (
                f"epoch {state.epoch or 0:.2f}  loss {logs['loss']:.4f}{more}  {rate:.0f} pairs/s"
            )
        else:
            scores = [key for key in logs if key.startswith("eval_") and key not in _NOT_SHOWN]
            line = "  ".join(f"{key[5:]} {logs[key]:.4f}" for key in scores)
        line = line and f"step {state.global_step}/{state.max_steps}  {line}"
        if line and self.bar.disable:
            logger.info(line)
        elif line:
            self.bar.write(line, file=sys.stderr)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Log the number of pairs and the rate."""
        logger.info(
            f"trained on {self.pairs} pairs in {self.seconds:.1f} s: {self.pairs_per_second:.0f}"
            " pairs/s"
        )


class InterruptCallback(TrainerCallback):
    """Ctrl-C or SIGTERM ends the run after the current step, with a checkpoint; a second signal
    ends it at once.
    """

    interrupted = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals within the block, in the main thread (Python does not allow it in
        other threads).
        """
        self.interrupted, previous = False, {}
        try:
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGINT, signal.SIGTERM):
                    previous[number] = signal.signal(number, self._handle)
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        logger.warning(
            "interrupted: a checkpoint will be saved after this step (interrupt again to stop at"
            " once)"
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Request the checkpoint."""
        if self.interrupted:
            control.should_save = control.should_training_stop = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Do nothing more: the epoch has not really ended, and the checkpoint was saved after the
        step.
        """
        if self.interrupted:
            control.should_evaluate = control.should_save = False
