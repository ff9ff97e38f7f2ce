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

# Entries of the log that its lines leave out, or name in another way.
_NOT_SHOWN = {
    "eval_runtime",
    "eval_samples_per_second",
    "eval_steps_per_second",
    "eval_sequential_score",
    "loss",
    "grad_norm",
    "learning_rate",
    "epoch",
}


class RateCallback(TrainerCallback):
    """A progress bar (on a terminal) and regular log lines, with the rate of training only.

    Attributes:
        seconds: Time of the steps; the clock stops while the model is evaluated or saved.
        pairs: Pairs in those steps, counted by the trainer.
    """

    def __init__(self) -> None:
        self.bar: tqdm[Any] = tqdm(disable=True)
        self.seconds: float = 0.0
        self.pairs: int = 0
        self.begin_with()

    def begin_with(self, wall_seconds: float = 0.0, seconds: float = 0.0, pairs: int = 0) -> None:
        """Begin a run, or continue counting from its earlier parts."""
        self._started = time.perf_counter() - wall_seconds
        self.seconds = seconds
        self.pairs = pairs
        self._logged_seconds = seconds
        self._logged_pairs = pairs

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
        self.bar = tqdm(
            total=state.max_steps,
            initial=state.global_step,
            unit="step",
            dynamic_ncols=True,
            disable=args.disable_tqdm or not sys.stderr.isatty(),
        )

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        """Start the clock."""
        self._step_started = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """Stop the clock and advance the bar."""
        self.seconds += time.perf_counter() - self._step_started
        self.bar.update(1)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Write a line with loss and rate, or with the results of an evaluation."""
        names = [name for name in logs if name not in _NOT_SHOWN]
        if "loss" in logs:
            parts = [f"epoch {state.epoch or 0:.2f}", f"loss {logs['loss']:.4f}"]
            for name in names:
                label = name.replace("megabatch_size", "M").replace("_", " ")
                parts.append(f"{label} {logs[name]:.4g}")
            seconds = self.seconds - self._logged_seconds
            pairs = self.pairs - self._logged_pairs
            parts.append(f"{pairs / max(seconds, 1e-9):,.0f} pairs/s")
            self._logged_seconds = self.seconds
            self._logged_pairs = self.pairs
        else:
            scores = [name for name in names if name.startswith("eval_")]
            parts = [f"{name.removeprefix('eval_')} {logs[name]:.4f}" for name in scores]
        if not parts:
            return
        line = "  ".join([f"step {state.global_step}/{state.max_steps}", *parts])
        if self.bar.disable:
            logger.info(line)
        else:
            self.bar.write(line, file=sys.stderr)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Log the number of pairs and the rate."""
        logger.info(
            f"trained on {self.pairs:,} pairs in {self.seconds:.1f} s: {self.pairs_per_second:,.0f}"
            " pairs/s"
        )


class InterruptCallback(TrainerCallback):
    """Ends a run after the current step on Ctrl-C or SIGTERM; a second signal ends it at once."""

    interrupted = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle the signals within the block; Python allows it only in the main thread."""
        self.interrupted = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        signals = (signal.SIGINT, signal.SIGTERM)
        handlers = [signal.signal(number, self._handle) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, handlers, strict=True):
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
            control.should_save = True
            control.should_training_stop = True

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save nothing more: the epoch has not really ended."""
        if self.interrupted:
            control.should_evaluate = False
            control.should_save = False
