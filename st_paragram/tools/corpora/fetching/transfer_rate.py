"""The rate of a transfer: a server that only trickles has failed as much as one that is silent."""

from __future__ import annotations

import time

from st_paragram.tools.corpora.fetching.answer import TryAgain


class TransferRate:
    """Watches how fast one attempt gets on."""

    def __init__(self, least_rate: float, window: float) -> None:
        """Begin the first window of time.

        Args:
            least_rate: The lowest rate allowed, in bytes per second.
            window: Seconds over which the rate is taken.
        """
        self._least, self._window = least_rate, window
        self._since, self._bytes = time.monotonic(), 0

    def add(self, count: int) -> None:
        """Count bytes that have come.

        Raises:
            TryAgain: A window has ended and they were too few.
        """
        self._bytes += count
        elapsed = time.monotonic() - self._since
        if elapsed < self._window:
            return
        rate = self._bytes / elapsed
        if rate < self._least:
            raise TryAgain(f"only {rate:,.0f} bytes/s over {elapsed:.0f} s, at least {self._least:,.0f} are expected")
        self._since, self._bytes = time.monotonic(), 0
