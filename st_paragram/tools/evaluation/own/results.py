"""What models reach on files of the user's, with intervals, and how far they are from the first model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.tables import MISSING, hundredths, markdown_table
from st_paragram.tools.evaluation.bootstrap import comparison, interval
from st_paragram.tools.evaluation.results import Comparison

SEED = 0


@dataclass(frozen=True)
class Figure:
    """A share or a correlation with the ends of its 95 % interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FileResult:
    """A model on one file.

    Args:
        figures: measure -> figure.
        differences: measure -> what this model has more than the first one; empty for the first one.
    """

    figures: dict[str, Figure]
    differences: dict[str, Comparison | None] = field(default_factory=dict)


@dataclass(frozen=True)
class OwnResult:
    """A model: file -> result."""

    files: dict[str, FileResult]


@dataclass(frozen=True)
class OwnRun:
    """Models on files of one kind.

    Args:
        models: name -> result, all on the same files.
        sizes: file -> what it has, in words.
        notes: one line for everything odd in the files.
        resamples: file -> resamples of the bootstrap.
        seed: of all that is drawn.
    """

    benchmark: ClassVar[str]
    models: dict[str, OwnResult]
    sizes: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    resamples: dict[str, int] = field(default_factory=dict)
    seed: int = SEED


@dataclass(frozen=True)
class Sample:
    """A measure of one model on one file: its figure, and the same on resamples, (R,), drawn alike for all models."""

    value: float
    resampled: NDArray[np.float64]


#: Of one file: model -> measure -> sample.
Samples = Mapping[str, Mapping[str, Sample]]


def results_of(files: Mapping[str, Samples], compared: Sequence[str]) -> dict[str, OwnResult]:
    """What a run holds of its models.

    Args:
        files: file -> samples, of the same models in the same order.
        compared: the measures in which models are compared with the first one.
    """
    made: dict[str, dict[str, FileResult]] = {}
    for file, samples in files.items():
        first = next(iter(samples.values()))
        for model, own in samples.items():
            others = {name: first[name] for name in compared if own is not first and name in first}
            differences = {name: _difference(sample, own[name]) for name, sample in others.items()}
            figures = {name: _figure(sample) for name, sample in own.items()}
            made.setdefault(model, {})[file] = FileResult(figures, differences)
    return {model: OwnResult(of_files) for model, of_files in made.items()}


def report_of(run: OwnRun, title: str, reading: str) -> Iterator[str]:
    """A table with a group of rows for each file, the differences to the first model, and notes, part by part."""
    measures = list(
        dict.fromkeys(name for of in run.models.values() for file in of.files.values() for name in file.figures)
    )
    cells = [
        [label, model, *(_cell(of.files[file].figures.get(name)) for name in measures)]
        for file, size in run.sizes.items()
        for label, (model, of) in zip(_once(f"{file}: {size}", len(run.models)), run.models.items(), strict=True)
    ]
    yield f"## {title} x 100 [95 % interval]\n\n{reading}\n"
    yield markdown_table(["file", "model", *measures], cells, left=2) + "\n"
    differences = [
        [file, model, name, *_difference_cells(found)]
        for file in run.sizes
        for model, of in run.models.items()
        for name, found in of.files[file].differences.items()
    ]
    if differences:
        yield f"### Differences to {next(iter(run.models))} x 100: paired bootstrap\n"
        yield (
            markdown_table(["file", "model", "measure", "difference", "95 % interval", "p"], differences, left=3) + "\n"
        )
    counts = " or ".join(f"{count:,}" for count in sorted(set(run.resamples.values())))
    yield f"The intervals are percentiles of {counts} bootstrap resamples with seed {run.seed}."
    yield from (f"- {note}" for note in run.notes)


def _once(label: str, rows: int) -> list[str]:
    return [label, *[""] * (rows - 1)]


def _figure(sample: Sample) -> Figure:
    ends = interval(sample.resampled)
    return Figure(_defined(sample.value), _defined(ends.low), _defined(ends.high))


def _difference(first: Sample, own: Sample) -> Comparison | None:
    found = comparison(first.value, own.value, first.resampled, own.resampled)
    return found if math.isfinite(found.difference) else None


def _defined(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _cell(figure: Figure | None) -> str:
    if figure is None or figure.value is None:
        return MISSING
    return f"{hundredths(figure.value)} [{hundredths(figure.low)}, {hundredths(figure.high)}]"


def _difference_cells(found: Comparison | None) -> list[str]:
    if found is None:
        return [MISSING] * 3
    return [
        f"{100 * found.difference:+.1f}",
        f"{100 * found.low:+.1f} .. {100 * found.high:+.1f}",
        f"{found.p_value:.4f}",
    ]
