"""Which files of Tatoeba a folder of evaluation data lacks, and where they go."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from st_paragram.errors import SettingsError
from st_paragram.tools.corpora.catalogue import CorpusFile
from st_paragram.tools.corpora.resolve import set_files
from st_paragram.tools.evaluation.base import inner_folder
from st_paragram.tools.evaluation.tatoeba import CODES, ENGLISH, tatoeba_files

_SHORT = {long: short for short, long in CODES.items()}


def missing_tatoeba(data: Path, languages: Sequence[str] = ()) -> tuple[list[CorpusFile], Path]:
    """Files to fetch for some languages (all seven of `CODES` if none is named), and the folder for them."""
    folder = inner_folder(data, "tatoeba")
    present = tatoeba_files(folder)
    wanted = [CODES.get(code, code) for code in languages if code not in ENGLISH] if languages else list(_SHORT)
    missing = [code for code in wanted if code not in present]
    if unknown := [code for code in missing if code not in _SHORT]:
        has = f"--fetch has no {', '.join(unknown)}, only {', '.join(_SHORT)}"
        raise SettingsError(f"Tatoeba: {has}; put xxx-eng.tsv (foreign TAB English) into {data}")
    files = set_files("tatoeba", [_SHORT[code] for code in missing]) if missing else []
    return files, folder if present else data / "tatoeba"
