"""Fetch one file: resumed where it broke off, tried again where that may help, checked before it gets its name."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from st_paragram.core.settings import setting, settings
from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.checks import (
    HEAD_BYTES,
    SPARE,
    Spoiled,
    check_contents,
    check_head,
    check_headers,
    check_known,
    check_most,
    check_room,
)
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.http import Answer, NameNotFound, NotThere, StartAnew, TryAgain, open_url
from st_paragram.tools.corpora.fetching.part import Origin, Part

_BLOCK = 1 << 18
_STRETCH = 1 << 24  # bytes of a file of unknown size between two looks at the free space


@settings
class TransferSettings:
    """Limits of one transfer; a number that makes no sense raises `SettingsError`."""

    timeout: float = setting(30.0, "timeout in seconds for the start of an answer and for each further byte", gt=0)
    tries: int = setting(6, "consecutive failures after which the file is given up", ge=1)
    first_wait: float = setting(1.0, "seconds before the second try; they double each time, varied at random", ge=0)
    longest_wait: float = setting(120.0, "maximum wait in seconds, even if a server asks for more", ge=0)
    least_rate: float = setting(1024.0, "minimum bytes per second; slower tries fail", ge=0)
    rate_window: float = setting(60.0, "seconds over which the rate is measured", gt=0)
    progress: int = setting(1 << 20, "new bytes after which the failure count restarts", ge=1)
    overlap: int = setting(
        1 << 16, "bytes before the end of a partial file that are fetched again and must match", ge=1
    )
    most_bytes: int | None = setting(None, "maximum file size in bytes; default: unlimited")

    def wait(self, failures: int, chance: float, asked: float | None) -> float:
        """Seconds until the next try.

        Args:
            failures: Tries that have failed in a row, at least one.
            chance: A random number from 0 to 1.
            asked: Seconds that the server asks for; None if it does not.
        """
        own = self.first_wait * 2.0 ** min(failures - 1, 30) * (0.5 + chance)
        return min(self.longest_wait, own if asked is None else max(asked, own))


class TransferRate:
    """Watches how fast one attempt gets on: a server that only trickles has failed as much as one that is silent."""

    def __init__(self, settings: TransferSettings) -> None:
        """Begin the first window of time."""
        self._least, self._window = settings.least_rate, settings.rate_window
        self._since, self._bytes = time.monotonic(), 0

    def add(self, count: int) -> None:
        """Count bytes that have come.

        Raises:
            TryAgain: A window has ended and they were too few.
        """
        self._bytes += count
        elapsed = time.monotonic() - self._since
        if elapsed < self._window:
            return
        rate = self._bytes / elapsed
        if rate < self._least:
            raise TryAgain(f"only {rate:,.0f} bytes/s over {elapsed:.0f} s, at least {self._least:,.0f} are expected")
        self._since, self._bytes = time.monotonic(), 0


class Stopped(Exception):
    """The user or another part of the program has asked to end; the part stays."""


class HostNotFound(DownloadError):
    """The name of the server cannot be resolved, so that nothing can be fetched from it in this run."""


def host_not_found(file: CorpusFile, reason: str) -> str:
    """The message of `HostNotFound`: what was asked for, of which server, and what to do."""
    host = file.host
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
        self._part = Part(target, settings.overlap)
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
            except StartAnew as error:
                if self._anew:
                    raise Spoiled(
                        f"{self._file.label}: the server does not give this file from its beginning ({error}); "
                        f"try again later, or {self._file.advice}"
                    ) from error
                self._part.discard()
                self._anew = True

    def _given_up(self, error: TryAgain, failures: int) -> str:
        kept = self._part.size() if self._part.origin(self._file.url) else 0
        stays = f"; {kept:,} bytes are kept, and the next run resumes there" if kept else ""
        return (
            f"{self._file.label}: given up after {failures} tries ({error}){stays}; try again later, or "
            f"{self._file.advice}"
        )

    def _attempt(self) -> Received:
        if self._stop.is_set():
            raise Stopped
        origin = self._part.origin(self._file.url)
        offset = self._part.size() if origin else 0
        if origin and origin.total == offset:  # all had come when the program was ended
            return self._finish(origin, self._hash_part().hexdigest(), resumed=True)
        start = offset - self._settings.overlap
        headers = {"Range": f"bytes={start}-", "If-Range": str(origin.validator)} if origin else {}
        with open_url(self._file.url, headers, self._settings.timeout) as answer:
            rate = TransferRate(self._settings)
            if answer.status == 206:
                if origin is None:
                    raise StartAnew("a part came, where all was asked for")
                origin = origin.continued(answer, start, offset)
                self._compare(answer, rate)
            else:
                origin, offset = self._begun(answer), 0
            if origin.total is not None:
                check_most(self._file, origin.total, self._settings.most_bytes)
                check_known(self._file, origin.total)
                check_room(self._file, origin.total - offset, self._target.parent)
            digest = self._hash_part() if offset else hashlib.sha256()
            size = self._receive(answer, digest, offset, origin.total, rate)
        if origin.total is not None and size < origin.total:
            raise TryAgain(f"broke off after {size:,} of {origin.total:,} bytes")
        return self._finish(origin, digest.hexdigest(), resumed=offset > 0)

    def _begun(self, answer: Answer) -> Origin:
        """A whole file begins, whatever was asked for: the server knows no ranges, or the file has changed."""
        check_headers(self._file, answer)
        origin = Origin(self._file.url, answer.header("ETag"), answer.header("Last-Modified"), answer.length)
        self._part.begin(origin)
        return origin

    def _compare(self, answer: Answer, rate: TransferRate) -> None:
        """Read once more the bytes from which the rest goes on; others begin the file again."""
        known = self._part.tail()
        while known:
            if not (block := answer.read(len(known))):
                raise TryAgain(f"broke off {len(known):,} bytes before anything new")
            if not known.startswith(block):
                raise StartAnew("the bytes where it goes on are others now")
            known = known[len(block) :]
            rate.add(len(block))

    def _receive(
        self, answer: Answer, digest: hashlib._Hash, offset: int, total: int | None, rate: TransferRate
    ) -> int:
        """Write what comes to the part; returns its size in bytes."""
        size, head = offset, b""
        bar = self._show(offset, total)
        with self._part.path.open("ab") as handle:
            while block := answer.read(_BLOCK):
                if self._stop.is_set():
                    raise Stopped
                if len(head) == size < HEAD_BYTES:  # a page in its place is known before all of it has come
                    head = (head + block)[:HEAD_BYTES]
                    if len(head) == HEAD_BYTES:
                        check_head(self._file, head)
                self._check_growth(size, size + len(block), total)
                handle.write(block)
                handle.flush()  # what is on the disk when the program is killed can be resumed
                digest.update(block)
                size += len(block)
                bar.update(len(block))
                rate.add(len(block))
        return size

    def _check_growth(self, before: int, size: int, total: int | None) -> None:
        """Refuse more than there should be; a file of unknown size must not fill the disk."""
        check_most(self._file, size, self._settings.most_bytes)
        if total is not None and size > total:
            raise StartAnew(f"{size:,} bytes have come of {total:,}")
        if total is None and size // _STRETCH > before // _STRETCH:
            check_room(self._file, SPARE, self._target.parent)

    def _finish(self, origin: Origin, sha256: str, resumed: bool) -> Received:
        size = self._part.size()
        try:
            check_known(self._file, size, sha256)
            check_contents(self._file, self._part.path)
        except Spoiled as error:
            if resumed and not self._anew:  # the parts may not fit together
                raise StartAnew(str(error)) from error
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
