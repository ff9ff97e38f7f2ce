"""Inference: how often a model's own classifier says rightly what a premise means for a hypothesis.

Models without one, those that were not trained on inference, are left out. Files are `label TAB premise TAB hypothesis`
and named like `snli_test.en.tsv` or `xnli_held.es.tsv.xz`, with the language behind the first dot.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np

from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.errors import EvaluationError, TextError, short
from st_paragram.families.muse.tasks import LABELS
from st_paragram.tools.evaluation.base import Request, inner_folder
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.retrieval_files import cells_of
from st_paragram.tools.evaluation.transfer import MAJORITY

_FILE = re.compile(r"([^.]*nli[^.]*(?:\.[A-Za-z]{2,3})?)\.tsv(?:\.(?:xz|gz|bz2))?")


@dataclass(frozen=True)
class LabelledPairs:
    """n premises, as many hypotheses, and as many of the labels."""

    name: str
    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class NliResult:
    """A model: set -> accuracy, a share; seconds of all."""

    sets: dict[str, float]
    seconds: float | None = None


@dataclass(frozen=True)
class NliRun:
    """Models on inference.

    Args:
        models: name -> result.
        pairs: set -> their number.
        majority: set -> the share of its most frequent label.
        left_out: models that have no classifier.
    """

    benchmark: ClassVar[str] = "nli"
    models: dict[str, NliResult]
    pairs: dict[str, int]
    majority: dict[str, float]
    left_out: tuple[str, ...] = ()


RUN = NliRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has test sets of inference."""
    return bool(nli_files(data))


def nli_files(data: str | Path) -> dict[str, Path]:
    """The test sets of a folder of evaluation data, in its folder `nli` or in itself: name -> file."""
    folder = inner_folder(data, "nli")
    matches = ((_FILE.fullmatch(path.name), path) for path in sorted(folder.iterdir()) if path.is_file())
    return {match[1]: path for match, path in matches if match}


def read_nli_sets(data: str | Path, languages: Sequence[str] = ()) -> list[LabelledPairs]:
    """Read the test sets of a folder of evaluation data.

    Args:
        data: the folder, see `nli_files`.
        languages: all that there are if empty.

    Raises:
        EvaluationError: there are none, or none of a language asked for.
        TextError: as `read_nli`.
    """
    files = nli_files(data)
    wanted = [name for name in files if not languages or name.rpartition(".")[2] in languages]
    if not wanted:
        seen = f"no set of {', '.join(languages)}, only {', '.join(files)}" if files else "no sets of inference"
        raise EvaluationError(f"{data}: {seen}; files are named like xnli_held.es.tsv")
    return [read_nli(files[name], name) for name in wanted]


def read_nli(path: str | Path, name: str) -> LabelledPairs:
    """Read one file.

    Raises:
        TextError: the file is empty or cannot be read, or a row (with its number) has other than three cells, an empty
            one, or another label.
    """
    rows = []
    for number, (label, premise, hypothesis) in cells_of(Path(path), 3, 3):
        if label not in LABELS:
            raise TextError(f"{path}: row {number}: label {short(label)}; there are {', '.join(LABELS)}")
        if not (premise.strip() and hypothesis.strip()):
            raise TextError(f"{path}: row {number}: an empty sentence; complete the row or take it out")
        rows.append((premise, hypothesis, label))
    return LabelledPairs(name, *zip(*rows, strict=True))


def run(request: Request) -> NliRun:
    """Score the models that have a classifier on the sets of a folder; random embeddings have none.

    Raises:
        EvaluationError, TextError: as `read_nli_sets`.
        ModelDirectoryError: a model is not there or cannot be read.
    """
    sets = read_nli_sets(request.folder, request.languages)
    found = score_each(request.models, lambda model: score_nli(model, sets), untrained=False)
    results = {name: result for name, result in found.items() if result is not None}
    pairs = {each.name: len(each.labels) for each in sets}
    majority = {each.name: max(Counter(each.labels).values()) / len(each.labels) for each in sets}
    return NliRun(results, pairs, majority, tuple(name for name in found if name not in results))


def score_nli(model: object, sets: Sequence[LabelledPairs]) -> NliResult | None:
    """Accuracy of a model on each set; None for a model without a classifier."""
    if not getattr(model, "has_classifier", False):
        return None
    started = time.perf_counter()
    return NliResult({each.name: accuracy(model, each) for each in sets}, time.perf_counter() - started)


def accuracy(model: object, pairs: LabelledPairs) -> float:
    """Share of the pairs whose likeliest label is theirs, for a model with `classify` (see `DualEncoder`)."""
    classifier: Any = model
    probabilities = classifier.classify(list(pairs.premises), list(pairs.hypotheses))
    gold = np.array([LABELS.index(label) for label in pairs.labels])
    return float((probabilities.argmax(1) == gold).mean())


def report(found: NliRun) -> Iterator[str]:
    """One table of the majority and all models, and a line on those that were left out."""
    sets = list(found.pairs)
    rows = {"majority": list(found.majority.values())}
    rows |= {name: [result.sets[each] for each in sets] for name, result in found.models.items()}
    cells = [[name, *map(hundredths, figures), hundredths(fmean(figures))] for name, figures in rows.items()]
    yield "## Inference: accuracy x 100 of the model's own classifier\n"
    yield f"{MAJORITY}\n"
    yield markdown_table(["model", *sets, "mean"], cells)
    if found.left_out:
        yield f"\nModels without a classifier, not trained on inference, were left out: {', '.join(found.left_out)}."
