"""Uploaded lists: read as text, and removed at once."""

from __future__ import annotations

from pathlib import Path

from st_paragram.errors import TextError
from st_paragram.tools.demo_page.limits import LIST_BYTES, checked_lines


def read_upload(path: str | Path) -> str:
    """The lines of an uploaded list, joined again; the file is removed whether it can be read or not.

    Args:
        path: where the upload lies, plain text in UTF-8, with or without a byte order mark.

    Raises:
        TextError: it is too large, no text, empty, or has too many or too long lines.
    """
    file = Path(path)
    try:
        with file.open("rb") as handle:
            content = handle.read(LIST_BYTES + 1)
    except OSError as error:
        raise TextError("The uploaded file is gone. Please upload it again.") from error
    finally:
        file.unlink(missing_ok=True)
    if len(content) > LIST_BYTES:
        raise TextError(f"The file is larger than {LIST_BYTES:,} bytes. Please upload a smaller one.")
    if b"\0" in content:
        raise TextError("The file is no plain text. Please upload a .txt file with a sentence a line.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise TextError(f"Line {line} of the file is not UTF-8. Please save the file as UTF-8.") from error
    return "\n".join(checked_lines(text))
