"""Take graded pairs out of the archives in which the STS tasks were published, in memory."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO

from st_paragram.errors import EvaluationError, one_line
from st_paragram.tools.corpora.fetching.checks import leads_out
from st_paragram.tools.evaluation.sts.catalogue import SetInfo

MOST_BYTES = 64 * 2**20  # of all members of an archive; the largest has a few MiB

_HEADERS = 1 << 24  # bytes of a tar archive besides its members

_DAMAGES = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
)


def read_members(data: bytes, url: str) -> dict[str, bytes]:
    """Text files of a zip archive or a compressed tar archive by their names without folders.

    Nothing is written to disk. Of files with one name, as in an archive's `__MACOSX` folder, the first counts.

    Args:
        data: the archive.
        url: where it came from, for messages.

    Raises:
        EvaluationError: it is not such an archive, damaged, a member is too large, or its name leads out of the
            archive.
    """
    members: dict[str, bytes] = {}
    try:
        for name, content in _tar_members(data, url) if url.endswith(".tar.gz") else _zip_members(data, url):
            path = PurePosixPath(name)
            if path.suffix in (".txt", ".csv") and path.name not in members:
                members[path.name] = content.read()
    except _DAMAGES as error:
        raise EvaluationError(f"{url}: no archive that can be read ({one_line(error)}); try again later") from error
    return members


def _zip_members(data: bytes, url: str) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _check(url, sum(info.file_size for info in archive.infolist()), MOST_BYTES)
        for info in archive.infolist():
            _check(url, name=info.orig_filename)
            if not info.is_dir():
                with archive.open(info) as content:
                    yield info.filename, content


def _tar_members(data: bytes, url: str) -> Iterator[tuple[str, IO[bytes]]]:
    with gzip.open(io.BytesIO(data)) as packed:  # unpacked here, since the headers of a tar archive may be bombs too
        whole = packed.read(MOST_BYTES + _HEADERS + 1)
    _check(url, len(whole), MOST_BYTES + _HEADERS)
    unpacked = 0
    with tarfile.open(fileobj=io.BytesIO(whole), mode="r:") as archive:
        for member in archive:
            if member.size < 0:  # would lead back in the archive, again and again
                raise tarfile.ReadError(f"member {member.name!r} has {member.size} bytes")
            _check(url, unpacked := unpacked + member.size, MOST_BYTES, member.name)
            if member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                yield member.name, content
        if any(whole[archive.offset : archive.offset + tarfile.BLOCKSIZE]):  # not the zeros that end an archive
            raise tarfile.ReadError("the header of a member is damaged")


def _check(url: str, unpacked: int = 0, most: int = 0, name: str = "") -> None:
    if leads_out(name):
        raise EvaluationError(f"{url}: member {name!r} points outside the archive; fetch it again from its source")
    if unpacked > most:
        raise EvaluationError(f"{url}: unpacks to more than {most:,} bytes; fetch it again from its source")


def graded_rows(info: SetInfo, members: dict[str, bytes], url: str) -> list[str]:
    """Rows `grade TAB sentence TAB sentence` of one set; pairs that were never graded are left out.

    Args:
        info: the set.
        members: of the archive, or of both, where gold and sentences come apart.
        url: for messages.

    Raises:
        EvaluationError: its files are missing, or sentences and gold are of unequal length.
    """
    for stem in info.stems:
        if release := members.get(f"{stem}.csv"):
            cells = [row.split("\t") for row in _rows(release, url)]
            return ["\t".join((row[4], *row[5:7])) for row in cells if len(row) >= 7]
        for task in ("STS", f"STS{info.benchmark}"):
            sentences, gold = members.get(f"{task}.input.{stem}.txt"), members.get(f"{task}.gs.{stem}.txt")
            if sentences is not None and gold is not None:
                return _joined(_rows(sentences, url), _rows(gold, url), f"{url}: {info.key}")
    raise EvaluationError(f"{url}: has no {info.key} ({info.stems[-1]}); it is not what was published")


def _joined(sentences: list[str], gold: list[str], where: str) -> list[str]:
    if len(sentences) != len(gold):
        raise EvaluationError(f"{where}: {len(sentences)} pairs, but {len(gold)} grades; it is not what was published")
    pairs = zip(gold, sentences, strict=True)
    return ["\t".join((grade.strip(), *row.split("\t")[:2])) for grade, row in pairs if grade.strip()]


def _rows(data: bytes, url: str) -> list[str]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{url}: a text that is not UTF-8 ({error.reason})") from error
    return [row.removesuffix("\r") for row in text.removesuffix("\n").split("\n")]
