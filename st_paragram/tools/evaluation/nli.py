"""Inference: accuracy of a model's own classifier of premises and hypotheses.

SNLI (Bowman et al., EMNLP 2015) and XNLI (Conneau et al., EMNLP 2018). Models without a classifier,
which were not trained on inference, are left out. Files have rows `label TAB premise TAB
hypothesis` and names like `snli_test.en.tsv` or `xnli_held.es.tsv.xz`, with the language after the
first dot.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_paragram.errors import TextError, short
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.files import (
    check_filled,
    inner_folder,
    matching_files,
    read_cells,
)
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.scores import Score

_FILE = r"([^.]*nli[^.]*(?:\.[A-Za-z]{2,3})?)\.tsv(?:\.(?:xz|gz|bz2))?"

#: The labels, in the order of a classifier's outputs.
NLI_LABELS = ("entailment", "neutral", "contradiction")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class InferenceSet:
    """Pairs of a premise and a hypothesis, with labels as indices in `NLI_LABELS`."""

    labels: list[int]
    premises: list[str]
    hypotheses: list[str]


Sets = dict[str, InferenceSet]  # by name


def find(data: Path, benchmark: str) -> dict[str, Path]:
    """Return the test sets of a folder of evaluation data or its subfolder `nli`: name -> file."""
    return matching_files(inner_folder(data, "nli"), _FILE)


def read(request: Request) -> Sets:
    """Read the test sets of the requested languages (default: all)."""
    files = request.choose(
        find(request.folder, "nli"),
        form="files are named like xnli_held.es.tsv",
        language=lambda name: name.rpartition(".")[2],
    )
    return {name: read_nli(path) for name, path in files.items()}


def read_nli(path: Path) -> InferenceSet:
    """Read one file."""
    pairs = InferenceSet([], [], [])
    for number, (label, premise, hypothesis) in read_cells(path, 3, 3):
        if label not in NLI_LABELS:
            raise TextError(
                f"{path}: row {number}: unknown label {short(label)}; use {', '.join(NLI_LABELS)}"
            )
        check_filled(path, number, premise, hypothesis)
        pairs.labels.append(NLI_LABELS.index(label))
        pairs.premises.append(premise)
        pairs.hypotheses.append(hypothesis)
    return pairs


def reference(sets: Sets) -> Iterator[Score]:
    """Yield the share of the most frequent label."""
    for name, pairs in sets.items():
        ((_, count),) = Counter(pairs.labels).most_common(1)
        yield _accuracy(report.MAJORITY, name, count / len(pairs.labels), len(pairs.labels))


def score(name: str, model: Any, sets: Sets) -> Iterator[Score]:
    """Yield the share of correctly labeled pairs in each set.

    Nothing is yielded for a model without a classifier.
    """
    if not getattr(model, "has_classifier", False):
        logger.warning(
            f"{name}: has no classifier, since it was not trained on inference; left out"
        )
        return
    for set_name, pairs in sets.items():
        probabilities = model.classify(pairs.premises, pairs.hypotheses)
        is_right = probabilities.argmax(1) == pairs.labels
        yield _accuracy(name, set_name, float(is_right.mean()), len(pairs.labels))


def _accuracy(model: str, name: str, value: float, items: int) -> Score:
    return Score(model, "nli", name, measure="accuracy", value=value, items=items)


def tables(scores: list[Score], sets: Sets) -> Iterator[str]:
    """Yield one table."""
    title = "Inference: accuracy x 100 of the model's own classifier"
    yield from report.section(title, scores, note=report.MAJORITY_NOTE)
