"""The project's exceptions: one tree, so that a caller can catch everything the project refuses on purpose.

ParagramError
├── TextError             parallel text that cannot be read: unequal files, wrong columns, broken encoding
├── StoreError            a pair store that is incomplete, damaged or too small
├── ModelDirectoryError   a model directory that is missing, incomplete, or would be overwritten
├── SettingsError         settings or arguments that contradict each other or the procedure
├── MissingExtraError     an optional dependency is not installed
├── EvaluationError       something to be scored is missing, or a score is not a number
├── DownloadError         a file could not be fetched, or is not what was promised
├── InUseError            another run is writing the same output or folder
└── MiningError           sentences, vectors or an index that cannot be mined
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ParagramError(Exception):
    """Base of all errors raised on purpose; the message is one line: what was seen, where, and what to do."""


class TextError(ParagramError):
    """Parallel text that cannot be read."""


class StoreError(ParagramError):
    """A pair store that is incomplete, damaged or too small."""


class ModelDirectoryError(ParagramError):
    """A model directory that is missing, incomplete, or would be overwritten."""


class SettingsError(ParagramError):
    """Settings or arguments that contradict each other or the procedure."""


class MissingExtraError(ParagramError):
    """An optional dependency is not installed; the message gives the install line."""


class EvaluationError(ParagramError):
    """Something to be scored that is missing, or a score that is not a number."""


class DownloadError(ParagramError):
    """A file that could not be fetched, or is not what was promised."""


class InUseError(ParagramError):
    """Another run is writing the same output or folder."""


class MiningError(ParagramError):
    """Sentences, vectors or an index that cannot be mined, or that do not belong together."""


#: What libraries raise where a file does not hold what is read from it; errors of this package are not among them.
DAMAGED = (ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)


@contextmanager
def refused(
    error: type[ParagramError], where: str | Path, what: str, advice: str, *others: type[Exception]
) -> Iterator[None]:
    """Turn what libraries raise for a damaged file, `DAMAGED` or `others`, into `WHERE: WHAT (REASON); ADVICE`."""
    try:
        yield
    except DAMAGED + others as reason:
        raise error(f"{where}: {what} ({one_line(reason, about=where)}); {advice}") from reason


def one_line(message: object, most: int = 200, about: str | Path | None = None) -> str:
    """An error or a text in one line, cut after `most` characters; an error without words by its type.

    Args:
        message: The error or text.
        most: Maximum characters.
        about: A file that the surrounding message names already, so that an `OSError` does not name it again.
    """
    if isinstance(message, OSError) and message.errno and about and message.filename in (None, about, str(about)):
        return os.strerror(message.errno)
    words = " ".join(str(message).split()) or type(message).__name__
    line = "".join(sign if sign.isprintable() else "?" for sign in words)  # a terminal obeys some of the others
    return line if len(line) <= most else f"{line[: most - 3]}..."


def short(value: object, most: int = 80) -> str:
    """A value as Python writes it, in one line, cut where it is long."""
    return one_line(repr(value), most)
