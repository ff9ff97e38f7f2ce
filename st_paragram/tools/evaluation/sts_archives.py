"""Write the sets of STS 2012-2017 and the STS Benchmark from the archives of their organizers.

These are the archives that SentEval names, and those of SemEval 2017, task 1. Only members with
the expected names are read, so an archive cannot write anywhere. What is written must have the
digest of the published set. STS 2013 SMT is not in the archives: only the Linguistic Data
Consortium may distribute it (LDC2013T18).
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from st_paragram.core.files import write_text
from st_paragram.errors import DownloadError, TextError, refused
from st_paragram.tools.evaluation.files import graded_pairs, read_graded_pairs
from st_paragram.tools.evaluation.known_sets import name_of_graded
from st_paragram.tools.evaluation.sts_sets import ENTRIES, INFOS, SMT, SetInfo

_LARGEST_MEMBER = 1 << 24  # bytes; the largest has 1 MB
_STSB_ARCHIVE = "Stsbenchmark.tar.gz"


def write_sets(archives: Path, output: Path) -> list[Path]:
    """Write `sts2012/MSRpar.tsv`, ..., `stsb/en-test.tsv` (a grade and two sentences).

    Files that are there and complete are left alone; other files are refused.

    Args:
        archives: Folder of the archives.
        output: Folder of evaluation data.

    Returns:
        The files that were written.
    """
    written = []
    for info in INFOS.values():
        path = output / info.folder / f"{info.stem}.tsv"
        if info.key == SMT or _is_complete(path, info):
            continue
        rows = list(_rows(archives, info))
        pairs = graded_pairs(info.key, enumerate(rows, 1))
        if name_of_graded(pairs) != info.key:
            raise DownloadError(
                f"{archives}: the archives have other pairs than the published set {info.key};"
                " remove them and download them again"
            )
        write_text(path, "".join("\t".join(row) + "\n" for row in rows))
        written.append(path)
    return written


def _is_complete(path: Path, info: SetInfo) -> bool:
    """Whether a file has the published set; other files are refused."""
    if not path.exists():
        return False
    try:
        name = name_of_graded(read_graded_pairs(path))
    except TextError:
        name = ""
    if name != info.key:
        raise DownloadError(
            f"{path} exists and is not the published set {info.key}; move it, or choose another"
            " folder"
        )
    return True


def _rows(archives: Path, info: SetInfo) -> Iterator[list[str]]:
    """Yield grade and sentences of each graded pair, without surrounding spaces."""
    if info.benchmark == "stsb":
        member = f"stsbenchmark/{info.stem.replace('en-', 'sts-')}.csv"
        for line in _lines(archives / _STSB_ARCHIVE, member):
            # genre, file, year and number come first, notes on the license last
            yield [cell.strip() for cell in line.split("\t")[4:7]]
        return
    stem = info.archived or info.stem
    lines = {}
    for part, (archive, member) in ENTRIES[info.benchmark]["archives"].items():
        lines[part] = _lines(archives / archive, member.format(stem=stem))
    # only the first half of the Turkish pairs has grades
    for line, grade in zip(lines["sentences"], lines["grades"], strict=False):
        if grade.strip():
            yield [grade.strip(), *(cell.strip() for cell in line.split("\t")[:2])]


def _lines(archive: Path, member: str) -> list[str]:
    """Return the lines of a member of a zip or tar.gz archive."""
    damaged = (zipfile.BadZipFile, tarfile.TarError, zlib.error)
    advice = "remove the archive and download it again"
    with refused(DownloadError, archive, f"cannot read {member}", advice, *damaged):
        content = _content(archive, member)
        if len(content) > _LARGEST_MEMBER:
            raise ValueError(f"more than {_LARGEST_MEMBER:,} bytes")
        return content.decode("utf-8").removesuffix("\n").split("\n")


def _content(archive: Path, member: str) -> bytes:
    """Return a regular file of an archive, or its first bytes if it is too large."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zip_file, zip_file.open(member) as file:
            return file.read(_LARGEST_MEMBER + 1)
    with tarfile.open(archive) as tar_file:
        entry = tar_file.getmember(member)
        if not entry.isreg():
            raise ValueError("not a regular file")
        extracted = tar_file.extractfile(entry)
        assert extracted is not None
        return extracted.read(_LARGEST_MEMBER + 1)
