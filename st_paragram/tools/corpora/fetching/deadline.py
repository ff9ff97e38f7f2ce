"""The time by which something must have come, however many small steps it comes in."""

from __future__ import annotations

import time


class Deadline:
    """A span of time that can begin again; whoever waits asks it first how long to wait."""

    def __init__(self, seconds: float) -> None:
        """Begin.

        Args:
            seconds: The length of the span.
        """
        self.seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Begin again."""
        self._end = time.monotonic() + self.seconds

    def left(self) -> float:
        """Seconds that are left, more than 0.

        Raises:
            TimeoutError: None are.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"nothing within {self.seconds:g} s")
        return left
