"""The project's exceptions, with one base class for all errors that are raised on purpose.

ParagramError
├── TextError             parallel text that cannot be read: unequal files, wrong columns
├── StoreError            a pair store that is incomplete, damaged or too small
├── ModelDirectoryError   a model directory that is missing, incomplete or would be overwritten
├── SettingsError         settings or arguments that contradict each other or the procedure; also a
│                         ValueError
├── MissingExtraError     an optional dependency is not installed
│   └── MissingNameError  a public name needs it; also an AttributeError
├── EvaluationError       evaluation data is missing, or a score is not a number
├── DownloadError         a file could not be downloaded, or its content is wrong
├── InUseError            another run is writing the same output or folder
└── MiningError           sentences, vectors or an index that cannot be mined or searched
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class ParagramError(Exception):
    """Base class of all errors raised on purpose.

    The message is one line: the problem, its place, and what to do.
    """


class TextError(ParagramError):
    """Parallel text that cannot be read."""


class StoreError(ParagramError):
    """A pair store that is incomplete, damaged or too small."""


class ModelDirectoryError(ParagramError):
    """A model directory that is missing, incomplete, or would be overwritten."""


class SettingsError(ParagramError, ValueError):
    """Settings or arguments that contradict each other or the procedure; also a `ValueError`."""


class MissingExtraError(ParagramError):
    """An optional dependency is not installed; the message gives the install line."""


class MissingNameError(MissingExtraError, AttributeError):
    """A public name whose optional dependency is not installed; `hasattr` is False for it."""


class EvaluationError(ParagramError):
    """Evaluation data that is missing, or a score that is not a number."""


class DownloadError(ParagramError):
    """A file that could not be downloaded, or whose content is wrong."""


class InUseError(ParagramError):
    """Another run is writing the same output or folder."""


class MiningError(ParagramError):
    """Sentences, vectors or an index that cannot be used for mining or search."""


#: Errors of libraries for files with unexpected content; this package's errors are not among them.
DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


@contextmanager
def refused(
    error: type[ParagramError], where: str | Path, what: str, advice: str, *others: type[Exception]
) -> Iterator[None]:
    """Turn the errors of libraries for a damaged file into `WHERE: WHAT (REASON); ADVICE`.

    These errors are `DAMAGED` and `others`.
    """
    try:
        yield
    except DAMAGED + others as reason:
        # of this package's errors, some are also a ValueError or an AttributeError
        if isinstance(reason, ParagramError) and not isinstance(reason, others):
            raise
        raise error(f"{where}: {what} ({one_line(reason, about=where)}); {advice}") from reason


def one_line(message: object, most: int = 200, about: str | Path | None = None) -> str:
    """Format an error or a text in one line; an error without text by its type.

    Args:
        message: Error or text.
        most: Maximum number of characters.
        about: File that the surrounding message already names, so that an `OSError` does not name
            it again.
    """
    if isinstance(message, OSError) and message.errno:
        if about is not None and message.filename in (None, about, str(about)):
            return os.strerror(message.errno)
        if message.filename is not None:
            message = f"{message.filename}: {os.strerror(message.errno)}"
    line = " ".join(str(message).split()) or type(message).__name__
    # other characters may control a terminal
    line = "".join(character if character.isprintable() else "?" for character in line)
    if len(line) > most:
        return f"{line[: most - 3]}..."
    return line


def short(value: object, most: int = 80) -> str:
    """Format a value with `repr`, in one line of at most `most` characters."""
    return one_line(repr(value), most)
