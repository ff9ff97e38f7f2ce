"""A peer's side of the talk with the benchmark: ready, a round when asked for one, stop."""

from __future__ import annotations

import json
from typing import Any, TextIO


class PeerAbsentError(Exception):
    """A peer cannot run here; the message goes into the table, e.g. "not installed: pip install model2vec"."""


class Channel:
    """Lines of JSON: `incoming` brings "round" or "stop", `outgoing` takes what was measured."""

    def __init__(self, incoming: TextIO, outgoing: TextIO) -> None:
        """Talk through two open files."""
        self._incoming = incoming
        self._outgoing = outgoing

    def ready(self, **metadata: Any) -> None:  # noqa: ANN401
        """Say that everything is loaded, and metadata about it."""
        self.send({"ready": metadata})

    def wait(self) -> bool:
        """Wait until a round is asked for; False when there will be no more."""
        line = self._incoming.readline()
        return bool(line) and json.loads(line) == "round"

    def report(self, seconds: float, work: float, **metadata: Any) -> None:  # noqa: ANN401
        """Report a round: wall time and units of work."""
        self.send({"seconds": seconds, "work": work, "metadata": metadata})

    def send(self, message: dict[str, Any]) -> None:
        """Write a message as one line."""
        self._outgoing.write(json.dumps(message) + "\n")
        self._outgoing.flush()
