"""What a button does: an answer as HTML, and every error as a message on the page."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from st_paragram.errors import ParagramError, ran_out
from st_paragram.tools.demo_page.html_parts import message

logger = logging.getLogger(__name__)


def as_message(error: Exception) -> str:
    """What to show of an error: what was raised on purpose as it is, of others only that something went wrong."""
    if isinstance(error, ParagramError):
        return message(error)
    if reason := ran_out(error):
        return message(reason)
    logger.error("the demo page: %s", type(error).__name__, exc_info=error)
    return message("Something went wrong here; the terminal that the page was started from says what.")


def answering(answer: Callable[..., str]) -> Callable[..., str]:
    """A function that gives HTML, as one that gives a message in place of an error."""

    def answered(*given: Any) -> str:  # noqa: ANN401 - whatever the page's fields hold
        try:
            return answer(*given)
        except Exception as error:
            return as_message(error)

    return answered
