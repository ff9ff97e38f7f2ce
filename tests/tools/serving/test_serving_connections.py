"""A server that really listens: what it does with strange, slow and leaving clients, and what it logs."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

for package in ("httptools", "orjson", "prometheus_client"):
    pytest.importorskip(package)
uvicorn = pytest.importorskip("uvicorn")

from st_paragram.tools.serving import guard  # noqa: E402
from st_paragram.tools.serving.listening import listen  # noqa: E402
from st_paragram.tools.serving.messages import Answer  # noqa: E402
from st_paragram.tools.serving.run import build_app, configuration  # noqa: E402
from st_paragram.tools.serving.served_model import ServedModel  # noqa: E402
from st_paragram.tools.serving.settings import ServingSettings  # noqa: E402

SECRET = "a text that no line of the log may hold"


@pytest.fixture
def served():
    return ServedModel("p-sp-mini")


@contextmanager
def running(app, settings):
    """An application behind uvicorn, in a thread: its port, and the server."""
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(configuration(app, settings))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1], server
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def request(text, path="/v1/embeddings"):
    body = json.dumps({"model": "p-sp-mini", "input": text}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


def connected(port, content):
    connection = socket.create_connection(("127.0.0.1", port), 20)
    connection.sendall(content)
    return connection


def answered(connection):
    """Status and content of an answer; (0, b"") if the connection was closed without one."""
    with connection:
        head, _, content = connection.makefile("rb").read().partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, content


def read_json(connection):
    """The content of an answer whose connection stays open."""
    seen = b""
    while not seen.endswith(b"}"):
        seen += connection.recv(10_000)
    return json.loads(seen.partition(b"\r\n\r\n")[2])


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def refuses(port):
    """Whether nobody listens at a port any more."""
    try:
        socket.create_connection(("127.0.0.1", port), 20).close()
    except ConnectionError:
        return True
    return False


class Slow:
    """Encodes after `go`, and remembers what it was asked."""

    def __init__(self, dimension):
        self.dimension, self.go, self.calls = dimension, threading.Event(), []

    def __call__(self, texts, kind):
        self.calls.append(texts)
        assert self.go.wait(60)
        if SECRET in texts:
            raise ValueError(SECRET)
        return np.ones((len(texts), self.dimension), np.float32)


@pytest.fixture
def slow(served, monkeypatch):
    encode = Slow(served.dimension)
    monkeypatch.setattr(served, "encode", encode)
    monkeypatch.setattr(ServedModel, "short", 0)  # the event loop must not wait
    yield encode
    encode.go.set()


@pytest.fixture
def log(caplog, monkeypatch):
    """All warnings and errors that are logged, by uvicorn and asyncio too."""
    caplog.set_level(logging.WARNING)  # earlier tests may have configured uvicorn's loggers
    monkeypatch.setattr(uvicorn.Config, "configure_logging", lambda self: None)  # it would take handlers away
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "level", logging.NOTSET)
    return lambda: caplog.text


def test_what_fails_is_answered_and_logged_without_texts(served, slow, log):
    slow.go.set()
    with running(build_app(served), ServingSettings()) as (port, _):
        status, content = answered(connected(port, request(SECRET)))
        assert status == 500 and json.loads(content)["error"]["type"] == "server_error"
        assert answered(connected(port, request("another")))[0] == 200
    assert "a request failed: ValueError at test_serving_connections.py" in log()
    assert SECRET not in log() and "Traceback" not in log()


def test_an_endpoint_that_fails_is_logged_without_texts(served, log):
    async def failing(request):
        raise RuntimeError(SECRET)

    app = build_app(served)
    app.guard.respond = failing
    with running(app, ServingSettings()) as (port, _):
        assert answered(connected(port, request(SECRET)))[0] == 500
    assert log().count("a request failed: RuntimeError") == 1
    assert SECRET not in log() and "Traceback" not in log()


def test_an_answer_that_cannot_be_sent_is_logged_without_texts(served, log):
    async def unsendable(request):
        return Answer(b"{}", headers={"x-wrong": f"{SECRET}\n"})

    app = build_app(served)
    app.guard.respond = unsendable
    with running(app, ServingSettings()) as (port, _):
        answered(connected(port, request("a")))
    assert "sending an answer failed: RuntimeError" in log() and SECRET not in log() and "Traceback" not in log()


def test_a_task_that_nobody_waits_for_is_logged_without_texts(served, log):
    async def forgetful(request):
        async def fail():
            raise RuntimeError(SECRET)

        asyncio.get_running_loop().create_task(fail())
        await asyncio.sleep(0.01)
        return Answer(b"{}")

    app = build_app(served)
    app.guard.respond = forgetful
    with running(app, ServingSettings()) as (port, _):
        assert answered(connected(port, request(SECRET)))[0] == 200
        until(lambda: "RuntimeError" in log())
    assert "in the background failed: RuntimeError" in log()
    assert SECRET not in log() and "Traceback" not in log()


def test_a_client_that_leaves_is_not_encoded_for_and_harms_nobody(served, slow, log):
    app = build_app(served)
    with running(app, ServingSettings()) as (port, _):
        first = connected(port, request("first"))
        until(lambda: slow.calls)
        leaving, staying = connected(port, request("leaves")), connected(port, request("stays"))
        until(lambda: app.batcher.waiting == 2)
        leaving.close()
        until(lambda: app.batcher.waiting == 1)
        slow.go.set()
        assert answered(first)[0] == answered(staying)[0] == 200
    assert slow.calls == [["first"], ["stays"]] and not log()


def test_a_server_that_stops_answers_who_waits(served, slow, log):
    app = build_app(served)
    with running(app, ServingSettings()) as (port, server):
        waiting = [connected(port, request("first"))]
        until(lambda: slow.calls)
        waiting += [connected(port, request(text)) for text in ("second", "third")]
        until(lambda: app.batcher.waiting == 2)
        server.should_exit = True
        until(lambda: refuses(port))
        slow.go.set()
        assert [answered(connection)[0] for connection in waiting] == [200] * 3
    assert not log()


def test_who_waits_longer_than_a_stopping_server_is_told(served, slow, log):
    with running(build_app(served), ServingSettings(stop_seconds=1)) as (port, server):
        waiting = connected(port, request(SECRET))
        until(lambda: slow.calls)
        server.should_exit = True
        began = time.monotonic()
        status, content = answered(waiting)  # while its texts are still encoded
        assert time.monotonic() - began < 10
        slow.go.set()
    assert status == 503 and "being stopped" in json.loads(content)["error"]["message"]
    assert SECRET not in log() and "Traceback" not in log()


@pytest.mark.parametrize("content", [b"", b"POST /score HTTP/1.1\r\nX-Slow: a"])
def test_headers_that_do_not_come_are_not_waited_for(served, content):
    settings = ServingSettings(body_seconds=1.0)
    with running(build_app(served, settings), settings) as (port, _):
        began = time.monotonic()
        assert answered(connected(port, content)) == (0, b"")
        assert 0.9 < time.monotonic() - began < 5


def test_headers_of_a_later_request_have_their_own_time(served):
    settings = ServingSettings(body_seconds=1.0)
    with running(build_app(served, settings), settings) as (port, _):
        asked = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        with connected(port, asked) as connection:
            assert read_json(connection)["status"] == "ok"
            time.sleep(1.5)  # between requests nothing is late
            connection.sendall(asked)
            assert read_json(connection)["status"] == "ok"
            connection.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
            began = time.monotonic()
            assert connection.recv(10_000) == b"" and time.monotonic() - began < 5


@pytest.mark.parametrize(
    "content",
    [
        b"\x01X /score HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /score HTTP/1.1\r\nHost: x\r\nContent-Length: -4\r\n\r\n",
        b"POST /score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n" + SECRET.encode(),
        SECRET.encode() + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nX-Long: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_in_the_form_of_other_errors(served, content, log):
    with running(build_app(served), ServingSettings()) as (port, _):
        status, told = answered(connected(port, content))
        assert answered(connected(port, request("another")))[0] == 200
    assert status == 400 and json.loads(told)["error"]["type"] == "invalid_request_error"
    assert SECRET not in log()


@pytest.mark.parametrize(
    "begin",
    [
        b"POST /score HTTP/1.1\r\nX-Long: ",
        b"POST /score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Trailer: ",
        b"POST /score HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;",
    ],
)
def test_what_surrounds_a_body_may_not_grow_without_end(served, begin):
    with running(build_app(served), ServingSettings()) as (port, _):
        with connected(port, begin) as connection, pytest.raises(ConnectionError):
            for _ in range(1000):
                connection.sendall(b"a" * 10_000)
                time.sleep(0.001)
        assert answered(connected(port, request("another")))[0] == 200


@pytest.mark.parametrize("framing", ["Content-Length: {size}", "Transfer-Encoding: chunked"])
def test_a_client_that_offers_http_2_is_answered_with_http_1(served, framing, log):
    body = json.dumps({"model": "p-sp-mini", "input": "a"}).encode()
    head = "POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    head += f"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Type: application/json\r\n{framing}\r\n\r\n"
    sent = body if "size" in framing else b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    sent = head.format(size=len(body)).encode() + sent
    with running(build_app(served), ServingSettings()) as (port, _), connected(port, sent) as connection:
        assert len(read_json(connection)["data"]) == 1
    assert not log()


HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n"
UPGRADE = HEALTH + b"Upgrade: h2c\r\nConnection: Upgrade"


@pytest.mark.parametrize(
    ("content", "answers"),
    [
        ((UPGRADE + b"\r\n\r\n") * 500 + HEALTH + b"Connection: close\r\n\r\n", 501),
        (UPGRADE + b", close\r\n\r\nGET", 1),  # what follows a connection's last request means nothing
        (UPGRADE.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n\r\n", 1),  # a client of HTTP/1.0 waits for the end
    ],
)
def test_a_declined_upgrade_changes_nothing_else(served, log, content, answers):
    with running(build_app(served), ServingSettings()) as (port, _), connected(port, content) as connection:
        connection.settimeout(10)
        assert connection.makefile("rb").read().count(b"HTTP/1.1 200 OK") == answers
    assert not log()


def test_a_line_end_between_requests_keeps_no_connection(served):
    settings = ServingSettings(body_seconds=0.5)
    with running(build_app(served, settings), settings) as (port, _), connected(port, HEALTH + b"\r\n") as connection:
        assert read_json(connection)["status"] == "ok"
        connection.sendall(b"\r\n")
        connection.settimeout(10)
        assert connection.recv(100) == b""


def test_requests_sent_ahead_are_limited_and_answered_in_order(served, slow):
    """Memory does not grow with what a client sends before it reads."""
    with running(build_app(served), ServingSettings()) as (port, server):
        ahead = connected(port, (HEALTH + b"\r\n") * 1_100)
        assert ahead.makefile("rb").read().count(b'"status":"ok"') == 1_001
        with connected(port, request("a").replace(b"Connection: close\r\n", b"")) as connection:
            until(lambda: slow.calls)
            connection.settimeout(0.5)
            with pytest.raises(TimeoutError):
                connection.sendall((HEALTH + b"X: " + b"a" * 50_000 + b"\r\n\r\n") * 1_000)
            (open_one,) = server.server_state.connections
            assert len(open_one.pipeline) < 20
        slow.go.set()


def test_an_error_behind_a_request_is_not_its_answer(served, slow):
    with running(build_app(served), ServingSettings()) as (port, _):
        connection = connected(port, request("a").replace(b"Connection: close\r\n", b"") + b"\x01X\r\n\r\n")
        until(lambda: slow.calls)
        slow.go.set()
        assert answered(connection)[0] == 200


def test_bodies_of_all_requests_together_are_limited(served, slow, monkeypatch):
    monkeypatch.setattr(guard, "BODIES", 2)
    settings = ServingSettings(max_body=10_000)
    large = request("a" * 9_000)
    app = build_app(served, settings)
    with running(app, settings) as (port, _):
        waiting = [connected(port, large)]
        until(lambda: slow.calls)
        waiting.append(connected(port, large))
        until(lambda: app.batcher.waiting)
        status, content = answered(connected(port, large))
        assert status == 503 and "too large together" in json.loads(content)["error"]["message"]
        assert answered(connected(port, b"GET /health HTTP/1.1\r\nConnection: close\r\nHost: x\r\n\r\n"))[0] == 200
        slow.go.set()
        assert [answered(connection)[0] for connection in waiting] == [200] * 2
        assert answered(connected(port, large))[0] == 200
