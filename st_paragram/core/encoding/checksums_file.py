"""`SHA256SUMS` of a model directory: what its files held when it was saved, as `sha256sum -c SHA256SUMS` reads it.

Loading compares them, once for each state of the files (see `known_files`). What people may well write themselves is
left out: the model card, and the file with prompts and similarity. Directories saved by `save_pretrained`, and those of
earlier versions, have no such file.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from st_paragram.core.checksums import content_digests
from st_paragram.core.encoding.configuration import CHECKSUMS_FILE, CONFIG_FILE, STOCK_CONFIG_FILE, WEIGHTS_FILE
from st_paragram.core.files import write_text
from st_paragram.core.known_files import KnownDigest
from st_paragram.errors import ModelDirectoryError, refused

_MAY_CHANGE = (CHECKSUMS_FILE, STOCK_CONFIG_FILE, "README.md")
_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^\0\\]+)")


def write_checksums(folder: Path) -> None:
    """Write down what the files of a folder hold, all of them being there."""
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    names = [name for name in names if name not in _MAY_CHANGE]
    digests = content_digests([folder / name for name in names])
    lines = [f"{digest}  {name}\n" for digest, name in zip(digests, names, strict=True)]
    write_text(folder / CHECKSUMS_FILE, "".join(lines))


def check(folder: Path) -> bool:
    """Compare the files of a model directory with its `SHA256SUMS`; those that are not there are left out.

    Returns:
        Whether there is such a file.

    Raises:
        ModelDirectoryError: a file holds something else, or cannot be read.
    """
    path = folder / CHECKSUMS_FILE
    if not path.is_file():
        return False
    there = _listed(folder)
    with _comparing(path):
        found = content_digests([file for _, file in there])
    for (digest, file), sha256 in zip(there, found, strict=True):
        if digest != sha256:
            raise ModelDirectoryError(
                f"{file}: not what was saved there, its SHA-256 is not the one in {CHECKSUMS_FILE}; fetch or save the "
                f"model again, or remove {CHECKSUMS_FILE} if you changed the file yourself"
            )
    return True


class Seal:
    """What opening a model directory has found out before: all files are what was saved, and the numbers are sound.

    Attributes:
        known: Whether this was found out for the files as they are now.
    """

    def __init__(self, folder: Path) -> None:
        """Look it up; no file of the model is read.

        Raises:
            ModelDirectoryError: `SHA256SUMS` is damaged.
        """
        self._folder, path = folder, folder / CHECKSUMS_FILE
        sums = path.read_bytes() if path.is_file() else b""
        self._sums = hashlib.sha256(sums).hexdigest()
        files = [file for _, file in _listed(folder)] if sums else []
        self._known = KnownDigest("models", [path, folder / CONFIG_FILE, folder / WEIGHTS_FILE, *files])
        self.known = self._known.read() == self._sums

    def close(self) -> None:
        """Compare all files with `SHA256SUMS` and remember it; the caller has looked at the numbers.

        Raises:
            ModelDirectoryError: as of `check`.
        """
        if not self.known:
            check(self._folder)
            self._known.write(self._sums)


def _listed(folder: Path) -> list[tuple[str, Path]]:
    """The entries of `SHA256SUMS` whose files are there: digest and file.

    Raises:
        ModelDirectoryError: it is damaged.
    """
    path = folder / CHECKSUMS_FILE
    with _comparing(path):
        entries = [_entry(line) for line in path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")]
        return [(digest, folder / name) for digest, name in entries if (folder / name).is_file()]


def _comparing(path: Path) -> refused:
    return refused(ModelDirectoryError, path, "cannot be compared", "save the model again")


def _entry(line: str) -> tuple[str, str]:
    """Digest and name of a line; names lead to files of the folder alone."""
    found = _LINE.fullmatch(line)
    if found is None or found[2].startswith("/") or ".." in found[2].split("/"):
        raise ValueError("a line that sha256sum does not write, or a name that leads elsewhere")
    return found[1], found[2]
