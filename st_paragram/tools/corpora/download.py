"""Download files to a folder, resumed after interruptions, checked, and recorded."""

from __future__ import annotations

import errno
import logging
import queue
import re
import shutil
import threading
import zipfile
from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import requests
import urllib3
from tqdm import tqdm

from st_paragram.core.files import content_digest, file_for_folder, read_json, write_json
from st_paragram.core.outputs import check_output, check_place, output_lock
from st_paragram.errors import DownloadError, SettingsError, one_line, refused
from st_paragram.tools.corpora.catalogue import CorpusFile
from st_paragram.tools.corpora.transfer import (
    UNANNOUNCED,
    TooLargeError,
    Transfer,
    TryAgain,
    check_encoding,
)

logger = logging.getLogger(__name__)

TRIES = 6  # in a row without progress, and starts from the first byte
# Seconds between tries, doubled each time
FIRST_WAIT = 1.0
LONGEST_WAIT = 120.0
_PROGRESS = 1 << 20  # new bytes that reset the count of failures
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_GRACE = 1.0  # seconds after Ctrl-C for closing partial files
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)  # `Content-Length`
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)", re.ASCII)  # `Content-Range`
_VALIDATOR = re.compile(r'"[!-~]*"|[\w ,:+-]+', re.ASCII)  # a strong ETag, or a date


@dataclass(frozen=True)
class Fetched:
    """A file in the folder."""

    file: CorpusFile
    path: Path
    fresh: bool  # downloaded in this call


@dataclass(frozen=True)
class _Version:
    """The version of a file of which a part is there."""

    validator: str
    size: int | None  # of the whole file, as announced first


@dataclass
class _Tries:
    """Counts of the tries of one file in one call, which no server can reset."""

    largest: int  # size that the partial file has had
    failures: int = 0  # in a row, without progress
    starts: int = 0  # from the first byte

    def failed(self, size: int, error: TryAgain) -> None:
        """Count a failure, after which the partial file has this size; the last is an error."""
        progress = size >= self.largest + _PROGRESS
        self.failures = 1 if progress else self.failures + 1
        self.largest = max(self.largest, size)
        count = max(self.failures, self.starts)
        if count >= TRIES:
            raise DownloadError(f"gave up after {count} tries ({error})") from error


_Job = Future["Fetched | DownloadError"]


class _NotThere(DownloadError):
    """The server has no such file."""


def download(files: Sequence[CorpusFile], folder: str | Path, parallel: int = 4) -> list[Fetched]:
    """Download the files that the folder does not have, `parallel` at a time.

    If a file fails, the others continue. After a failure or Ctrl-C, the next call resumes partial
    files. Optional files that the server lacks are left out with a warning if there is another text
    of the same languages. One `DownloadError` names all other failures.
    """
    folder = Path(folder)
    files = list({file.filename: file for file in files}.values())
    if parallel < 1:
        raise SettingsError(f"--parallel is {parallel}; give at least 1")
    check_place(folder, "folder", DownloadError)
    if wrong := file_for_folder(folder):
        raise DownloadError(f"{wrong}; name a folder")
    folder.mkdir(parents=True, exist_ok=True)
    manifest = folder / "manifest.json"
    with output_lock(manifest, partial(check_output, manifest, overwrite=True)):
        results = _fetch_all(files, folder, parallel)
        fetched = [result for result in results if isinstance(result, Fetched)]
        _record(fetched, manifest)
    pairs = {result.file.pair for result in fetched}
    failures = []
    for file, result in zip(files, results, strict=True):
        if isinstance(result, _NotThere) and file.optional and file.pair in pairs:
            logger.warning(f"{file.label}: the corpus does not have these languages; left out")
        elif isinstance(result, DownloadError):
            failures.append(f"{file.label}: {result}")
    if failures:
        several = len(files) > 1
        count = f"{len(failures)} of {len(files)} files not downloaded: " if several else ""
        raise DownloadError(
            f"{count}{'; '.join(failures)}; try again later, use another server (--mirror), or save"
            f" the missing files in {folder} by hand"
        )
    return fetched


def _fetch_all(
    files: Sequence[CorpusFile], folder: Path, parallel: int
) -> list[Fetched | DownloadError]:
    """Fetch the files in daemon threads: at Ctrl-C, waiting threads cannot be stopped."""
    stop = threading.Event()
    waiting = queue.SimpleQueue[tuple[CorpusFile, _Job]]()
    jobs = [_Job() for _ in files]
    for file, job in zip(files, jobs, strict=True):
        waiting.put((file, job))

    def work() -> None:
        while not waiting.empty():
            with suppress(queue.Empty):  # another thread was faster
                file, job = waiting.get_nowait()
                try:
                    job.set_result(_fetch(file, folder / file.filename, stop))
                except BaseException as error:
                    job.set_exception(error)

    for _ in range(min(parallel, len(files))):
        threading.Thread(target=work, daemon=True).start()
    try:
        while wait(jobs, timeout=0.5).not_done:  # on Windows, one long wait would not notice Ctrl-C
            pass
    except BaseException:
        stop.set()
        wait(jobs, timeout=_GRACE)
        raise
    return [job.result() for job in jobs]


def _record(fetched: Sequence[Fetched], manifest: Path) -> None:
    """Add files to the manifest, by name."""
    entries = {}
    if manifest.exists():
        with refused(
            DownloadError, manifest, "not readable as a manifest", "move it to another folder"
        ):
            entries = dict(read_json(manifest)["files"])
            if not all("sha256" in entry and "url" in entry for entry in entries.values()):
                raise ValueError("its files have no address or digest")
    for result in fetched:
        file = result.file
        path = result.path
        if path.name in entries and not result.fresh:
            continue
        entries[path.name] = {
            "url": file.url,
            "size": path.stat().st_size,
            "sha256": content_digest(path),
            "fetched": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "corpus": f"{file.name} {file.entry.version}",
            "license": file.entry.license,
            "citation": file.entry.citation,
        }
    write_json(manifest, {"files": dict(sorted(entries.items()))})


def _fetch(file: CorpusFile, path: Path, stop: threading.Event) -> Fetched | DownloadError:
    """Download one file, with retries for temporary failures; an existing file is only checked."""
    if path.exists():
        wrong = _wrong(file, path)
        if wrong:
            return DownloadError(f"{path}: {wrong}; remove it to fetch it again")
        return Fetched(file, path, False)
    part = path.with_name(f".{path.name}.part")  # hidden: browsers write NAME.part
    whole = False
    try:
        tries = _Tries(_size(part) if _version(file, part) else 0)
        while not whole and not stop.is_set():
            try:
                _attempt(file, part, stop=stop, tries=tries)
                whole = True
            except TryAgain as error:
                tries.failed(_size(part), error)
                seconds = max(error.seconds, FIRST_WAIT * 2 ** (tries.failures - 1))
                stop.wait(min(LONGEST_WAIT, seconds))
        if not whole:
            return DownloadError("interrupted")
        wrong = _wrong(file, part)
        _origin(part).unlink(missing_ok=True)
        if wrong:
            part.unlink()
            return DownloadError(f"{wrong}; the download was discarded")
        part.replace(path)
    except _NotThere as error:
        return error
    except TooLargeError as error:
        part.unlink()
        _origin(part).unlink()
        return error
    except DownloadError as error:
        if _version(file, part) is None:
            return DownloadError(str(error))
        return DownloadError(f"{error}; {_size(part):,} bytes are kept, and the next run resumes")
    except OSError as error:
        advice = "; free disk space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return DownloadError(f"cannot be stored ({one_line(error, about=part)}){advice}")
    logger.info(f"{path}: {_size(path):,} bytes. License: {file.entry.license}")
    return Fetched(file, path, True)


def _attempt(file: CorpusFile, part: Path, stop: threading.Event, tries: _Tries) -> None:
    """Download the rest of a partial file, or the whole file if it cannot be resumed."""
    version = _version(file, part)
    headers = {"Range": f"bytes={_size(part)}-", "If-Range": version.validator} if version else {}
    with Transfer(stop) as transfer:
        answer = transfer.get(file.url, headers)
        _check_status(answer, file)
        if answer.status_code == 200:
            tries.starts += 1
            length = answer.headers.get("Content-Length", "")
            size = int(length) if _LENGTH.fullmatch(length) else None
            part.unlink(missing_ok=True)
            _record_version(file, part, _Version(_validator(answer), size))
        elif version is None:
            raise DownloadError(f"{_reason(answer)}, although no part of the file was requested")
        elif _is_complete(answer, part, version):
            return
        else:
            size = _announced_size(answer, part, version)
            if version.size is None:
                _record_version(file, part, _Version(version.validator, size))
        have = _size(part)
        limit = (UNANNOUNCED if size is None else size) - have
        limit_kind = "allowed" if size is None else "announced"
        free = shutil.disk_usage(part.parent).free
        if size is not None and limit > free:
            raise DownloadError(f"{limit:,} bytes, but the disk has {free:,} free; free disk space")
        bar = tqdm(
            desc=file.filename,
            initial=have,
            total=size,
            unit="B",
            unit_scale=True,
            disable=None,
            leave=False,
        )
        with bar, part.open("ab") as out:
            for block in transfer.blocks(limit, limit_kind):
                bar.update(out.write(block))
    if size not in (None, _size(part)):
        raise TryAgain(f"broke off after {_size(part):,} of {size:,} bytes")


def _is_complete(answer: requests.Response, part: Path, version: _Version) -> bool:
    """Whether the server says that nothing of a partial file is missing."""
    have = _size(part)
    content_range = answer.headers.get("Content-Range")
    return (
        answer.status_code == 416
        and content_range == f"bytes */{have}"
        and version.size in (None, have)
    )


def _announced_size(answer: requests.Response, part: Path, version: _Version) -> int:
    """Return the size of the whole file that an answer resumes, or remove the partial file."""
    content_range = answer.headers.get("Content-Range", "")
    match = _RANGE.fullmatch(content_range)
    is_same_version = _validator(answer) in ("", version.validator)
    if match and is_same_version and int(match[1]) == _size(part) <= int(match[2]):
        end = int(match[2]) + 1
        size = int(match[3]) if match[3] != "*" else version.size or end
        if end <= size and version.size in (None, size):
            return size
    part.unlink()
    shown = (
        f"Content-Range: {one_line(content_range)}" if content_range else "without Content-Range"
    )
    announced = "" if version.size is None else f", of {version.size:,} bytes announced before"
    raise TryAgain(
        f"the server cannot resume the partial file ({_reason(answer)}, {shown}{announced})"
    )


def _check_status(answer: requests.Response, file: CorpusFile) -> None:
    status = answer.status_code
    if status in (404, 410):
        raise _NotThere(f"not found ({_reason(answer)})")
    if status in _PASSING:
        raise TryAgain(_reason(answer), urllib3.Retry().get_retry_after(answer.raw) or 0.0)
    if status not in (200, 206, 416):
        raise DownloadError(_reason(answer))
    if re.search("html", answer.headers.get("Content-Type", ""), re.IGNORECASE):
        raise DownloadError(
            f"the server sent a web page (HTML) instead of {file.filename}; open it in a browser"
        )
    if not file.filename.endswith("gz"):  # some servers call these files compressed
        check_encoding(answer)


def _reason(answer: requests.Response) -> str:
    return f"HTTP {answer.status_code} ({one_line(answer.reason)})"


def _validator(answer: requests.Response) -> str:
    """Return what identifies the version of a file in `If-Range` (RFC 9110, 13.1.5), if any."""
    for name in ("ETag", "Last-Modified"):
        validator: str = answer.headers.get(name, "")
        if _VALIDATOR.fullmatch(validator):
            return validator
    return ""


def _origin(part: Path) -> Path:
    """Return the path of the record with address, validator and size of a partial file."""
    return part.with_name(f"{part.name}.origin")


def _record_version(file: CorpusFile, part: Path, version: _Version) -> None:
    size = "" if version.size is None else version.size
    _origin(part).write_text(f"{file.url}\n{version.validator}\n{size}", encoding="utf-8")


def _version(file: CorpusFile, part: Path) -> _Version | None:
    """Return the version of a partial file that can be resumed; None for other files."""
    if not _size(part) or not _origin(part).exists():
        return None
    lines = _origin(part).read_text(encoding="utf-8", errors="replace").split("\n")
    if len(lines) < 2 or lines[0] != file.url or not _VALIDATOR.fullmatch(lines[1]):
        return None
    has_size = len(lines) > 2 and _LENGTH.fullmatch(lines[2])
    return _Version(lines[1], int(lines[2]) if has_size else None)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _wrong(file: CorpusFile, path: Path) -> str:
    """Return what is wrong with a complete file; empty if nothing is."""
    expected = file.entry.sha256.get(file.filename)
    actual = content_digest(path) if expected else None
    if actual != expected:
        return f"SHA-256 {actual}, but {expected} is expected"
    if file.filename.endswith(".zip") and not zipfile.is_zipfile(path):
        return "not a complete zip file"
    return "" if _size(path) else "an empty file"
