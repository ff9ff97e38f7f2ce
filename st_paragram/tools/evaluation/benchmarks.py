"""List the benchmarks, define the request that they receive, and run them.

Each benchmark module has `find(folder, name)`, which finds its data in a folder of evaluation data;
`read(request)`, which returns the data; `score(model, encoder, data)`, which yields the scores of
one model; and `tables(scores, data)`, which yields Markdown in parts. An optional `reference(data)`
yields scores that need no model. Modules are imported only when they are used, so that the command
rejects wrong options immediately.
"""

from __future__ import annotations

import gc
import importlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from st_paragram.errors import EvaluationError, SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.evaluation.scores import Score

logger = logging.getLogger(__name__)
_Set = TypeVar("_Set")

UNTRAINED = "untrained"
_ROOM = "st_paragram.tools.evaluation"
#: Name -> module, in running order; families add more, see `core.families`.
BENCHMARKS = {
    "sts": f"{_ROOM}.sts",
    "hard-sts": f"{_ROOM}.hard_sts",
    **dict.fromkeys(("tatoeba", "ntrex", "flores"), f"{_ROOM}.translations"),
    "bucc": f"{_ROOM}.bucc",
    **dict.fromkeys(("semantic-retrieval", "answer-retrieval"), f"{_ROOM}.retrieval"),
    "transfer": f"{_ROOM}.transfer",
    "nli": f"{_ROOM}.nli",
}
#: Benchmarks whose data can be loaded from the Hugging Face hub.
ON_HUB = ("sts", "hard-sts", "tatoeba", "ntrex", "flores")


@dataclass(frozen=True)
class Request:
    """The models to score and the data to use; each benchmark uses the fields that apply to it."""

    models: Sequence[str]
    benchmark: str = ""  # name of the benchmark; "own" for the user's files
    # folder of evaluation data; None if all data are on the hub or are the user's files
    data: Path | None = None
    hub: bool = False  # load data from the hub if they are missing from the folder
    # for translations, BUCC, retrieval and inference; empty: all in the data
    languages: Sequence[str] = ()
    untrained: bool = False  # also score random embeddings with the first model's vocabulary
    limit: int | None = None  # score only the first queries of each semantic-retrieval set
    # STS benchmarks ("2012", "stsb") and sets ("2017/en-en"); empty: all in the data
    sets: Sequence[str] = ()
    # BUCC gold file, next to its two texts, on which to choose the thresholds
    train_gold: str | None = None
    translations: Sequence[Path] = ()  # the user's files
    graded: Sequence[Path] = ()
    retrieval: Sequence[Path] = ()  # queries, corpus and qrels; or empty
    # columns of tables: the two texts of a pair, or a score and two sentences
    columns: Sequence[str] = ()

    def choose(
        self,
        available: Mapping[str, _Set],
        form: str,
        language: Callable[[str], str] = lambda name: "",
    ) -> dict[str, _Set]:
        """Return the sets in the requested languages or without a language; `form` describes the
        expected files.
        """
        wanted = ("", *self.languages)
        chosen = {
            name: item
            for name, item in available.items()
            if not self.languages or language(name) in wanted
        }
        if not chosen:
            seen = (
                f" for {', '.join(self.languages)} (available: {', '.join(available)})"
                if available
                else ""
            )
            raise EvaluationError(f"{self.data}: no {self.benchmark} data{seen}; {form}")
        return chosen


def benchmarks_in(folder: Path) -> list[str]:
    """Return the names of the benchmarks whose data are in a folder."""
    return [name for name in BENCHMARKS if _module(name).find(folder, name)]


def run_benchmark(name: str, request: Request) -> tuple[list[Score], Iterator[str]]:
    """Score models on one benchmark, or on the user's own data ("own"), with at most one model in
    memory at a time.

    Returns the scores with their differences, and the Markdown in parts.
    """
    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.core.model_directory.find import find
    from st_paragram.core.model_directory.model_files import model_digest
    from st_paragram.tools.evaluation.scores import differences

    if request.data is None and name != "own" and not (request.hub and name in ON_HUB):
        raise SettingsError(f"{name}: the hub does not have the data; give --data DIR")
    module = _module(name)
    data = module.read(replace(request, benchmark=name))
    scores = list(module.reference(data)) if hasattr(module, "reference") else []
    for model in [*dict.fromkeys(request.models), *([UNTRAINED] if request.untrained else [])]:
        logger.info(f"{model}: scoring")
        digest = model_digest(find(model)) if model != UNTRAINED else ""
        encoder = load_encoder(model) if model != UNTRAINED else _random_model(request.models[0])
        scores += [replace(score, digest=digest) for score in module.score(model, encoder, data)]
        del encoder
        gc.collect()  # pipelines contain reference cycles
    scores += list(differences(scores))
    return scores, module.tables(scores, data)


def _module(name: str) -> Any:
    return importlib.import_module(BENCHMARKS.get(name, f"{_ROOM}.{name}"))


def _random_model(name: str) -> Any:
    return importlib.import_module("st_paragram.learning.models.untrained").random_model(name)
