"""Sockets that listen."""

from __future__ import annotations

import os
import socket
import sys

from st_paragram.errors import SettingsError

_UNREAD_SECONDS = 60


def listen(host: str, port: int, is_shared: bool = False) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Args:
        host: address.
        port: number.
        is_shared: other sockets of this user may listen there, too, and Linux spreads connections over all of them.

    Raises:
        SettingsError: host or port cannot be listened at.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only over sockets that say they are TCP; others wait for 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere the option would share a port that is in use
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # a client that reads nothing of its answer is given up
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _UNREAD_SECONDS)
        listening.bind((host, port))
        listening.listen(1024)
        return listening
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or str(error)
        seen = f"cannot listen on {host}, port {port} ({reason})"
        raise SettingsError(f"{seen}; choose another --host or --port") from error


def listen_together(host: str, port: int, count: int) -> list[socket.socket]:
    """Sockets at one port, one per process.

    On Linux each of them has a separate queue of connections; elsewhere all are the same socket.

    Raises:
        SettingsError: host or port cannot be listened at.
    """
    alone = listen(host, port)  # refuses a port in use, which a shared socket would join
    if count == 1 or sys.platform != "linux":
        return [alone] * count
    port = alone.getsockname()[1]
    alone.close()
    return [listen(host, port, is_shared=True) for _ in range(count)]


def address(listening: socket.socket) -> str:
    """The URL of a server that listens there."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
