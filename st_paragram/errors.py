"""The project's exceptions: one tree, so that a caller can catch everything the project refuses on purpose."""

from __future__ import annotations


class ParagramError(Exception):
    """Base of all errors raised on purpose; the message is one line that says what was seen, where, and what to do."""


class TextError(ParagramError):
    """Parallel text that cannot be read as such: unequal files, wrong columns, broken encoding, truncated archives."""


class StoreError(ParagramError):
    """A pair store that is incomplete, of another version, damaged or too small."""


class ModelDirectoryError(ParagramError):
    """A model directory that is missing, incomplete, or would be overwritten."""


class SettingsError(ParagramError):
    """Settings that contradict each other or the procedure."""


class MissingExtraError(ParagramError):
    """An optional dependency is not installed; the message gives the install line."""


class EvaluationError(ParagramError):
    """Something to be scored that is missing, or a score that is not a number."""


class DownloadError(ParagramError):
    """A file that could not be fetched, or is not what was promised; the message says from where and what to do."""


class InUseError(ParagramError):
    """Another run is at work on the same output or in the same folder."""


class MiningError(ParagramError):
    """Sentences, vectors or an index that cannot be mined, or that do not belong together."""


#: What others say in whom memory ends otherwise than by MemoryError: torch, the loader of shared libraries, Python's
#: threads, and numpy, which may forget to say anything.
_OUT_OF_MEMORY = (
    "allocate memory",
    "map segment",
    "bad_alloc",
    "temporarily unavailable",
    "start new thread",
    "without exception set",
)


def ran_out(error: Exception) -> str | None:
    """In one line what was asked for in vain, if an error means that memory or threads have run out."""
    said = " ".join(str(error).split())
    if not isinstance(error, MemoryError) and not any(sign in said for sign in _OUT_OF_MEMORY):
        return None
    return f"not enough memory ({said or type(error).__name__}); close other programs, or give this process more of it"
