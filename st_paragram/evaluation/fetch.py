"""Fetch what a folder of evaluation data lacks, of the benchmarks whose data may be fetched without a registration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.corpora.fetching.download import download
from st_paragram.corpora.resolve import set_files
from st_paragram.errors import SettingsError
from st_paragram.evaluation.available import Benchmark
from st_paragram.evaluation.sts.download import BASE, LICENCE, Archives, download_sts, wanted_archives
from st_paragram.evaluation.tatoeba_files import CODES, ENGLISH, tatoeba_files, tatoeba_folder

#: Benchmarks whose data can be fetched.
FETCHABLE = (Benchmark.STS, Benchmark.HARD_STS, Benchmark.TATOEBA)

_SHORT = {long: short for short, long in CODES.items()}


@dataclass(frozen=True)
class Missing:
    """What is to be fetched.

    Args:
        folder: where to.
        archives: of the STS tasks.
        translations: files of Tatoeba.
    """

    folder: Path
    archives: Sequence[Archives]
    translations: Sequence[CorpusFile]

    def describe(self) -> str:
        """The addresses with their licences, a line each; empty if nothing is to be fetched."""
        lines = [f"  {BASE}{path}  ({LICENCE})" for archives in self.archives for path in archives.paths]
        lines += [f"  {file.url}  ({file.licence})" for file in self.translations]
        return "\n".join([f"To be fetched into {self.folder}:", *lines]) if lines else ""


def missing_data(
    folder: str | Path, benchmarks: Collection[Benchmark], languages: Sequence[str] = (), accept_msr_terms: bool = False
) -> Missing:
    """Look for what is to be fetched.

    Args:
        folder: of evaluation data.
        benchmarks: those that are wanted.
        languages: of Tatoeba; those of `CODES` if there are none.
        accept_msr_terms: the caller agrees with `MICROSOFT_TERMS`; nothing they concern is fetched otherwise.

    Raises:
        SettingsError: a language of Tatoeba cannot be fetched.
    """
    sts = {Benchmark.STS, Benchmark.HARD_STS}.intersection(benchmarks)
    archives = wanted_archives(folder, accept_msr_terms) if sts else []
    files = _translations(Path(folder), languages) if Benchmark.TATOEBA in benchmarks else []
    return Missing(Path(folder), archives, files)


def fetch(missing: Missing, accept_msr_terms: bool = False) -> None:
    """Fetch it; what is there already is left as it is.

    Raises:
        EvaluationError, DownloadError: something could not be fetched.
    """
    if missing.archives:
        download_sts(missing.folder, accept_msr_terms)
    if missing.translations:
        download(missing.translations, missing.folder / "tatoeba")


def _translations(folder: Path, languages: Sequence[str]) -> list[CorpusFile]:
    there = tatoeba_files(tatoeba_folder(folder))
    wanted = [CODES.get(code, code) for code in languages if code not in ENGLISH] if languages else list(_SHORT)
    missing = [code for code in wanted if code not in there]
    if unknown := [code for code in missing if code not in _SHORT]:
        raise SettingsError(
            f"Tatoeba: {', '.join(unknown)} cannot be fetched, only {', '.join(_SHORT)}; put xxx-eng.tsv into {folder}"
        )
    return set_files("tatoeba", [_SHORT[code] for code in missing]) if missing else []
