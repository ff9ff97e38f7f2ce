"""Inference: accuracy of a model's own classifier of premises and hypotheses.

Models without a classifier, which were not trained on inference, are left out. Files have rows
`label TAB premise TAB hypothesis` and names like `snli_test.en.tsv` or `xnli_held.es.tsv.xz`, with
the language after the first dot.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from st_paragram.errors import TextError, short
from st_paragram.tools.evaluation import report
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import inner_folder, read_cells
from st_paragram.tools.evaluation.scores import Score
from st_paragram.tools.evaluation.transfer import MAJORITY

_FILE = re.compile(r"([^.]*nli[^.]*(?:\.[A-Za-z]{2,3})?)\.tsv(?:\.(?:xz|gz|bz2))?")

#: The labels, in the order of a classifier's outputs.
NLI_LABELS = ("entailment", "neutral", "contradiction")

Rows = list[tuple[int, str, str]]  # label as its index in `NLI_LABELS`, premise, hypothesis
Sets = dict[str, Rows]

logger = logging.getLogger(__name__)


def find(data: Path, name: str) -> dict[str, Path]:
    """Return the test sets of a folder of evaluation data or its subfolder `nli`: name -> file."""
    matches = (
        (_FILE.fullmatch(path.name), path) for path in sorted(inner_folder(data, "nli").iterdir())
    )
    return {match[1]: path for match, path in matches if match and path.is_file()}


def read(request: Request) -> Sets:
    """Read the test sets of a folder of evaluation data in some languages, or in all languages if
    none is named.
    """
    form = "files are named like xnli_held.es.tsv"
    files = request.choose(
        find(request.data or Path(), ""), form, lambda name: name.rpartition(".")[2]
    )
    return {name: read_nli(path) for name, path in files.items()}


def read_nli(path: Path) -> Rows:
    """Read one file."""
    rows = []
    for number, (label, premise, hypothesis) in read_cells(path, 3, 3):
        if label not in NLI_LABELS:
            raise TextError(
                f"{path}: row {number}: unknown label {short(label)}; use {', '.join(NLI_LABELS)}"
            )
        if not (premise.strip() and hypothesis.strip()):
            raise TextError(
                f"{path}: row {number}: an empty sentence; complete the row or remove it"
            )
        rows.append((NLI_LABELS.index(label), premise, hypothesis))
    return rows


def reference(sets: Sets) -> Iterator[Score]:
    """Yield the share of the most frequent label."""
    for name, rows in sets.items():
        counts = Counter(label for label, _, _ in rows)
        yield Score(
            "majority", "nli", name, "accuracy", max(counts.values()) / len(rows), len(rows)
        )


def score(name: str, model: Any, sets: Sets) -> Iterator[Score]:
    """Yield the share of correctly labeled pairs in each set; nothing for a model without a
    classifier.
    """
    if not getattr(model, "has_classifier", False):
        logger.warning(
            f"{name}: has no classifier, since it was not trained on inference; left out"
        )
        return
    for file, rows in sets.items():
        labels, premises, hypotheses = zip(*rows, strict=True)
        found = model.classify(list(premises), list(hypotheses)).argmax(1)
        yield Score(name, "nli", file, "accuracy", float((found == labels).mean()), len(rows))


def tables(scores: list[Score], _: Sets) -> Iterator[str]:
    """One table."""
    title = "Inference: accuracy x 100 of the model's own classifier"
    yield from report.section(title, scores, MAJORITY)
