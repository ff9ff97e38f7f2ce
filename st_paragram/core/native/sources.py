"""Which sources compiled kernels were built from; setup.py runs this file, too, before the package is importable."""

from __future__ import annotations

import hashlib
from pathlib import Path

SOURCES = Path(__file__).with_name("src")


def sources_mark(folder: Path = SOURCES) -> str | None:
    """What kernels built from the C++ sources of a folder hold in their file: "sources_" and 64 hexadecimal digits.

    Args:
        folder: Of the sources.

    Returns:
        The mark; None if there are no sources, as in an installed package. Line ends of Windows do not change it.
    """
    found = hashlib.sha256()
    files = sorted(path for path in folder.glob("*") if path.suffix in (".cpp", ".h"))
    for path in files:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        found.update(f"{path.name} {len(content)}\n".encode() + content)
    return f"sources_{found.hexdigest()}" if files else None
