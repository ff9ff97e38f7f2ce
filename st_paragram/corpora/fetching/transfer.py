"""Fetch one file: resumed where it broke off, tried again where that may help, checked before it gets its name."""

from __future__ import annotations

import hashlib
import random
import re
import threading
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

from tqdm import tqdm

from st_paragram.corpora.fetching.contents import HEAD_BYTES, check_type
from st_paragram.corpora.fetching.corpus_file import CorpusFile
from st_paragram.corpora.fetching.disk_space import check_disk_space_for
from st_paragram.corpora.fetching.http import NameNotFound, NotThere, RangeRefused, TryAgain, open_url
from st_paragram.corpora.fetching.partial import Origin, Partial
from st_paragram.corpora.fetching.transfer_rate import TransferRate
from st_paragram.corpora.fetching.transfer_settings import TransferSettings
from st_paragram.corpora.fetching.verify import (
    Spoiled,
    verify_contents,
    verify_head,
    verify_sha256,
    verify_size,
)
from st_paragram.errors import DownloadError

_BLOCK = 1 << 18
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Stopped(Exception):
    """The user or another part of the program has asked to end; the part stays."""


class HostNotFound(DownloadError):
    """The name of the server cannot be resolved, so that nothing can be fetched from it in this run."""


class _StartAnew(Exception):
    """What is there is no beginning of the file."""


def host_not_found(file: CorpusFile, reason: str) -> str:
    """The message of `HostNotFound`: what was asked for, of which server, and what to do."""
    host = urlsplit(file.url).hostname
    return f"{file.label}: no address is known for {host} ({reason}); check the network connection, or {file.advice}"


@dataclass(frozen=True)
class Received:
    """A file that came whole: its size in bytes, its SHA-256 (hexadecimal), and what the server said of it."""

    size: int
    sha256: str
    origin: Origin


class Transfer:
    """The transfer of one file."""

    def __init__(self, file: CorpusFile, target: Path, settings: TransferSettings, stop: threading.Event) -> None:
        """Prepare it; nothing happens before `run`.

        Args:
            file: What to fetch.
            target: The file to make.
            settings: How patient to be.
            stop: Once set, `run` ends soon.
        """
        self._file, self._target, self._settings, self._stop = file, target, settings, stop
        self._part = Partial(target)
        self._bar: tqdm | None = None  # type: ignore[type-arg]
        self._anew = False

    def run(self) -> Received:
        """Fetch the file.

        Raises:
            DownloadError: It could not be fetched or is not what it should be; a part that can be resumed stays.
            HostNotFound: The name of the server cannot be resolved.
            NotThere: The server has no such file.
            Stopped: `stop` was set.
        """
        self._part.acquire()
        try:
            return self._try_until_whole()
        except Spoiled:
            self._part.discard()
            raise
        except NotThere as error:
            self._part.discard()
            look = "look for language codes and versions at https://opus.nlpl.eu, or " if self._file.languages else ""
            raise NotThere(f"{self._file.label}: not there (HTTP 404 or 410); {look}{self._file.advice}") from error
        finally:
            self._part.release()
            if self._bar is not None:
                self._bar.close()

    def _try_until_whole(self) -> Received:
        failures, furthest = 0, self._part.size()
        while True:
            try:
                return self._attempt()
            except NameNotFound as error:
                raise HostNotFound(host_not_found(self._file, str(error))) from error
            except TryAgain as error:
                reached = self._part.size()
                failures = 1 if reached >= furthest + self._settings.progress else failures + 1
                furthest = max(furthest, reached)
                if failures >= self._settings.tries:
                    raise DownloadError(self._given_up(error, failures)) from error
                if self._stop.wait(self._settings.wait(failures, random.random(), error.wait)):
                    raise Stopped from error
            except (_StartAnew, RangeRefused) as error:
                if self._anew:
                    raise Spoiled(
                        f"{self._file.label}: the server does not give this file from its beginning ({error}); "
                        f"try again later, or {self._file.advice}"
                    ) from error
                self._part.discard()
                self._anew = True

    def _given_up(self, error: TryAgain, failures: int) -> str:
        kept = self._part.size()
        stays = f"; {kept:,} bytes are kept, and the next run resumes there" if kept else ""
        return (
            f"{self._file.label}: given up after {failures} tries ({error}){stays}; try again later, or "
            f"{self._file.advice}"
        )

    def _attempt(self) -> Received:
        if self._stop.is_set():
            raise Stopped
        origin = self._part.resumable(self._file.url)
        offset = self._part.size() if origin else 0
        if origin and origin.total == offset:  # all had come when the program was ended
            return self._finish(origin, self._hash_part().hexdigest(), resumed=True)
        headers = {"Range": f"bytes={offset}-", "If-Range": str(origin.validator)} if origin else {}
        with open_url(self._file.url, headers, self._settings.timeout) as answer:
            if answer.status == 206:
                origin = self._continued(answer, origin, offset)
            else:
                origin, offset = self._begun(answer), 0
            if origin.total is not None:
                verify_size(self._file, origin.total, self._settings.most_bytes)
                check_disk_space_for(self._file, origin.total - offset, self._target.parent)
            digest = self._hash_part() if offset else hashlib.sha256()
            size = self._receive(answer, digest, offset, origin.total)
        if origin.total is not None and size < origin.total:
            raise TryAgain(f"broke off after {size:,} of {origin.total:,} bytes")
        return self._finish(origin, digest.hexdigest(), resumed=offset > 0)

    def _begun(self, answer: HTTPResponse) -> Origin:
        """A whole file begins, whatever was asked for: the server knows no ranges, or the file has changed."""
        check_type(self._file.filename, answer.headers.get("Content-Type"), self._file.label, self._file.advice)
        length = answer.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        origin = Origin(self._file.url, answer.headers.get("ETag"), answer.headers.get("Last-Modified"), total)
        self._part.begin(origin)
        return origin

    def _continued(self, answer: HTTPResponse, origin: Origin | None, offset: int) -> Origin:
        """The rest of a file comes; it must be the rest of the same file."""
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
        etag = answer.headers.get("ETag")
        if origin is None or found is None or int(found[1]) != offset:
            raise _StartAnew(f"Content-Range {answer.headers.get('Content-Range')!r} after {offset} bytes")
        if etag and origin.etag and etag != origin.etag:
            raise _StartAnew(f"ETag {etag} after {origin.etag}")
        if origin.total is not None and found[2] not in ("*", str(origin.total)):
            raise _StartAnew(f"{found[2]} bytes after {origin.total}")
        return origin

    def _receive(self, answer: HTTPResponse, digest: hashlib._Hash, offset: int, total: int | None) -> int:
        """Write what comes to the part; returns its size in bytes."""
        rate = TransferRate(self._settings.least_rate, self._settings.rate_window)
        size, head = offset, b""
        bar = self._show(offset, total)
        with self._part.path.open("ab", buffering=0) as handle:
            while block := self._read(answer):
                if self._stop.is_set():
                    raise Stopped
                if len(head) == size < HEAD_BYTES:  # a page in its place is known before all of it has come
                    head = (head + block)[:HEAD_BYTES]
                    if len(head) == HEAD_BYTES:
                        verify_head(self._file, head)
                handle.write(block)
                digest.update(block)
                size += len(block)
                verify_size(self._file, size, self._settings.most_bytes, whole=False)
                bar.update(len(block))
                rate.add(len(block))
        return size

    def _read(self, answer: HTTPResponse) -> bytes:
        try:
            return answer.read1(_BLOCK)
        except TimeoutError as error:
            raise TryAgain(f"no byte for {self._settings.timeout:g} s") from error
        except (OSError, HTTPException, ValueError) as error:  # a damaged chunk is a ValueError
            raise TryAgain(f"connection broke ({error})") from error

    def _finish(self, origin: Origin, sha256: str, resumed: bool) -> Received:
        size = self._part.size()
        try:
            verify_size(self._file, size)
            verify_sha256(self._file, sha256)
            verify_contents(self._file, self._part.path)
        except Spoiled as error:
            if resumed and not self._anew:  # the parts may not fit together
                raise _StartAnew(str(error)) from error
            raise
        self._part.finish(self._target)
        return Received(size, sha256, origin)

    def _hash_part(self) -> hashlib._Hash:
        digest = hashlib.sha256()
        with self._part.path.open("rb") as handle:
            while block := handle.read(_BLOCK):
                digest.update(block)
        return digest

    def _show(self, offset: int, total: int | None) -> tqdm:  # type: ignore[type-arg]
        if self._bar is None:
            name = self._file.filename
            self._bar = tqdm(desc=name, total=total, unit="B", unit_scale=True, disable=None, leave=False)
        self._bar.n, self._bar.total = offset, total
        self._bar.refresh()
        return self._bar
