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
    """Something to be scored that is missing, or a score that is no number."""


class DownloadError(ParagramError):
    """A file that could not be fetched, or is not what was promised; the message says from where and what to do."""


class MiningError(ParagramError):
    """Sentences, vectors or an index that cannot be mined, or that do not belong together."""
