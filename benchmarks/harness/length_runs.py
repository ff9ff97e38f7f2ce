"""Time and memory of encoding by the length of texts.

All models are loaded in one process for the times: in each round every model encodes texts of every length, beginning
with another one. Memory is that of a fresh process for each model and length.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from tqdm import tqdm

from harness.length_memory import Memory, MemoryJob, memory_of
from harness.length_models import texts_of
from st_paragram.errors import SettingsError
from st_paragram.learning.models.directory import load

logger = logging.getLogger(__name__)

_LEAST_SECONDS = 0.1  # of a round: what is quicker is repeated


@dataclass(frozen=True)
class LengthOptions:
    """What is measured.

    Attributes:
        lengths: Tokens of the texts; they are sorted.
        batch: Texts of a call.
        rounds: Times that each time is taken; the median counts.
        threads: Of a process.
        devices: Torch devices; all there are if empty.
        memory: Whether memory is measured, too.

    Raises:
        SettingsError: numbers below 1, or a GPU that is not there.
    """

    lengths: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)
    batch: int = 8
    rounds: int = 5
    threads: int = 1
    devices: tuple[str, ...] = ()
    memory: bool = True

    def __post_init__(self) -> None:
        """Check, sort the lengths and find the devices."""
        counts = {"batch": (self.batch,), "rounds": (self.rounds,), "threads": (self.threads,)}
        for name, values in {"lengths": self.lengths, **counts}.items():
            if min(values, default=0) < 1:
                raise SettingsError(f"{name} {' '.join(map(str, values))}; give 1 or more")
        has_gpu = torch.cuda.is_available()
        if "cuda" in self.devices and not has_gpu:
            raise SettingsError("--devices cuda: there is no GPU that torch can use; leave it out")
        object.__setattr__(self, "lengths", tuple(sorted(set(self.lengths))))
        object.__setattr__(self, "devices", self.devices or (("cpu", "cuda") if has_gpu else ("cpu",)))


@dataclass
class LengthRun:
    """A model with texts of one length.

    Attributes:
        model: Name of its directory.
        device: Torch device.
        length: Tokens of each text, without the ends that the model puts behind it.
        seconds: Of `encode` for one text of a batch, tokenisation and all; one for each round.
        token_seconds: Of tokenisation alone.
        memory: None: not measured.
    """

    model: str
    device: str
    length: int
    seconds: list[float] = field(default_factory=list)
    token_seconds: list[float] = field(default_factory=list)
    memory: Memory | None = None

    @property
    def time(self) -> float:
        """The median of `seconds`."""
        return statistics.median(self.seconds)

    @property
    def token_time(self) -> float:
        """The median of `token_seconds`."""
        return statistics.median(self.token_seconds)


@dataclass
class _Work:
    """A run to be measured: the model with its texts, and how many calls make a round."""

    run: LengthRun
    directory: str
    model: SentenceTransformer
    texts: list[str]
    calls: tuple[int, int] = (1, 1)


def measure(models: Sequence[str], options: LengthOptions) -> list[LengthRun]:
    """Time and memory of models on devices with texts of every length, in this order.

    Args:
        models: directories, or other names that `st_paragram.load` knows.
        options: what is measured.

    Raises:
        ParagramError: a model that cannot be loaded, or does not read texts as long. Nothing has been measured then.
    """
    works = list(_works(models, options))
    with _threads(options.threads):
        _time(works, options)
    for work in tqdm(works if options.memory else [], desc="memory", disable=None):
        job = MemoryJob(work.directory, work.run.device, work.run.length, options.batch)
        found = memory_of(job, options.threads)
        if isinstance(found, Memory):
            work.run.memory = found
        else:
            logger.warning(f"{work.run.model}, {work.run.length} tokens: memory not measured: {found}")
    return [work.run for work in works]


def _works(models: Sequence[str], options: LengthOptions) -> Iterator[_Work]:
    short = [Path(name).name for name in models]
    names = short if len(set(short)) == len(short) else models
    for device in options.devices:
        for name, directory in zip(names, models, strict=True):
            model = load(directory, device=device)
            for length in options.lengths:
                try:
                    texts = texts_of(model, length, options.batch)
                except SettingsError as error:
                    raise SettingsError(f"{directory}: {error}") from error
                yield _Work(LengthRun(name, device, length), directory, model, texts)


def _time(works: Sequence[_Work], options: LengthOptions) -> None:
    with tqdm(total=len(works) * (options.rounds + 1), desc="time", disable=None) as bar:
        for work in works:  # the first call warms up, the second tells how many make a round
            _encode(work)
            _tokenise(work)
            once = (_seconds(_encode, work, 1), _seconds(_tokenise, work, 1))
            work.calls = (_calls(once[0]), _calls(once[1]))
            bar.update()
        for number in range(options.rounds):
            first = number * len(works) // options.rounds
            for work in [*works[first:], *works[:first]]:
                work.run.seconds.append(_seconds(_encode, work, work.calls[0]) / options.batch)
                work.run.token_seconds.append(_seconds(_tokenise, work, work.calls[1]) / options.batch)
                bar.update()


def _calls(seconds: float) -> int:
    return 1 + int(_LEAST_SECONDS / max(seconds, 1e-6))


def _seconds(do: Callable[[_Work], None], work: _Work, calls: int) -> float:
    """Of one call, the mean of so many."""
    started = time.perf_counter()
    for _ in range(calls):
        do(work)
    return (time.perf_counter() - started) / calls


def _encode(work: _Work) -> None:
    work.model.encode(work.texts, batch_size=len(work.texts), show_progress_bar=False)  # an array: a GPU has ended


def _tokenise(work: _Work) -> None:
    work.model.preprocess(work.texts)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
