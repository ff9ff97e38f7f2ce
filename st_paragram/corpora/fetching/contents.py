"""Tell by the first bytes whether a file is what its name says, or a web page in its place."""

from __future__ import annotations

from st_paragram.errors import DownloadError

HEAD_BYTES = 512  # enough to tell
_STARTS = {
    ".zip": (b"PK\x03\x04", b"PK\x05\x06"),
    ".gz": (b"\x1f\x8b",),
    ".tgz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\x00",),
}
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<?xml", b"<!--")
_PAGE_REMEDY = "a login, a consent or an error page? Open the address in a browser"


def check_type(filename: str, content_type: str | None, label: str, advice: str) -> None:
    """Refuse by its header a web page that comes instead of a file; arguments as of `check_head`.

    Raises:
        DownloadError: The server calls it HTML.
    """
    if (content_type or "").split(";")[0].strip().lower() in ("text/html", "application/xhtml+xml"):
        raise DownloadError(
            f"{label}: the server sends a web page (HTML) instead of {filename}; {_PAGE_REMEDY}, or {advice}"
        )


def check_head(filename: str, head: bytes, label: str, advice: str) -> None:
    """Refuse by its first bytes what is no file of its kind.

    Args:
        filename: Its ending tells what is expected.
        head: Up to `HEAD_BYTES` first bytes, fewer only if the file is shorter.
        label: What messages call it.
        advice: What else to do, as the end of a message.

    Raises:
        DownloadError: It is a web page, or no archive of the kind.
    """
    for ending, starts in _STARTS.items():
        if filename.endswith(ending):
            if head.startswith(starts):
                return
            if not _is_page(head):
                raise DownloadError(
                    f"{label}: not a {ending[1:]} file, it begins {head[:12]!r}; nothing is kept. "
                    f"Try again later, or {advice}"
                )
    if _is_page(head):
        raise DownloadError(f"{label}: a web page (HTML) came instead of {filename}; {_PAGE_REMEDY}, or {advice}")


def _is_page(head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGES)
