"""What reading a damaged file can raise, and how to report it in one line."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

#: What Python and its libraries raise where a file does not hold what is read from it: values of other types, out of
#: range or missing, nested too deeply, files cut off, links that lead in circles. Errors of this package are not among
#: them.
DAMAGED = (ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)


class refused:
    """Turns what reading a damaged file raises within a `with` block into one error: `WHERE: WHAT (REASON); ADVICE`."""

    def __init__(
        self, error: type[Exception], where: str | Path, what: str, advice: str, *others: type[Exception]
    ) -> None:
        """Prepare it.

        Args:
            error: The error to raise.
            where: The file.
            what: What is wrong with it.
            advice: What to do.
            others: What the block can raise besides `DAMAGED` where the file is damaged.
        """
        self._error, self._where, self._what, self._advice = error, where, what, advice
        self._caught = (*others, *DAMAGED)

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Raise the one error for damaged files."""
        if error is not None and isinstance(error, self._caught):
            reason = one_line(error, about=self._where)
            raise self._error(f"{self._where}: {self._what} ({reason}); {self._advice}") from error


def one_line(error: BaseException, most: int = 200, about: str | Path | None = None) -> str:
    """What an error says, in one line that a terminal can show, cut where it is long; its type if it says nothing.

    Args:
        error: the error.
        most: characters of the longest text.
        about: a file that the message has named already: it is not named again.
    """
    if about is not None and isinstance(error, OSError) and error.errno and error.filename in (None, about, str(about)):
        return os.strerror(error.errno)
    return printable(str(error), most) or type(error).__name__


def short(value: object, most: int = 80) -> str:
    """A value as Python writes it, in one line, cut where it is long."""
    try:
        return printable(repr(value), most)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists in each other
        return f"<{type(value).__name__}>"


def printable(text: object, most: int = 1000) -> str:
    """A text in one line that a terminal can show and does not obey: cut where it is long, control characters escaped.

    Args:
        text: what to show: text of a file or a server, or an error that quotes it.
        most: characters of the longest text, before they are escaped.
    """
    line = " ".join(str(text).split())
    shown = line if len(line) <= most else f"{line[: most - 3]}..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in shown)
