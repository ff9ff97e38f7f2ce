"""What the log says of an exception: its kind and its places.

Never its message nor those of its causes, which might hold a text of a request, and no values.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from traceback import extract_tb
from typing import Any

logger = logging.getLogger(__name__)
_PLACES = 4  # the innermost ones


def log_failure(what: str, error: BaseException) -> None:
    """Log that something failed, with the kind of the error and where it was raised, innermost place first."""
    frames = extract_tb(error.__traceback__)[-_PLACES:]
    places = [f"{Path(each.filename).name}:{each.lineno} ({each.name})" for each in reversed(frames)]
    logger.error("%s failed: %s at %s", what, type(error).__name__, ", ".join(places) or "an unknown place")


def log_stray(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what nobody waited for, in place of asyncio, which would write messages and values.

    An exception handler of an event loop.
    """
    error = context.get("exception")
    if error is not None:
        log_failure("something in the background", error)
    else:
        logger.error("something in the background failed without an exception")
