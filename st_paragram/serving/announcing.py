"""uvicorn's server, which tells when it answers."""

from __future__ import annotations

import socket
from collections.abc import Callable

from uvicorn import Config, Server


class AnnouncingServer(Server):
    """A server that calls a function once, when it has begun to take requests.

    Args:
        config: of uvicorn.
        ready: what is called.
    """

    def __init__(self, config: Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests from the sockets, and tell it."""
        await super().startup(sockets)
        try:
            self._ready()
        except Exception:  # nobody reads what is told: end as if asked to
            await self.shutdown(sockets)
            raise
