"""Download files to a folder: resumed after interruptions, checked, and recorded in `manifest.json`."""

from __future__ import annotations

import logging
import socket
import threading
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from urllib.parse import urljoin

import requests
import urllib3
from tqdm import tqdm

from st_paragram.core.files import check_output, content_digest, output_lock, read_json, write_json
from st_paragram.errors import DownloadError, SettingsError, one_line, refused
from st_paragram.tools.corpora.catalogue import CorpusFile

logger = logging.getLogger(__name__)

TRIES = 6  # in a row, without progress
FIRST_WAIT, LONGEST_WAIT = 1.0, 120.0  # seconds between tries, doubled each time
TIMEOUT = 30.0  # seconds for a connection and for each block
_PROGRESS, _BLOCK = 1 << 20, 1 << 18  # bytes: progress that resets the count of failures; bytes read at a time
_PASSING = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Fetched:
    """A file in the folder."""

    file: CorpusFile
    path: Path
    fresh: bool  # downloaded in this call


class _NotThere(DownloadError):
    """The server has no such file."""


class _TryAgain(Exception):
    """A temporary failure, and the seconds that the server asks to wait."""

    def __init__(self, reason: object, seconds: float = 0.0) -> None:
        super().__init__(one_line(reason))
        self.seconds = seconds


def download(files: Sequence[CorpusFile], folder: str | Path, parallel: int = 4) -> list[Fetched]:
    """Download the files that the folder does not have, `parallel` at a time; if one fails, the others continue.

    After a failure or Ctrl-C, the next call resumes partial files. Optional files that the server lacks are left out
    with a warning if there is another text of the same languages. One `DownloadError` names all other failures.
    """
    folder, files = Path(folder), list({file.filename: file for file in files}.values())
    if parallel < 1:
        raise SettingsError(f"--parallel is {parallel}; give at least 1")
    manifest, stop = folder / "manifest.json", threading.Event()
    with output_lock(manifest, partial(check_output, manifest, overwrite=True)):
        with ThreadPoolExecutor(parallel) as pool:
            jobs = [pool.submit(_fetch, file, folder / file.filename, stop) for file in files]
            try:
                while wait(jobs, timeout=0.5).not_done:  # on Windows, one long wait would not notice Ctrl-C
                    pass
            except BaseException:
                stop.set()
                pool.shutdown(cancel_futures=True)
                raise
        results = [job.result() for job in jobs]
        fetched = [result for result in results if isinstance(result, Fetched)]
        _record(fetched, manifest)
    pairs, failures = {each.file.pair for each in fetched}, []
    for file, result in zip(files, results, strict=True):
        if isinstance(result, _NotThere) and file.optional and file.pair in pairs:
            logger.warning(f"{file.label}: the corpus does not have these languages; left out")
        elif isinstance(result, DownloadError):
            failures.append(f"{file.label}: {result}")
    if failures:
        several = f"{len(failures)} of {len(files)} files not downloaded: " if len(files) > 1 else ""
        advice = f"try again later, use another server (--mirror), or save the missing files in {folder} by hand"
        raise DownloadError(f"{several}{'; '.join(failures)}; {advice}")
    return fetched


def new_session() -> requests.Session:
    """Make a session that verifies certificates, the default of `requests`, and never switches from https to http."""

    def check(answer: requests.Response, **_: object) -> None:
        target = urljoin(answer.url, answer.headers.get("Location", ""))
        if answer.is_redirect and answer.url.startswith("https:") and not target.startswith("https:"):
            raise DownloadError(f"redirected to {one_line(target)}, which is not https")

    session = requests.Session()
    session.headers["Accept-Encoding"] = "identity"
    session.hooks["response"].append(check)
    return session


def _record(fetched: Sequence[Fetched], manifest: Path) -> None:
    """Add files to the manifest: name -> address, size, SHA-256, time, corpus, license, citation."""
    entries = {}
    if manifest.exists():
        with refused(DownloadError, manifest, "not readable as a manifest", "move it to another folder"):
            entries = dict(read_json(manifest)["files"])
    for file, path in ((each.file, each.path) for each in fetched if each.fresh or each.path.name not in entries):
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
        return DownloadError(f"{path}: {wrong}; remove it to fetch it again") if wrong else Fetched(file, path, False)
    part, failures, whole = path.with_name(f"{path.name}.part"), 0, False
    try:
        while not whole:
            before = _size(part)
            try:
                _attempt(file, part, stop)
                whole = True
            except _TryAgain as error:
                failures = 1 if _size(part) >= before + _PROGRESS else failures + 1
                if failures >= TRIES:
                    kept = f"; {_size(part):,} bytes are kept, and the next run resumes" if _known(file, part) else ""
                    return DownloadError(f"gave up after {failures} tries ({error}){kept}")
                if stop.wait(min(LONGEST_WAIT, max(error.seconds, FIRST_WAIT * 2 ** (failures - 1)))):
                    return DownloadError("interrupted")
        _origin(part).unlink()
        if wrong := _wrong(file, part):
            part.unlink()
            return DownloadError(f"{wrong}; the download was discarded")
        part.replace(path)
    except DownloadError as error:
        return error
    except OSError as error:
        return DownloadError(f"cannot be stored ({one_line(error, about=part)}); free disk space")
    logger.info(f"{path}: {_size(path):,} bytes. License: {file.entry.license}")
    return Fetched(file, path, True)


def _attempt(file: CorpusFile, part: Path, stop: threading.Event) -> None:
    """Download the rest of a partial file, or the whole file if it cannot be resumed."""
    known = _known(file, part)
    have, expected = _size(part) if known else 0, None
    headers = {"Range": f"bytes={have}-", "If-Range": known} if known else {}
    try:
        with new_session() as session, session.get(file.url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            _check_status(answer, file)
            etag = answer.headers.get("ETag", "")
            strong = etag if not etag.startswith("W/") else ""
            validator = strong or answer.headers.get("Last-Modified", "")  # for If-Range (RFC 9110, 13.1.5)
            if answer.status_code == 200:
                have = 0
                part.unlink(missing_ok=True)
                _origin(part).write_text(f"{file.url}\n{validator}", encoding="utf-8")
            elif f"bytes {have}-" not in answer.headers.get("Content-Range", "") or validator not in ("", known):
                part.unlink(missing_ok=True)
                raise _TryAgain("the server cannot resume the partial file")
            if (length := answer.headers.get("Content-Length", "")).isdecimal():
                expected = have + int(length)
            bar = tqdm(
                desc=file.filename, initial=have, total=expected, unit="B", unit_scale=True, disable=None, leave=False
            )
            with bar, part.open("ab") as out:
                for block in answer.raw.stream(_BLOCK, decode_content=False):
                    if stop.is_set():
                        raise DownloadError("interrupted")
                    bar.update(out.write(block))
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _failure(error) from error
    if expected not in (None, _size(part)):
        raise _TryAgain(f"broke off after {_size(part):,} of {expected:,} bytes")


def _check_status(answer: requests.Response, file: CorpusFile) -> None:
    status, reason = answer.status_code, f"HTTP {answer.status_code} ({one_line(answer.reason)})"
    if status in (404, 410):
        raise _NotThere(f"not found ({reason})")
    if status in _PASSING:
        raise _TryAgain(reason, urllib3.Retry().get_retry_after(answer.raw) or 0.0)
    if status not in (200, 206, 416):
        raise DownloadError(reason)
    if "text/html" in answer.headers.get("Content-Type", ""):
        raise DownloadError(f"the server sent a web page (HTML) instead of {file.filename}; open it in a browser")


def _failure(error: BaseException) -> Exception:
    """Return the error for an error of the libraries: temporary unless certificate, name or address are wrong."""
    lasting = isinstance(error, requests.exceptions.SSLError | ValueError)
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    if isinstance(error, socket.gaierror):
        return DownloadError(f"the server's name cannot be resolved ({error.strerror}); check the network")
    return DownloadError(one_line(error)) if lasting else _TryAgain(error)


def _origin(part: Path) -> Path:
    """Return the path of the record with address and validator of a partial file."""
    return part.with_name(f"{part.name}.origin")


def _known(file: CorpusFile, part: Path) -> str:
    """Return the validator of a partial file that can be resumed; empty for other files."""
    if not _size(part) or not _origin(part).exists():
        return ""
    url, _, validator = _origin(part).read_text(encoding="utf-8").partition("\n")
    return validator if url == file.url else ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _wrong(file: CorpusFile, path: Path) -> str:
    """Return what is wrong with a complete file; empty if nothing is."""
    known = file.entry.sha256.get(file.filename)
    if known and (found := content_digest(path)) != known:
        return f"SHA-256 {found}, but {known} is expected"
    if file.filename.endswith(".zip") and not zipfile.is_zipfile(path):
        return "not a complete zip file"
    return "" if _size(path) else "an empty file"
