"""What benchmarks have in common: what they are asked for, and where a folder keeps their files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.errors import SettingsError


@dataclass(frozen=True)
class Request:
    """What a benchmark is to do; each takes what concerns it.

    Args:
        models: their names.
        data: folder of evaluation data; None if everything is to come from the hub.
        hub: take from the hub what the folder lacks of STS.
        languages: languages of Tatoeba, answer retrieval, inference and mteb; all that there are if empty.
        pairs: pairs of languages of BUCC; all that there are if empty.
        untrained: add random embeddings; mteb scores none.
        compare: on STS, compare every model with the first.
        limit: number of queries of a set of semantic retrieval, the first ones; None: all of them.
        sets: STS benchmarks ("2012", "stsb") and sets ("2017/en-en") to score; all that there are if empty.
        train_gold: gold of BUCC's format, next to its two texts, that chooses the thresholds of BUCC.
        tasks: mteb's names of tasks; all that the data are there for if empty.
        mteb_results: folder that keeps mteb's own results files.
        own_pairs: the user's files of translations.
        distractors: two files of sentences without a partner to mine among, for all of these; or none.
        graded: the user's files of graded pairs.
        retrieval: the user's queries, corpus and qrels; or none.
        columns: of tables, the names of the two texts of a pair, or of a score and two sentences; none for plain text.
    """

    models: Sequence[str]
    data: Path | None
    hub: bool = False
    languages: Sequence[str] = ()
    pairs: Sequence[str] = ()
    untrained: bool = False
    compare: bool = False
    limit: int | None = None
    sets: Sequence[str] = ()
    train_gold: str | None = None
    tasks: Sequence[str] = ()
    mteb_results: Path | None = None
    own_pairs: Sequence[Path] = ()
    distractors: Sequence[Path] = ()
    graded: Sequence[Path] = ()
    retrieval: Sequence[Path] = ()
    columns: Sequence[str] = ()

    @property
    def folder(self) -> Path:
        """The folder of evaluation data, for benchmarks that read nothing from the hub.

        Raises:
            SettingsError: there is none.
        """
        if self.data is None:
            raise SettingsError("no folder of evaluation data; give --data DIR")
        return self.data


def inner_folder(data: str | Path, name: str) -> Path:
    """Where a folder of evaluation data keeps the files of a benchmark: its folder of that name, or itself."""
    inner = Path(data) / name
    return inner if inner.is_dir() else Path(data)
