"""A file on its way: `NAME.part`, with what is needed to resume it, and whether a rest belongs to it."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pydantic
from filelock import FileLock, Timeout

from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.http import Answer, StartAnew

_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")  # RFC 9110, 14.4


@dataclass(frozen=True)
class Origin:
    """What a part is a part of.

    Attributes:
        url: Where it comes from.
        etag: Of the file, or None.
        last_modified: Of the file, or None.
        total: Size of the whole file in bytes, or None.
    """

    url: str
    etag: str | None
    last_modified: str | None
    total: int | None

    @property
    def validator(self) -> str | None:
        """What If-Range takes: a strong ETag, else the date, else nothing (RFC 9110, 13.1.5)."""
        strong = None if self.etag is None or self.etag.startswith("W/") else self.etag
        return next((each for each in (strong, self.last_modified) if each and each.isascii()), None)

    def continued(self, answer: Answer, start: int, size: int) -> Origin:
        """Compare what the server says of the rest with what it said of the beginning.

        Args:
            answer: The answer, with status 206.
            start: The first byte asked for.
            size: The bytes that are there.

        Returns:
            The origin, with the size of the whole file where only the rest states it.

        Raises:
            StartAnew: It is the rest of another file, or begins or ends elsewhere.
        """
        stated = answer.header("Content-Range") or ""
        seen = _RANGE.fullmatch(stated.strip())
        if seen is None:
            raise StartAnew(f"Content-Range {stated!r} from byte {start}")
        first, last, total = int(seen[1]), int(seen[2]), None if seen[3] == "*" else int(seen[3])
        if first != start or last < first or (total is not None and last >= total):
            raise StartAnew(f"Content-Range {stated!r} from byte {start}")
        if answer.length not in (None, last - first + 1):
            raise StartAnew(f"Content-Range {stated!r} in {answer.length} bytes")
        if total is not None and (total < size or self.total not in (None, total)):
            raise StartAnew(f"{total} bytes in all after {self.total or size}")
        for name, before in (("ETag", self.etag), ("Last-Modified", self.last_modified)):
            now = answer.header(name)
            if now and before and now != before:
                raise StartAnew(f"{name} {now} after {before}")
        return replace(self, total=total) if self.total is None else self


_ORIGIN = pydantic.TypeAdapter(Origin)


class Part:
    """The part of one file; as long as it is open no other process takes it for its own."""

    def __init__(self, target: Path, overlap: int = 0) -> None:
        """Name its files; nothing is touched yet.

        Args:
            target: The file to make.
            overlap: A part is resumed so many bytes before its end, which must be the same once more; one that is not
                longer begins again.
        """
        self.path = target.with_name(f"{target.name}.part")
        self.overlap = overlap
        self._origin_path = target.with_name(f"{target.name}.part.json")
        self._lock = FileLock(target.with_name(f"{target.name}.part.lock"), timeout=0)

    def size(self) -> int:
        """Bytes that are there."""
        return self.path.stat().st_size if self.path.exists() else 0

    def acquire(self) -> None:
        """Keep others away until `release`, where the system has locks.

        Raises:
            DownloadError: Another process has it.
        """
        try:
            self._lock.acquire()
        except Timeout as error:
            raise DownloadError(f"{self.path}: another process is fetching this file; wait for it") from error
        except (NotImplementedError, OSError):
            pass  # a file system without locks: nobody guards against a second process

    def release(self) -> None:
        """Let others at it; a part that cannot be resumed does not stay."""
        if self.origin() is None:
            self.path.unlink(missing_ok=True)
            self._origin_path.unlink(missing_ok=True)
        if self._lock.is_locked:
            Path(self._lock.lock_file).unlink(missing_ok=True)  # while it is held, so that nobody else's goes
            self._lock.release()

    def remove_leftovers(self) -> None:
        """Remove what stayed of a part though the file is there: the program was killed at the last moment."""
        files = (self.path, self._origin_path, Path(self._lock.lock_file))
        if any(file.exists() for file in files):
            with suppress(DownloadError):  # another process is fetching the file again
                self.acquire()
                self.discard()
                self.release()

    def origin(self, url: str | None = None) -> Origin | None:
        """What the part is a part of; None where that is not certain or it is not from `url`: then it begins again."""
        if self.size() <= self.overlap:
            return None
        try:
            origin = _ORIGIN.validate_json(self._origin_path.read_bytes())
        except (OSError, ValueError):
            return None
        whole = origin.total is None or self.size() <= origin.total
        return origin if whole and origin.validator is not None and url in (None, origin.url) else None

    def tail(self) -> bytes:
        """The last `overlap` bytes."""
        with self.path.open("rb") as handle:
            handle.seek(-self.overlap, os.SEEK_END)
            return handle.read()

    def begin(self, origin: Origin) -> None:
        """Empty the part and note what it will be a part of."""
        self._origin_path.unlink(missing_ok=True)
        with self.path.open("wb"):
            pass
        self._origin_path.write_text(json.dumps(asdict(origin)), encoding="utf-8")

    def discard(self) -> None:
        """Empty it; `release` removes what is empty."""
        self._origin_path.unlink(missing_ok=True)
        if self.path.exists():
            os.truncate(self.path, 0)

    def finish(self, target: Path) -> None:
        """Give it its name."""
        with self.path.open("rb+") as handle:
            os.fsync(handle.fileno())
        self.path.replace(target)
        self._origin_path.unlink(missing_ok=True)
