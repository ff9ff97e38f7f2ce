"""Inference: how often a model's own classifier says rightly what a premise means for a hypothesis.

Models without one, those that were not trained on inference, are left out. Files are `label TAB premise TAB hypothesis`
and named like `snli_test.en.tsv` or `xnli_held.es.tsv.xz`, with the language behind the first dot.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.errors import EvaluationError, TextError, short
from st_paragram.families.muse.tasks import LABELS
from st_paragram.tools.evaluation.base import Request, inner_folder
from st_paragram.tools.evaluation.models import score_each
from st_paragram.tools.evaluation.retrieval_files import cells_of
from st_paragram.tools.evaluation.transfer import MAJORITY

_FILE = re.compile(r"([^.]*nli[^.]*(?:\.[A-Za-z]{2,3})?)\.tsv(?:\.(?:xz|gz|bz2))?")

Rows = list[tuple[int, str, str]]  # label, as its place in `LABELS`, premise, hypothesis


@dataclass(frozen=True)
class NliResult:
    """A model: set -> accuracy, a share; seconds of all."""

    sets: dict[str, float]
    seconds: float | None = None


@dataclass(frozen=True)
class NliRun:
    """Models on inference."""

    benchmark: ClassVar[str] = "nli"
    models: dict[str, NliResult]
    pairs: dict[str, int]  # set -> their number
    majority: dict[str, float]  # set -> the share of its most frequent label
    left_out: tuple[str, ...] = ()  # models that have no classifier


RUN = NliRun


def has_data(data: Path) -> bool:
    """Whether a folder of evaluation data has test sets of inference."""
    return bool(nli_files(data))


def nli_files(data: str | Path) -> dict[str, Path]:
    """The test sets of a folder of evaluation data, in its folder `nli` or in itself: name -> file."""
    matches = ((_FILE.fullmatch(path.name), path) for path in sorted(inner_folder(data, "nli").iterdir()))
    return {match[1]: path for match, path in matches if match and path.is_file()}


def read_nli_sets(data: str | Path, languages: Sequence[str] = ()) -> dict[str, Rows]:
    """The test sets of a folder of evaluation data in some languages, all that there are if empty."""
    files = nli_files(data)
    wanted = {name: path for name, path in files.items() if not languages or name.rpartition(".")[2] in languages}
    if not wanted:
        seen = f"no set of {', '.join(languages)}, only {', '.join(files)}" if files else "no sets of inference"
        raise EvaluationError(f"{data}: {seen}; files are named like xnli_held.es.tsv")
    return {name: read_nli(path) for name, path in wanted.items()}


def read_nli(path: Path) -> Rows:
    """Read one file."""
    rows = []
    for number, (label, premise, hypothesis) in cells_of(path, 3, 3):
        if label not in LABELS:
            raise TextError(f"{path}: row {number}: label {short(label)}; there are {', '.join(LABELS)}")
        if not (premise.strip() and hypothesis.strip()):
            raise TextError(f"{path}: row {number}: an empty sentence; complete the row or take it out")
        rows.append((LABELS.index(label), premise, hypothesis))
    return rows


def run(request: Request) -> NliRun:
    """Score the models that have a classifier on the sets of a folder; random embeddings have none."""
    sets = read_nli_sets(request.folder, request.languages)
    found = score_each(request.models, lambda model: score_nli(model, sets), untrained=False)
    results = {name: result for name, result in found.items() if result is not None}
    labels = {name: Counter(label for label, _, _ in rows) for name, rows in sets.items()}
    majority = {name: max(counts.values()) / counts.total() for name, counts in labels.items()}
    left_out = tuple(name for name in found if name not in results)
    return NliRun(results, {name: len(rows) for name, rows in sets.items()}, majority, left_out)


def score_nli(model: Any, sets: Mapping[str, Rows]) -> NliResult | None:  # noqa: ANN401 - perhaps a `DualEncoder`
    """Share of the pairs of each set whose likeliest label is theirs; None for a model without a classifier."""
    if not getattr(model, "has_classifier", False):
        return None
    started, shares = time.perf_counter(), {}
    for name, rows in sets.items():
        labels, premises, hypotheses = zip(*rows, strict=True)
        found = model.classify(list(premises), list(hypotheses)).argmax(1)
        shares[name] = float((found == labels).mean())
    return NliResult(shares, time.perf_counter() - started)


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
