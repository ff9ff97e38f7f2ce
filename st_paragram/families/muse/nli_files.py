"""Pairs of sentences with what the first says of the second: files `label TAB premise TAB hypothesis`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.core.damage import short
from st_paragram.errors import EvaluationError, TextError
from st_paragram.tools.evaluation.retrieval_files import cells_of

_FILE = re.compile(r"([^.]*nli[^.]*(?:\.[A-Za-z]{2,3})?)\.tsv(?:\.(?:xz|gz|bz2))?")


@dataclass(frozen=True)
class LabelledPairs:
    """n premises, as many hypotheses, and as many of the labels."""

    name: str
    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]
    labels: tuple[str, ...]


def nli_files(data: str | Path) -> dict[str, Path]:
    """The test sets of a folder of evaluation data, in its folder `nli` or in itself: name -> file.

    Files are named like `snli_test.en.tsv` or `xnli_held.es.tsv.xz`, with the language behind the first dot.
    """
    inner = Path(data) / "nli"
    folder = inner if inner.is_dir() else Path(data)
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
    from st_paragram.families.muse.towers import NLI_LABELS

    rows = []
    for number, (label, premise, hypothesis) in cells_of(Path(path), 3, 3):
        if label not in NLI_LABELS:
            raise TextError(f"{path}: row {number}: label {short(label)}; there are {', '.join(NLI_LABELS)}")
        if not (premise.strip() and hypothesis.strip()):
            raise TextError(f"{path}: row {number}: an empty sentence; complete the row or take it out")
        rows.append((premise, hypothesis, label))
    return LabelledPairs(name, *zip(*rows, strict=True))
