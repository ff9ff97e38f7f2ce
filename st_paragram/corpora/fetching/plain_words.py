"""What a server says, made fit for a message: one line, not too long, without anything that a terminal would obey."""

from __future__ import annotations


def plain(words: object, most: int = 200) -> str:
    """Escape what cannot be printed (control characters, line breaks, marks of direction) and cut what is too long.

    Args:
        words: What to show: text of a server, or an error that quotes it.
        most: The longest text, in characters before they are escaped.
    """
    text = str(words)
    shown = text if len(text) <= most else f"{text[:most]}..."
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in shown)


def whole_number(text: str | None) -> int | None:
    """Read a number that a server sends: up to 18 plain digits. None for anything else, or for nothing."""
    text = (text or "").strip(" \t")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
