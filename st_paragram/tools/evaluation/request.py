"""The models to score, and the data on which to score them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from st_paragram.errors import EvaluationError

if TYPE_CHECKING:
    from st_paragram.core.encoding.models import TextEncoder

_Set = TypeVar("_Set")


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
    # gives the model of this name random weights, to score them, too; None: not scored
    random_model: Callable[[str], TextEncoder] | None = None
    limit: int | None = None  # score only the first queries of each retrieval set
    # STS benchmarks ("2012", "stsb") and sets ("2017/en-en"); empty: all in the data
    sets: Sequence[str] = ()
    # BUCC gold file, next to its two texts, on which to choose the thresholds
    train_gold: str | None = None
    translations: Sequence[Path] = ()  # the user's files
    graded: Sequence[Path] = ()
    retrieval: Sequence[Path] = ()  # queries, corpus and qrels; or empty
    tasks: Sequence[str] = ()  # of mteb
    results: Path = Path("results")  # folder of mteb's result files
    # columns of tables: the two texts of a pair, or a score and two sentences
    columns: Sequence[str] = ()

    @property
    def folder(self) -> Path:
        """The folder of evaluation data, for benchmarks that are not on the hub."""
        assert self.data is not None  # `run_benchmark` checks it
        return self.data

    def check_found(self, available: Mapping[str, _Set], form: str) -> None:
        """Refuse a folder without data; `form` describes the expected files."""
        if not available:
            raise EvaluationError(f"{self.data}: no {self.benchmark} data; {form}")

    def choose(
        self, available: Mapping[str, _Set], form: str, language: Callable[[str], str]
    ) -> dict[str, _Set]:
        """Return the sets in the requested languages, and those without a language ("").

        Args:
            available: Name -> set.
            form: Description of the expected files.
            language: Returns the language of a set, given its name.
        """
        self.check_found(available, form)
        if not self.languages:
            return dict(available)
        chosen = {}
        for name, item in available.items():
            if language(name) in ("", *self.languages):
                chosen[name] = item
        if not chosen:
            raise EvaluationError(
                f"{self.data}: no {self.benchmark} data for {', '.join(self.languages)}"
                f" (available: {', '.join(available)}); {form}"
            )
        return chosen
