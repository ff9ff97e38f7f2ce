"""The benchmarks, one line each, and what they are asked for.

The module of a benchmark has `has_data(folder)` and `run(request)`, which returns the scores of all models and their
Markdown, part by part. It is imported when it is used, so that a command can refuse its options at once.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.core.families import FAMILIES
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.tools.evaluation.scores import Score

Found = tuple[list["Score"], Iterator[str]]


@dataclass(frozen=True)
class Request:
    """What is to be scored; each benchmark takes what concerns it.

    Args:
        models: their names.
        data: folder of evaluation data; None if everything comes from the hub or from the user's files.
        hub: take from the hub what the folder lacks of STS and Tatoeba.
        languages: of Tatoeba, BUCC, answer retrieval and inference; all that there are if empty.
        untrained: add random embeddings.
        compare: on STS, compare every model with the first.
        limit: the first queries of each set of semantic retrieval only.
        sets: STS benchmarks ("2012", "stsb") and sets ("2017/en-en"); all that there are if empty.
        train_gold: gold in BUCC's form, next to its two texts, on which the thresholds of BUCC are chosen.
        pairs: the user's files of translations.
        graded: the user's files of graded pairs.
        retrieval: the user's queries, corpus and qrels; or none.
        columns: of tables, the names of the two texts of a pair, or of a score and two sentences.
    """

    models: Sequence[str]
    data: Path | None = None
    hub: bool = False
    languages: Sequence[str] = ()
    untrained: bool = False
    compare: bool = False
    limit: int | None = None
    sets: Sequence[str] = ()
    train_gold: str | None = None
    pairs: Sequence[Path] = ()
    graded: Sequence[Path] = ()
    retrieval: Sequence[Path] = ()
    columns: Sequence[str] = ()

    @property
    def folder(self) -> Path:
        """The folder of evaluation data."""
        if self.data is None:
            raise SettingsError("no folder of evaluation data; give --data DIR")
        return self.data


_ROOM = "st_paragram.tools.evaluation"
#: Name -> module, in the order in which they are run; families add theirs, see `core.families`.
BENCHMARKS = {
    "sts": f"{_ROOM}.sts",
    "hard-sts": f"{_ROOM}.hard_sts",
    "tatoeba": f"{_ROOM}.tatoeba",
    "bucc": f"{_ROOM}.bucc",
    "semantic-retrieval": f"{_ROOM}.semantic_retrieval",
    "answer-retrieval": f"{_ROOM}.answer_retrieval",
    "transfer": f"{_ROOM}.transfer",
    **{name: f"{entry.package}.{name}" for entry in FAMILIES.values() for name in entry.benchmarks},
}
#: Those whose data can come from the Hugging Face hub.
ON_HUB = ("sts", "hard-sts", "tatoeba")


def module(name: str) -> Any:  # noqa: ANN401
    """The module of a benchmark, or of the user's own data ("own")."""
    return importlib.import_module(BENCHMARKS.get(name, f"{_ROOM}.{name}"))


def benchmarks_in(folder: str | Path) -> list[str]:
    """The benchmarks of which a folder has data."""
    return [name for name in BENCHMARKS if module(name).has_data(Path(folder))]


def missing_package(name: str) -> str | None:
    """One line on a package that a benchmark needs and that is not installed; None if nothing is missing."""
    if name != "transfer" or importlib.util.find_spec("sklearn") is not None:
        return None
    return 'scikit-learn is not installed; pip install "st_paragram[probing]"'


def run_benchmark(name: str, request: Request) -> Found:
    """Score models on one benchmark, or on the user's own data ("own")."""
    if request.data is None and name != "own" and not (request.hub and name in ON_HUB):
        raise SettingsError(f"{name}: its data is not read from the hub; give --data DIR")
    found: Found = module(name).run(request)
    return found
