"""Fetch the STS data sets that may be fetched, as `DIR/sts2012/MSRpar.tsv`, ..., `DIR/stsb/en-test.tsv`."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from st_paragram.core.files import atomic, locked, remove_unfinished
from st_paragram.errors import EvaluationError, ParagramError, TextError
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.download import download
from st_paragram.tools.corpora.fetching.transfer import HostNotFound, TransferSettings
from st_paragram.tools.evaluation.graded_pairs import read_graded_pairs
from st_paragram.tools.evaluation.sts.archives import graded_rows, read_members
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, SMT, SetInfo

logger = logging.getLogger(__name__)

BASE = "https://ixa2.si.ehu.eus/stswiki/images/"  # the organizers' own place
MOST_BYTES = 16 * 2**20  # of an archive; the largest has under 2 MiB
SETTINGS = TransferSettings(most_bytes=MOST_BYTES)

_ARCHIVES = ".archives"  # one name, so that what a run leaves that is killed is found by the next
_ELSEWHERE = "take it from the Hugging Face hub (`st-paragram evaluate --hub`)"

LICENCE = "CC BY-SA 4.0 for scores; sentences as their sources say (https://ixa2.si.ehu.eus/stswiki)"

MICROSOFT_TERMS = """\
STS 2012 (MSRpar, MSRvid) and the STS Benchmark hold text of Microsoft Research. Its organizers ask everyone who uses
them to agree with Microsoft's terms first:
  MSRpar  https://www.microsoft.com/en-us/download/details.aspx?id=52398  (Microsoft Research Paraphrase Corpus)
  MSRvid  https://www.microsoft.com/en-us/download/details.aspx?id=52422  (Microsoft Research Video Description Corpus)
Read them; if you agree, give --accept-msr-terms, and do not pass the text on."""

SMT_TERMS = f"""\
STS 2013 SMT ({next(info.pairs for info in BENCHMARKS["2013"].sets if info.key == SMT)} pairs) cannot be fetched: its \
sentences come from corpora of the Linguistic Data Consortium, whose
licence forbids passing them on. The consortium gives them out to those who sign (https://www.ldc.upenn.edu). Put
them as STS.input.SMT.txt into DIR/sts2013, with STS.gs.SMT.txt of
the task's 2013 archive next to it; until then benchmarks report 2013 without SMT."""


@dataclass(frozen=True)
class Archives:
    """Where a benchmark lies, under `BASE`: one archive, or sentences and gold in two."""

    benchmark: str
    paths: tuple[str, ...]
    microsoft: bool = False


ARCHIVES = (
    Archives("2012", ("4/40/STS2012-en-test.zip",), microsoft=True),
    Archives("2013", ("2/2f/STS2013-en-test.zip",)),
    Archives("2014", ("8/8c/STS2014-en-test.zip",)),
    Archives("2015", ("d/da/STS2015-en-test.zip",)),
    Archives("2016", ("9/98/STS2016-en-test.zip",)),
    Archives("2017", ("2/20/Sts2017.eval.v1.1.zip", "7/70/Sts2017.gs.zip")),
    Archives("stsb", ("4/48/Stsbenchmark.tar.gz",), microsoft=True),
)


@dataclass(frozen=True)
class Downloaded:
    """What `download_sts` did.

    Args:
        written: files made.
        kept: files that were there already.
        refused: names of benchmarks that were left out because Microsoft's terms were not accepted.
    """

    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    refused: tuple[str, ...]


def download_sts(
    folder: str | Path,
    accept_msr_terms: bool = False,
    base: str = BASE,
    settings: TransferSettings = SETTINGS,
    *,
    benchmarks: Collection[str] = tuple(BENCHMARKS),
) -> Downloaded:
    """Fetch all sets that are not there yet; one that cannot be fetched does not keep the others from it.

    Each file is checked as `read_graded_pairs` does and appears whole or not at all.

    Args:
        folder: for the sets; made if missing.
        accept_msr_terms: the caller agrees with `MICROSOFT_TERMS`; nothing they concern is fetched otherwise.
        base: address of the archives, ending in a slash. From https no redirection to anything else is followed.
        settings: how patient to be, and how large an archive may be.
        benchmarks: to fetch, of "2012" to "2017" and "stsb".

    Raises:
        EvaluationError: archives could not be fetched or are not what was published; the message names their addresses.
    """
    folder = Path(folder)
    paths = {name: {info: _path(folder, info) for info in _sets(name)} for name in BENCHMARKS}
    missing = {name: {info: path for info, path in sets.items() if not path.is_file()} for name, sets in paths.items()}
    forbidden = [archives.benchmark for archives in ARCHIVES if archives.microsoft and not accept_msr_terms]
    asked = [archives for archives in ARCHIVES if archives.benchmark in benchmarks and missing[archives.benchmark]]
    wanted = [archives for archives in asked if archives.benchmark not in forbidden]
    if not wanted:
        _remove_archives(folder)
    written: list[Path] = []
    failures: list[str] = []
    for number, archives in enumerate(wanted):
        try:
            written += _fetch_benchmark(archives, missing[archives.benchmark], folder, base, settings)
        except HostNotFound as error:  # the others are there too
            lost = len(failures) + len(wanted) - number
            raise EvaluationError(_incomplete(lost, len(wanted), [*failures, str(error)])) from error
        except ParagramError as error:
            logger.warning(str(error))
            failures.append(str(error))
    if failures:
        raise EvaluationError(_incomplete(len(failures), len(wanted), failures))
    kept = [path for name, sets in paths.items() for info, path in sets.items() if info not in missing[name]]
    refused = tuple(name for name in forbidden if missing[name])
    return Downloaded(tuple(written), tuple(kept), refused)


def _incomplete(count: int, wanted: int, reasons: Sequence[str]) -> str:
    return (
        f"{count} of {wanted} benchmarks of STS could not be fetched: {'; '.join(reasons)}; "
        "`st-paragram download --sets sts` fetches what is missing another time"
    )


def _sets(benchmark: str) -> list[SetInfo]:
    return [info for info in BENCHMARKS[benchmark].sets if info.key != SMT]


def _path(folder: Path, info: SetInfo) -> Path:
    name = "stsb" if info.benchmark == "stsb" else f"sts{info.benchmark}"
    return folder / name / f"{info.stems[0]}.tsv"


def _fetch_benchmark(
    archives: Archives, missing: dict[SetInfo, Path], folder: Path, base: str, settings: TransferSettings
) -> list[Path]:
    files = [
        CorpusFile(
            "STS", archives.benchmark, base + path, PurePosixPath(path).name, licence=LICENCE, elsewhere=_ELSEWHERE
        )
        for path in archives.paths
    ]
    members: dict[str, bytes] = {}
    with locked(place := folder / _ARCHIVES):
        try:
            for got in download(files, place, settings=settings):
                members |= read_members(got.path.read_bytes(), got.file.url)
            where = base + archives.paths[0]
            for info, path in missing.items():
                remove_unfinished(path.parent, path.name)
                _write(path, graded_rows(info, members, where), info, where)
        finally:
            shutil.rmtree(place, ignore_errors=True)  # small: fetched again each time
    return list(missing.values())


def _remove_archives(folder: Path) -> None:
    """Remove the archives that a run left that was killed after its last set."""
    place = folder / _ARCHIVES
    if place.is_dir():
        with suppress(ParagramError), locked(place):  # another run may need them
            shutil.rmtree(place, ignore_errors=True)


def _write(path: Path, rows: list[str], info: SetInfo, where: str) -> None:
    try:
        with atomic(path) as handle:
            handle.write("".join(f"{row}\n" for row in rows).encode())
            handle.flush()
            pairs = len(read_graded_pairs(handle.name))
    except TextError as error:
        raise EvaluationError(f"{where}: {info.key} is not what was published: {error}") from error
    logger.info(f"{path}: {pairs} pairs")
    if pairs != info.pairs:
        logger.warning(f"{where}: {info.key} has {pairs} pairs, but officially {info.pairs}")
