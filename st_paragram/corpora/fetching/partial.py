"""A file on its way: `NAME.part`, and beside it what is needed to resume it after an interruption."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

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
        return self.etag if self.etag and not self.etag.startswith("W/") else self.last_modified


class Partial:
    """The part of one file; as long as it is open no other process takes it for its own."""

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f"{target.name}.part")
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
        """Let others at it; a part with nothing in it does not stay."""
        if self.size() == 0:
            self.path.unlink(missing_ok=True)
            self._origin_path.unlink(missing_ok=True)
        if self._lock.is_locked:
            Path(self._lock.lock_file).unlink(missing_ok=True)  # while it is held, so that nobody else's goes
            self._lock.release()

    def resumable(self, url: str) -> Origin | None:
        """What the part is a part of, or None where that is not certain: then it must begin anew."""
        if self.size() == 0 or not self._origin_path.exists():
            return None
        try:
            origin = Origin(**json.loads(self._origin_path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return origin if origin.url == url and origin.validator is not None else None

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
