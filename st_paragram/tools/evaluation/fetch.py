"""Fetch what a folder of evaluation data lacks, of the benchmarks whose data may be fetched without a registration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from st_paragram.errors import EvaluationError, SettingsError
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.download import download
from st_paragram.tools.corpora.resolve import set_files
from st_paragram.tools.evaluation.base import inner_folder
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, NOT_SCORED, SMT
from st_paragram.tools.evaluation.sts.download import ARCHIVES, BASE, LICENCE, Archives, download_sts
from st_paragram.tools.evaluation.sts.sts_files import find_sts
from st_paragram.tools.evaluation.tatoeba import CODES, ENGLISH, tatoeba_files

#: Benchmarks whose data can be fetched.
FETCHABLE = ("sts", "hard-sts", "tatoeba")

_SHORT = {long: short for short, long in CODES.items()}


@dataclass(frozen=True)
class Missing:
    """What is to be fetched.

    Args:
        folder: where to.
        archives: of the STS tasks.
        translations: files of Tatoeba.
        refused: names of STS benchmarks that are left out because Microsoft's terms were not accepted.
    """

    folder: Path
    archives: Sequence[Archives]
    translations: Sequence[CorpusFile]
    refused: Sequence[str] = ()

    @property
    def addresses(self) -> list[str]:
        """Where the archives of STS come from."""
        return [f"{BASE}{path}" for archives in self.archives for path in archives.paths]

    def describe(self) -> str:
        """The addresses with their licences, a line each; empty if nothing is to be fetched."""
        lines = [f"  {address}  ({LICENCE})" for address in self.addresses]
        lines += [f"  {file.url}  ({file.licence})" for file in self.translations]
        return "\n".join([f"To be fetched into {self.folder}:", *lines]) if lines else ""


def missing_data(
    folder: str | Path, benchmarks: Collection[str], languages: Sequence[str] = (), accept_msr_terms: bool = False
) -> Missing:
    """Look for what is to be fetched; data that are there in another layout are left as they are.

    Args:
        folder: of evaluation data.
        benchmarks: those that are wanted.
        languages: of Tatoeba; those of `CODES` if there are none.
        accept_msr_terms: the caller agrees with `MICROSOFT_TERMS`; nothing they concern is fetched otherwise.

    Raises:
        SettingsError: a language of Tatoeba cannot be fetched.
        TextError: a file that is there is broken.
    """
    folder = Path(folder)
    sts = {"sts", "hard-sts"}.intersection(benchmarks)
    incomplete = _incomplete(folder) if sts else ()
    archives = [each for each in ARCHIVES if each.benchmark in incomplete]
    wanted = [each for each in archives if accept_msr_terms or not each.microsoft]
    refused = [each.benchmark for each in archives if each not in wanted]
    files = _translations(folder, languages) if "tatoeba" in benchmarks else []
    return Missing(folder, wanted, files, refused)


def fetch(missing: Missing, accept_msr_terms: bool = False) -> None:
    """Fetch it; what is there already is left as it is.

    Raises:
        EvaluationError, DownloadError: something could not be fetched.
    """
    if missing.archives:
        wanted = [archives.benchmark for archives in missing.archives]
        download_sts(missing.folder, accept_msr_terms, benchmarks=wanted)
    if missing.translations:
        place = inner_folder(missing.folder, "tatoeba")
        download(missing.translations, place if tatoeba_files(place) else missing.folder / "tatoeba")


def _incomplete(folder: Path) -> list[str]:
    """STS benchmarks of which a set is not there that is scored and can be fetched."""
    there: Collection[str] = ()
    with suppress(EvaluationError):  # no such folder yet, or nothing of STS in it
        there = find_sts(folder).sets
    there = {SMT, *NOT_SCORED, *there}
    return [name for name, benchmark in BENCHMARKS.items() if any(info.key not in there for info in benchmark.sets)]


def _translations(folder: Path, languages: Sequence[str]) -> list[CorpusFile]:
    there = tatoeba_files(inner_folder(folder, "tatoeba"))
    wanted = [CODES.get(code, code) for code in languages if code not in ENGLISH] if languages else list(_SHORT)
    missing = [code for code in wanted if code not in there]
    if unknown := [code for code in missing if code not in _SHORT]:
        raise SettingsError(
            f"Tatoeba: {', '.join(unknown)} cannot be fetched, only {', '.join(_SHORT)}; put xxx-eng.tsv into {folder}"
        )
    return set_files("tatoeba", [_SHORT[code] for code in missing]) if missing else []
