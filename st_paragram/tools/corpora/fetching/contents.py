"""Tell by its first bytes whether a file is of the kind that its name says, or a web page sent in its place."""

from __future__ import annotations

from st_paragram.errors import DownloadError

HEAD_BYTES = 512  # enough to recognise all kinds
_STARTS = {
    ".zip": (b"PK\x03\x04", b"PK\x05\x06"),
    ".gz": (b"\x1f\x8b",),
    ".tgz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\x00",),
}
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<?xml", b"<!--")
_REMEDY = "perhaps a login, consent or error page: open the address in a browser"


def check_type(filename: str, content_type: str | None, label: str, advice: str) -> None:
    """Refuse a web page that is sent instead of a file, by its header; arguments as of `check_head`.

    Raises:
        DownloadError: The server says that it sends HTML.
    """
    if (content_type or "").split(";")[0].strip().lower() in ("text/html", "application/xhtml+xml"):
        raise DownloadError(
            f"{label}: the server sends a web page (HTML) instead of {filename}; {_REMEDY}, or {advice}"
        )


def check_coding(filename: str, coding: str | None, label: str, advice: str) -> None:
    """Refuse a file that a server has packed once more on its way, though it was asked not to.

    A `.gz` file may be announced as such: some servers take its own packing for one of the transfer.

    Raises:
        DownloadError: The body is not the file.
    """
    kept = ("identity", "gzip", "x-gzip") if filename.endswith((".gz", ".tgz")) else ("identity",)
    if coding and coding.strip().lower() not in kept:
        raise DownloadError(
            f"{label}: the server sends {filename} packed once more ({coding}); try again later, or {advice}"
        )


def check_head(filename: str, head: bytes, label: str, advice: str) -> None:
    """Refuse a file that is not of the kind that its name says, by its first bytes.

    Args:
        filename: Its ending tells which kind is expected.
        head: The first `HEAD_BYTES` bytes; fewer only if the file is shorter.
        label: The name of the file in messages.
        advice: What else to do, as the end of a message.

    Raises:
        DownloadError: It is a web page, or not a file of this kind.
    """
    for ending, starts in _STARTS.items():
        if filename.endswith(ending):
            if head.startswith(starts):
                return
            if not _is_page(head):
                raise DownloadError(
                    f"{label}: not a {ending[1:]} file, it begins with {head[:12]!r}; nothing is kept. "
                    f"Try again later, or {advice}"
                )
    if _is_page(head):
        raise DownloadError(f"{label}: a web page (HTML) came instead of {filename}; {_REMEDY}, or {advice}")


def _is_page(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGES)
