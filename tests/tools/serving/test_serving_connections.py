"""Limits of connections: large heads, slow clients, and too many clients, over sockets."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import suppress

import pytest

for package in ("httptools", "orjson", "starlette", "uvicorn"):
    pytest.importorskip(package)

from starlette.responses import Response  # noqa: E402
from uvicorn import Config, Server  # noqa: E402

from st_paragram.tools.serving import protocol  # noqa: E402

BODY = b"x" * 300_000
QUIET = {"log_level": "critical", "timeout_graceful_shutdown": 1}


async def application(scope, receive, send):
    """Answer with the size of the body; `/large` with more than the system's buffers hold."""
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    content = b"y" * 40_000_000 if scope["path"] == "/large" else str(size).encode()
    await Response(content)(scope, receive, send)


@pytest.fixture(scope="module")
def port():
    """The port of a server with small limits of time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "RECEIVE_SECONDS", 0.6)
        patch.setattr(protocol, "SEND_SECONDS", 0.6)
        patch.setattr(protocol, "CHECK_SECONDS", 0.1)
        patch.setattr(protocol, "MAX_CONNECTIONS", 5)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            config = Config(
                application,
                http=protocol.LimitedProtocol,
                loop="asyncio",
                lifespan="off",
                ws="none",
                **QUIET,
            )
            server = Server(config)
            thread = threading.Thread(target=server.run, args=([listening],))
            thread.start()
            yield listening.getsockname()[1]
            server.should_exit = True
            thread.join(10)


@pytest.fixture
def connect(port):
    """A function that opens a connection."""
    opened = []

    def connected():
        opened.append(socket.create_connection(("127.0.0.1", port), 10))
        return opened[-1]

    yield connected
    for client in opened:
        client.close()
    time.sleep(0.2)  # until the server has noticed


def answer(client):
    """The status and the content of an answer, until the server closes the connection or the answer
    is complete.
    """
    content = b""
    while b"\r\n\r\n" not in content or len(content.partition(b"\r\n\r\n")[2]) < length(content):
        part = client.recv(1 << 20)
        if not part:
            break
        content += part
    head, _, body = content.partition(b"\r\n\r\n")
    return int(head.split()[1]), body.decode()


def length(content):
    head = content.partition(b"\r\n\r\n")[0].lower()
    return int(head.partition(b"content-length: ")[2].split()[0])


def message(body):
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error["message"]


def request(size=0, path="/", rest=b"", end=b"\r\n\r\n"):
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}".encode() + rest + end


def test_ordinary_requests_pass(connect):
    client = connect()
    for size in (0, 10, len(BODY)):
        client.sendall(request(size) + BODY[:size])
        assert answer(client) == (200, str(size))
    client.sendall(request(rest=b"\r\nX-A: " + b"a" * 60_000))
    assert answer(client) == (200, "0")
    client.sendall(request(5) + b"12345" + request(3) + b"123")  # together
    assert answer(client)[0] == 200
    client = connect()
    client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(30_000):
        client.sendall(b"1\r\nz\r\n")
    client.sendall(b"0\r\n\r\n")
    assert answer(client) == (200, "30000")


LARGE = b"a" * 70_000


CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
HEADS = {
    "value": request(rest=b"\r\nX-A: " + LARGE),
    "open value": request(rest=b"\r\nX-A: " + LARGE, end=b""),
    "many": request(rest=b"".join(b"\r\nX-%d: a" % number for number in range(10_000))),
    "address": request(path="/" + LARGE.decode()),
    "open address": b"GET /" + LARGE,
    "trailer": CHUNKED + b"1\r\na\r\n0\r\nX: " + LARGE,
    "extension": CHUNKED + b"1;a=" + LARGE,
}


@pytest.mark.parametrize(
    ("name", "parts"), [(name, 20) for name in HEADS] + [(name, 1) for name in list(HEADS)[:5]]
)
def test_large_heads_are_refused_however_they_arrive(connect, name, parts):
    client = connect()
    size = -(-len(HEADS[name]) // parts)
    try:
        for begin in range(0, len(HEADS[name]), size):
            client.sendall(HEADS[name][begin : begin + size])
            time.sleep(0.002)
        status, body = answer(client)
    # the server closed the connection before all was sent, so its answer may be lost
    except ConnectionError:
        assert parts > 1
        return
    assert status == 431 and "larger than 65536 bytes" in message(body)


def test_what_is_not_http_is_refused(connect):
    client = connect()
    client.sendall(b"\x16\x03\x01 hello\r\n\r\n")
    status, body = answer(client)
    assert status == 400 and message(body) == "this is not an HTTP request"


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("start", [b"POST / HTTP/1.1\r\nX: ", request(1000)])
def test_clients_that_drip_are_closed(connect, start, is_first):
    client = connect()
    if not is_first:
        client.sendall(request())
        assert answer(client) == (200, "0")
    client.sendall(start)
    begun = time.monotonic()
    client.settimeout(0.05)
    received = b""
    while time.monotonic() - begun < 5 and b"HTTP" not in received:
        with suppress(TimeoutError):
            received += client.recv(1 << 16)
        with suppress(ConnectionError):
            client.sendall(b"a")
    assert b" 408 " in received and b"took longer than" in received
    assert time.monotonic() - begun < 3


def test_idle_connections_are_closed(connect):
    client = connect()
    assert client.recv(100) == b""


def test_clients_that_do_not_read_are_closed(connect):
    client = connect()
    client.sendall(request(path="/large"))
    time.sleep(1.5)
    received = 0
    with suppress(ConnectionError):
        while part := client.recv(1 << 20):
            received += len(part)
    assert received < 40_000_000


def test_more_connections_are_refused(connect):
    clients = [connect() for _ in range(5)]
    time.sleep(0.1)
    client = connect()
    status, body = answer(client)
    assert status == 503 and "5 connections are open" in message(body)
    clients[0].sendall(request())
    assert answer(clients[0]) == (200, "0")
    clients[1].close()
    time.sleep(0.2)
    client = connect()
    client.sendall(request())
    assert answer(client) == (200, "0")
