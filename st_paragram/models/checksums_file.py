"""`SHA256SUMS` of a model directory: what its files held when it was saved, as `sha256sum -c SHA256SUMS` reads it.

Loading compares them. What people may well write themselves is left out: the model card, and the file with prompts and
similarity. Directories saved by `save_pretrained`, and those of earlier versions, have no such file.
"""

from __future__ import annotations

import re
from pathlib import Path

from st_paragram.checksums import content_digests
from st_paragram.damage import DAMAGED, one_line
from st_paragram.errors import ModelDirectoryError
from st_paragram.files import write_text
from st_paragram.models.configuration import CHECKSUMS_FILE, STOCK_CONFIG_FILE

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
    try:
        entries = [_entry(line) for line in path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")]
        there = [(digest, folder / name) for digest, name in entries if (folder / name).is_file()]
        found = content_digests([file for _, file in there])
    except DAMAGED as error:
        raise ModelDirectoryError(f"{path}: cannot be compared ({one_line(error)}); save the model again") from error
    for (digest, file), sha256 in zip(there, found, strict=True):
        if digest != sha256:
            raise ModelDirectoryError(
                f"{file}: not what was saved there, its SHA-256 is not the one in {CHECKSUMS_FILE}; fetch or save the "
                f"model again, or remove {CHECKSUMS_FILE} if you changed the file yourself"
            )
    return True


def _entry(line: str) -> tuple[str, str]:
    """Digest and name of a line; names lead to files of the folder alone."""
    found = _LINE.fullmatch(line)
    if found is None or found[2].startswith("/") or ".." in found[2].split("/"):
        raise ValueError("a line that sha256sum does not write, or a name that leads elsewhere")
    return found[1], found[2]
