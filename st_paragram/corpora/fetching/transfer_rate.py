"""How fast bytes come: a server that only trickles has failed as much as one that is silent."""

from __future__ import annotations

import time

from st_paragram.corpora.fetching.http import TryAgain


class Pace:
    """Watches one try."""

    def __init__(self, least_rate: float, window: float) -> None:
        """Begin a window.

        Args:
            least_rate: Bytes per second.
            window: Seconds over which it must be kept.
        """
        self._least, self._window = least_rate, window
        self._since, self._bytes = time.monotonic(), 0

    def add(self, count: int) -> None:
        """Count bytes.

        Raises:
            TryAgain: Over a window they were too few.
        """
        self._bytes += count
        elapsed = time.monotonic() - self._since
        if elapsed < self._window:
            return
        rate = self._bytes / elapsed
        if rate < self._least:
            raise TryAgain(f"only {rate:,.0f} bytes/s over {elapsed:.0f} s, where {self._least:,.0f} are the least")
        self._since, self._bytes = time.monotonic(), 0
