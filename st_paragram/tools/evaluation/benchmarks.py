"""The benchmarks, one line each, what they are asked for, and the run that all of them share.

The module of a benchmark has `find(folder, name)`, what a folder of evaluation data has of it; `read(request)`, which
returns its data; `score(model, encoder, data)`, which yields the scores of one model; and `tables(scores, data)`, their
Markdown, part by part. It may have `reference(data)`: scores that need no model. It is imported when it is used, so
that a command can refuse its options at once.
"""

from __future__ import annotations

import gc
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from st_paragram.core.families import FAMILIES
from st_paragram.errors import EvaluationError, SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.evaluation.scores import Score

logger = logging.getLogger(__name__)
_Set = TypeVar("_Set")

UNTRAINED = "untrained"
_ROOM = "st_paragram.tools.evaluation"
#: Name -> module, in the order in which they are run; families add theirs, see `core.families`.
BENCHMARKS = {
    "sts": f"{_ROOM}.sts",
    "hard-sts": f"{_ROOM}.hard_sts",
    **dict.fromkeys(("tatoeba", "ntrex", "flores"), f"{_ROOM}.translations"),
    "bucc": f"{_ROOM}.bucc",
    **dict.fromkeys(("semantic-retrieval", "answer-retrieval"), f"{_ROOM}.retrieval"),
    "transfer": f"{_ROOM}.transfer",
    **{name: f"{entry.package}.{name}" for entry in FAMILIES.values() for name in entry.benchmarks},
}
#: Those whose data can come from the Hugging Face hub.
ON_HUB = ("sts", "hard-sts", "tatoeba", "ntrex", "flores")


@dataclass(frozen=True)
class Request:
    """What is to be scored; each benchmark takes what concerns it."""

    models: Sequence[str]
    benchmark: str = ""  # its name; "own" for the user's files
    data: Path | None = None  # folder of evaluation data; None if everything is the hub's or the user's
    hub: bool = False  # take from the hub what the folder lacks
    languages: Sequence[str] = ()  # of translations, BUCC, retrieval and inference; all that there are if empty
    untrained: bool = False  # add random embeddings over the first model's vocabulary
    limit: int | None = None  # the first queries of each set of semantic retrieval only
    sets: Sequence[str] = ()  # STS benchmarks ("2012", "stsb") and sets ("2017/en-en"); all that there are if empty
    train_gold: str | None = None  # gold in BUCC's form, next to its two texts, to choose the thresholds of BUCC on
    translations: Sequence[Path] = ()  # the user's files
    graded: Sequence[Path] = ()
    retrieval: Sequence[Path] = ()  # queries, corpus and qrels; or none
    columns: Sequence[str] = ()  # of tables: the two texts of a pair, or a score and two sentences

    def choose(
        self, found: Mapping[str, _Set], form: str, language: Callable[[str], str] = lambda name: ""
    ) -> dict[str, _Set]:
        """Of the sets found in the folder, those in the languages wanted or in none; `form` says what sets are."""
        wanted = ("", *self.languages)
        chosen = {name: each for name, each in found.items() if not self.languages or language(name) in wanted}
        if not chosen:
            seen = f"in {', '.join(self.languages)}, only {', '.join(found)}" if found else "at all"
            raise EvaluationError(f"{self.data}: no data of {self.benchmark} {seen}; {form}")
        return chosen


def benchmarks_in(folder: Path) -> list[str]:
    """The benchmarks of which a folder has data."""
    return [name for name in BENCHMARKS if _module(name).find(folder, name)]


def run_benchmark(name: str, request: Request) -> tuple[list[Score], Iterator[str]]:
    """Score models on one benchmark, or on the user's own data ("own"): scores, differences, and Markdown by parts.

    At most one model is in memory.
    """
    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.tools.evaluation.scores import differences

    if request.data is None and name != "own" and not (request.hub and name in ON_HUB):
        raise SettingsError(f"{name}: its data is not read from the hub; give --data DIR")
    module = _module(name)
    data = module.read(replace(request, benchmark=name))
    scores = list(module.reference(data)) if hasattr(module, "reference") else []
    for model in [*dict.fromkeys(request.models), *([UNTRAINED] if request.untrained else [])]:
        logger.info(f"{model}: scoring")
        encoder = load_encoder(model) if model != UNTRAINED else _random_model(request.models[0])
        scores += module.score(model, encoder, data)
        del encoder
        gc.collect()  # pipelines refer to themselves
    scores += list(differences(scores))
    return scores, module.tables(scores, data)


def _module(name: str) -> Any:  # noqa: ANN401
    return importlib.import_module(BENCHMARKS.get(name, f"{_ROOM}.{name}"))


def _random_model(name: str) -> Any:  # noqa: ANN401 - by its name, since it needs torch
    return importlib.import_module("st_paragram.learning.models.untrained").random_model(name)
