"""uvicorn's server, which reports when it answers."""

from __future__ import annotations

import socket
from collections.abc import Callable

from uvicorn import Config, Server


class AnnouncingServer(Server):
    """A server that calls a function once, when it has begun to take requests.

    Args:
        config: uvicorn's.
        ready: the function.
    """

    def __init__(self, config: Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests from the sockets, and report it."""
        await super().startup(sockets)
        try:
            self._ready()
        except Exception:  # nobody reads the report: end as if asked to
            await self.shutdown(sockets)
            raise
