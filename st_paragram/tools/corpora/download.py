"""Fetch files into a folder: resumed where they broke off, checked, recorded in `manifest.json`."""

from __future__ import annotations

import logging
import re
import socket
import threading
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import requests
import urllib3
from tqdm import tqdm

from st_paragram.core.files import check_output, content_digest, output_lock, read_json, write_json
from st_paragram.errors import DAMAGED, DownloadError, SettingsError, one_line, refused
from st_paragram.tools.corpora.catalogue import CorpusFile

logger = logging.getLogger(__name__)

TRIES = 6  # in a row, without progress
FIRST_WAIT, LONGEST_WAIT = 1.0, 120.0  # seconds between tries, which double
TIMEOUT = 30.0  # seconds for a connection and for each block
_PROGRESS, _BLOCK = 1 << 20, 1 << 18  # bytes: after which earlier failures do not count; read at a time
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_OUTSIDE = re.compile(r"/|[A-Za-z]:|(.*/)?\.\.(/|$)|.*[\\\0]", re.DOTALL)  # names that lead out of an archive


@dataclass(frozen=True)
class Fetched:
    """A file in the folder."""

    file: CorpusFile
    path: Path
    fresh: bool  # fetched just now


class _NotThere(DownloadError):
    """The server has no such file."""


class _TryAgain(Exception):
    """A failure that may pass, and the seconds that the server asks for."""

    def __init__(self, reason: object, seconds: float = 0.0) -> None:
        super().__init__(one_line(reason))
        self.seconds = seconds


def download(files: Sequence[CorpusFile], folder: str | Path, parallel: int = 4) -> list[Fetched]:
    """Fetch the files that the folder does not have, `parallel` at a time; if one fails, the others still come.

    After a failure or Ctrl-C, parts stay, and the next call resumes them. Optional files that the server lacks are left
    out with a warning if there is another text of the same languages. One `DownloadError` names all other failures.
    """
    folder = Path(folder)
    if parallel < 1:
        raise SettingsError(f"--parallel {parallel}: use at least 1")
    if len({file.filename for file in files}) < len(files):
        raise SettingsError("a file is asked for twice; name each corpus once")
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
        several = f"{len(failures)} of {len(files)} files not fetched: " if len(files) > 1 else ""
        advice = f"try again later, name another server (--mirror), or save what is missing in {folder} yourself"
        raise DownloadError(f"{several}{'; '.join(failures)}; {advice}")
    return fetched


def new_session() -> requests.Session:
    """A session that verifies certificates, as `requests` does by default, and never leaves https for http."""

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
        with refused(DownloadError, manifest, "not readable as a manifest", "move it away"):
            entries = dict(read_json(manifest)["files"])
    for each in fetched:
        if each.fresh or each.path.name not in entries:
            entries[each.path.name] = {
                "url": each.file.url,
                "size": _size(each.path),
                "sha256": content_digest(each.path),
                "fetched": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "corpus": f"{each.file.name} {each.file.entry.version}",
                "license": each.file.entry.license,
                "citation": each.file.entry.citation,
            }
    write_json(manifest, {"files": dict(sorted(entries.items()))})


def _fetch(file: CorpusFile, path: Path, stop: threading.Event) -> Fetched | DownloadError:
    """One file; one that is there, fetched earlier or saved by hand, is only checked."""
    if path.exists():
        wrong = _wrong(file, path)
        return DownloadError(f"{path}: {wrong}; remove it to fetch it again") if wrong else Fetched(file, path, False)
    part = path.with_name(f"{path.name}.part")
    try:
        _fetch_part(file, part, stop)
        _origin(part).unlink(missing_ok=True)
        if wrong := _wrong(file, part):
            part.unlink()
            return DownloadError(f"{wrong}; nothing is kept")
        part.replace(path)
    except DownloadError as error:
        return error
    except OSError as error:
        return DownloadError(f"cannot be stored ({one_line(error, about=part)}); free space")
    logger.info(f"{path}: {_size(path):,} bytes. License: {file.entry.license}")
    return Fetched(file, path, True)


def _fetch_part(file: CorpusFile, part: Path, stop: threading.Event) -> None:
    """Fetch all of a part, tried again as long as that may help."""
    failures = 0
    with (
        new_session() as session,
        tqdm(desc=file.filename, unit="B", unit_scale=True, disable=None, leave=False) as bar,
    ):
        while True:
            before = _size(part)
            try:
                return _attempt(session, file, part, stop, bar)
            except _TryAgain as error:
                failures = 1 if _size(part) >= before + _PROGRESS else failures + 1
                if failures >= TRIES:
                    kept = f"; {_size(part):,} bytes are kept, and the next run resumes" if _known(file, part) else ""
                    raise DownloadError(f"given up after {failures} tries ({error}){kept}") from error
                if stop.wait(min(LONGEST_WAIT, max(error.seconds, FIRST_WAIT * 2 ** (failures - 1)))):
                    raise DownloadError("interrupted") from error


def _attempt(session: requests.Session, file: CorpusFile, part: Path, stop: threading.Event, bar: tqdm[Any]) -> None:
    """Fetch what the part lacks, or the whole file if the part cannot be resumed."""
    known = _known(file, part)
    have = _size(part) if known else 0
    headers = {"Range": f"bytes={have}-", "If-Range": known} if known else {}
    try:
        with session.get(file.url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            _check_status(answer)
            etag = answer.headers.get("ETag", "")
            strong = etag if not etag.startswith("W/") else ""
            validator = strong or answer.headers.get("Last-Modified", "")  # what If-Range takes (RFC 9110, 13.1.5)
            if answer.status_code == 200:
                if "text/html" in answer.headers.get("Content-Type", ""):
                    raise DownloadError(f"a web page (HTML) came instead of {file.filename}; open it in a browser")
                have = 0
                part.unlink(missing_ok=True)
                _origin(part).write_text(f"{file.url}\n{validator}", encoding="utf-8")
            elif f"bytes {have}-" not in answer.headers.get("Content-Range", "") or validator not in ("", known):
                part.unlink(missing_ok=True)
                raise _TryAgain("the server does not continue the part that is there")
            length = answer.headers.get("Content-Length", "")
            bar.n, bar.total = have, have + int(length) if length.isdecimal() else None
            with part.open("ab") as out:
                for block in answer.raw.stream(_BLOCK, decode_content=False):
                    if stop.is_set():
                        raise DownloadError("interrupted")
                    bar.update(out.write(block))
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _failure(error) from error
    if bar.total not in (None, _size(part)):
        raise _TryAgain(f"broke off after {_size(part):,} of {bar.total:,} bytes")


def _check_status(answer: requests.Response) -> None:
    status, reason = answer.status_code, f"HTTP {answer.status_code} ({one_line(answer.reason)})"
    if status in (404, 410):
        raise _NotThere(f"not there ({reason})")
    if status in _PASSING:
        raise _TryAgain(reason, urllib3.Retry().get_retry_after(answer.raw) or 0.0)
    if status not in (200, 206, 416):
        raise DownloadError(reason)
    if (coding := answer.headers.get("Content-Encoding", "identity")) != "identity":
        raise DownloadError(f"the server sends it packed once more ({one_line(coding)})")


def _failure(error: BaseException) -> Exception:
    """What to raise for an error of the libraries: it may pass unless certificate, name or address are wrong."""
    certificate, address = isinstance(error, requests.exceptions.SSLError), isinstance(error, ValueError)
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    if certificate:
        return DownloadError(f"the server's certificate cannot be trusted ({one_line(error)})")
    if isinstance(error, socket.gaierror):
        return DownloadError(f"no address is known for this server ({error.strerror}); check the network")
    return DownloadError(one_line(error)) if address else _TryAgain(error)


def _origin(part: Path) -> Path:
    """Where the address and the validator of a part are noted."""
    return part.with_name(f"{part.name}.origin")


def _known(file: CorpusFile, part: Path) -> str:
    """The validator of a part that can be resumed; empty for others."""
    if not _size(part) or not _origin(part).exists():
        return ""
    url, _, validator = _origin(part).read_text(encoding="utf-8").partition("\n")
    return validator if url == file.url else ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _wrong(file: CorpusFile, path: Path) -> str:
    """What is wrong with a complete file; empty if nothing is."""
    size, sha256 = file.entry.sizes.get(file.filename), file.entry.sha256.get(file.filename)
    if size not in (None, _size(path)):
        return f"{_size(path):,} bytes, where {size:,} are known"
    if sha256 is not None and (found := content_digest(path)) != sha256:
        return f"SHA-256 {found}, where {sha256} is known"
    with path.open("rb") as handle:
        head = handle.read(200).lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return f"a web page (HTML) instead of {file.filename}"
    if not file.filename.endswith(".zip"):
        return "" if head else "an empty file"
    try:
        with zipfile.ZipFile(path) as archive:
            outside = [member.orig_filename for member in archive.infolist() if _OUTSIDE.match(member.orig_filename)]
    except (zipfile.BadZipFile, *DAMAGED) as error:
        return f"not a whole zip file ({one_line(error)})"
    return f"member {one_line(outside[0])!r} points outside the archive" if outside else ""
