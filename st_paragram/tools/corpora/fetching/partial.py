"""A file on its way: `NAME.part`, and beside it what is needed to resume it after an interruption."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import pydantic
from filelock import FileLock, Timeout

from st_paragram.errors import DownloadError


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


_ORIGIN = pydantic.TypeAdapter(Origin)


class Partial:
    """The part of one file; as long as it is open no other process takes it for its own."""

    def __init__(self, target: Path, overlap: int = 0) -> None:
        """Name its files; nothing is touched yet.

        Args:
            target: The file to make.
            overlap: A part is resumed so many bytes before its end, which must be the same once more; one that is not
                longer begins anew.
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
            with suppress(DownloadError):  # another process is fetching the file anew
                self.acquire()
                self.discard()
                self.release()

    def origin(self) -> Origin | None:
        """What the part is a part of, or None where that is not certain: then it must begin anew."""
        if self.size() <= self.overlap:
            return None
        try:
            origin = _ORIGIN.validate_json(self._origin_path.read_bytes())
        except (OSError, ValueError):
            return None
        whole = origin.total is None or self.size() <= origin.total
        return origin if whole and origin.validator is not None else None

    def resumable(self, url: str) -> Origin | None:
        """As `origin`, for a part that comes from this address."""
        origin = self.origin()
        return origin if origin is not None and origin.url == url else None

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
