"""Whether what a server sends as the rest of a file is the rest of the same file."""

from __future__ import annotations

import re
from dataclasses import replace

from st_paragram.tools.corpora.fetching.answer import Answer, TryAgain
from st_paragram.tools.corpora.fetching.partial import Origin
from st_paragram.tools.corpora.fetching.transfer_rate import TransferRate

_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")  # RFC 9110, 14.4


class StartAnew(Exception):
    """What is there is no beginning of the file."""


def continued(answer: Answer, origin: Origin | None, start: int, size: int) -> Origin:
    """Compare what the server says of the rest with what it said of the beginning.

    Args:
        answer: With status 206.
        origin: What the part is a part of; None if no rest was asked for.
        start: The first byte asked for.
        size: Bytes that are there.

    Returns:
        The origin, with the size of the whole file where only the rest states it.

    Raises:
        StartAnew: It is the rest of another file, or begins or ends elsewhere.
    """
    stated = answer.header("Content-Range") or ""
    found = _RANGE.fullmatch(stated.strip())
    if origin is None or found is None:
        raise StartAnew(f"Content-Range {stated!r} from byte {start}")
    first, last, total = int(found[1]), int(found[2]), None if found[3] == "*" else int(found[3])
    if first != start or last < first or (total is not None and last >= total):
        raise StartAnew(f"Content-Range {stated!r} from byte {start}")
    if answer.length not in (None, last - first + 1):
        raise StartAnew(f"Content-Range {stated!r} in {answer.length} bytes")
    if total is not None and (total < size or origin.total not in (None, total)):
        raise StartAnew(f"{total} bytes in all after {origin.total or size}")
    for name, before in (("ETag", origin.etag), ("Last-Modified", origin.last_modified)):
        now = answer.header(name)
        if now and before and now != before:
            raise StartAnew(f"{name} {now} after {before}")
    return replace(origin, total=total) if origin.total is None else origin


def compare(answer: Answer, known: bytes, rate: TransferRate) -> None:
    """Read as many bytes as are known already: those from which the rest goes on.

    Raises:
        StartAnew: They differ.
        TryAgain: They do not all come.
    """
    come = 0
    while come < len(known):
        block = answer.read(len(known) - come)
        if not block:
            raise TryAgain(f"broke off {len(known) - come:,} bytes before anything new")
        if block != known[come : come + len(block)]:
            raise StartAnew("the bytes where it goes on are others now")
        come += len(block)
        rate.add(len(block))
