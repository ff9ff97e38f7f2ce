"""A server of files that misbehaves at random, in every phase of an answer."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import socket
import socketserver
import struct
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from hostile.damage import damaged

_T = TypeVar("_T")
_DATE = "Wed, 01 Jan 2020 00:00:00 GMT"
_NUMBERS = (
    *("", "0", "1", "-1", "\xb2", "1_0", "0x10", "9" * 5000, "9" * 19),
    *("1e999", "nan", "5, 6", "soon", "\x1b[31m7"),
)
_WORDS = (
    *("", "\t", "\x1b[31m", "\x1b]0;t\x07", "\x9b2J", "x" * 70_000, "\xff\xfe", "a\r\n b"),
    *("gzip", "chunked", '"a"', 'W/"a"', "text/html"),
)
_DATES = ("Wed, 01 Jan 0001 00:00:00 -0000", "Fri, 31 Dec 9999 23:59:59 -9999", _DATE, ", , , ,")
_PLACES = (
    *("http://[::1", "http://127.0.0.1:99999/", "http://127.0.0.1:x/", "http://", "//", "", "http://a..b/", "http:a"),
    *("ftp://127.0.0.1/", "file:///etc/passwd", "\x1b[2J", "http://user:word@127.0.0.1/", "/" + "a" * 60_000),
    "https://127.0.0.1:1/",
)
_STATUSES = (
    *(100, 101, 200, 201, 204, 206, 300, 304, 400, 403, 404),
    *(408, 410, 416, 429, 500, 503, 599, 999),
)
_LINES = (
    *("HTTP/1.1 99999 x", "HTTP/1.1", "HTTP/0.9 200 OK", "HTTP/9 200 OK", "HTTP/1.1 abc x", "ICY 200 OK"),
    *("\x1b[31m", "x" * 70_000, ""),
)
_HEADERS = (
    *("Content-Length", "Content-Range", "Content-Type", "Content-Encoding", "Transfer-Encoding"),
    *("ETag", "Last-Modified", "Retry-After", "Location", "Connection", "X"),
)


def one_of(options: Sequence[_T], rng: np.random.Generator) -> _T:
    """One of several, at random."""
    return options[rng.integers(len(options))]


@dataclass
class Reply:
    """An answer before it is sent."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    pause: float = 0.0
    piece: int = 1 << 16
    cut: float | None = None
    end: str = "close"

    def set(self, name: str, value: str) -> None:
        """Replace a header."""
        self.headers = [(other, text) for other, text in self.headers if other != name] + [(name, value)]


@dataclass
class Plan:
    """What a server does with one file.

    Attributes:
        data: The file.
        rng: For the faults.
        faults: How likely each answer has one, and another.
        versions: All that was said to be the file.
        loose: Whether the size of a body was ever left open, or said wrongly.
    """

    data: bytes
    rng: np.random.Generator
    faults: float
    versions: list[bytes] = field(default_factory=list)
    loose: bool = False
    asked: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, method: str, path: str, headers: dict[str, str]) -> Reply:
        """Answer a request: well, then with faults."""
        with self.lock:
            self.asked += 1
            content, faulty = self.data, self.rng.random() < self.faults
            if faulty and self.rng.random() < 0.3:
                content = _lie(self.data, self.rng)
            self.versions.append(content)
            reply = _good(content, self.data, headers)
            while faulty:
                fault = one_of(_FAULTS, self.rng)
                fault(self, reply, path)
                faulty = self.rng.random() < 0.3
            if method == "HEAD":
                reply.body = b""
            return reply


def _good(content: bytes, known: bytes, headers: dict[str, str]) -> Reply:
    """The answer of a good server, under the validators of the file that is known."""
    etag = f'"{hashlib.md5(known).hexdigest()}"'
    usual = [("Content-Type", "application/octet-stream"), ("ETag", etag), ("Last-Modified", _DATE)]
    found = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
    if found and headers.get("if-range", etag) in (etag, _DATE):
        start = int(found[1])
        if start >= len(content):
            return Reply("HTTP/1.1 416 Range Not Satisfiable", [("Content-Range", f"bytes */{len(content)}")], b"")
        usual += [("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")]
        return Reply(
            "HTTP/1.1 206 Partial Content", [*usual, ("Content-Length", str(len(content) - start))], content[start:]
        )
    return Reply("HTTP/1.1 200 OK", [*usual, ("Content-Length", str(len(content)))], content)


def _lie(data: bytes, rng: np.random.Generator) -> bytes:
    """Something else in place of a file."""
    kind = rng.integers(8)
    if kind < 4:
        return damaged(data, rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.en", bytes(1 << 25))
    others = (b"", b"<!doctype html><html>log in</html>", gzip.compress(data), packed.getvalue())
    return others[kind - 4]


def _slow(plan: Plan, reply: Reply, path: str) -> None:
    reply.piece, reply.pause = one_of([1, 40, 600], plan.rng), one_of([0.001, 0.02, 0.1], plan.rng)


def _cut(plan: Plan, reply: Reply, path: str) -> None:
    reply.cut, reply.end = float(plan.rng.random()), one_of(["close", "reset", "hang"], plan.rng)


def _header(plan: Plan, reply: Reply, path: str) -> None:
    name = one_of(_HEADERS, plan.rng)
    value = one_of([*_NUMBERS, *_WORDS, *_DATES], plan.rng)
    plan.loose = plan.loose or name in ("Content-Length", "Transfer-Encoding")
    if plan.rng.random() < 0.7:
        reply.set(name, value)
    else:
        reply.headers.append((name, value))


def _missing(plan: Plan, reply: Reply, path: str) -> None:
    name = one_of(["Content-Length", "Content-Range", "ETag", "Last-Modified"], plan.rng)
    plan.loose = plan.loose or name == "Content-Length"
    reply.headers = [(other, value) for other, value in reply.headers if other != name]


def _many_headers(plan: Plan, reply: Reply, path: str) -> None:
    reply.headers += [("X", "a")] * one_of([50, 99, 500], plan.rng)


def _length(plan: Plan, reply: Reply, path: str) -> None:
    plan.loose = True
    reply.set("Content-Length", str(max(0, len(reply.body) + int(plan.rng.integers(-50, 50)))))


def _range(plan: Plan, reply: Reply, path: str) -> None:
    first, last, total = (int(plan.rng.integers(0, 2 * len(plan.data))) for _ in range(3))
    shown = (f"bytes {first}-{last}/{total}", f"bytes {first}-{last}/*", f"bytes */{total}", f"bytes 0-{'9' * 5000}/1")
    reply.set("Content-Range", one_of(shown, plan.rng))
    if plan.rng.random() < 0.5:
        reply.line = "HTTP/1.1 206 Partial Content"
    plan.loose = True


def _elsewhere(plan: Plan, reply: Reply, path: str) -> None:
    """The body begins somewhere else than said."""
    shift = int(plan.rng.integers(1, 200))
    reply.body = reply.body[shift:] + reply.body[:shift]
    plan.versions.append(reply.body)


def _status(plan: Plan, reply: Reply, path: str) -> None:
    reply.line = f"HTTP/1.1 {one_of(_STATUSES, plan.rng)} {one_of(_WORDS, plan.rng)}"
    reply.set("Retry-After", one_of([*_NUMBERS, *_DATES], plan.rng))


def _line(plan: Plan, reply: Reply, path: str) -> None:
    reply.line = one_of(_LINES, plan.rng)


def _redirect(plan: Plan, reply: Reply, path: str) -> None:
    place = one_of([*_PLACES, *[path, f"{path}?again", "?again"] * 4], plan.rng)
    reply.line = f"HTTP/1.1 {one_of([301, 302, 303, 307, 308], plan.rng)} Moved"
    reply.headers = [("Location", place), ("Content-Length", "0")]


def _chunks(plan: Plan, reply: Reply, path: str) -> None:
    """In chunks, well or not."""
    reply.headers = [(name, value) for name, value in reply.headers if name != "Content-Length"]
    reply.set("Transfer-Encoding", "chunked")
    plan.versions.append(reply.body)  # for chunks within chunks
    size, chunked = int(plan.rng.integers(1, 9000)), b""
    for start in range(0, len(reply.body), size):
        block = reply.body[start : start + size]
        stated = (
            f"{len(block):x}"
            if plan.rng.random() < 0.9
            else one_of(["-5", "zz", "", "f" * 20, "1" * 70_000, "0"], plan.rng)
        )
        chunked += stated.encode() + b"\r\n" + block + b"\r\n"
    reply.body = chunked + one_of((b"0\r\n\r\n", b"0\r\n" + b"X: a\r\n" * 9, b""), plan.rng)
    plan.loose = True


def _noise(plan: Plan, reply: Reply, path: str) -> None:
    reply.line, reply.headers, reply.body = "", [], plan.rng.bytes(int(plan.rng.integers(1, 3000)))


def _continue(plan: Plan, reply: Reply, path: str) -> None:
    reply.line = "HTTP/1.1 100 Continue\r\n\r\n" * one_of([1, 500], plan.rng) + reply.line


def _endless(plan: Plan, reply: Reply, path: str) -> None:
    reply.headers = [(name, value) for name, value in reply.headers if name != "Content-Length"]
    reply.body += bytes(2 << 20)
    plan.loose = True
    plan.versions.append(reply.body)


_FAULTS: tuple[Callable[[Plan, Reply, str], None], ...] = (
    *(_slow, _cut, _cut, _cut, _header, _header, _header, _missing, _many_headers, _length, _range, _range, _elsewhere),
    *(_status, _status, _line, _redirect, _redirect, _chunks, _chunks, _noise, _continue, _endless),
)


class _Handler(socketserver.BaseRequestHandler):
    server: BadServer

    def handle(self) -> None:
        with suppress(OSError, ValueError):
            request = b""
            while b"\r\n\r\n" not in request:
                if not (data := self.request.recv(65536)):
                    return
                request += data
            first, *lines = request.decode("latin-1").split("\r\n")
            method, path, _ = first.split(" ")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            plan = self.server.plans[path.partition("?")[0]]
            self._send(plan.reply(method, path, headers))

    def _send(self, reply: Reply) -> None:
        head = "".join(f"{name}: {value}\r\n" for name, value in reply.headers)
        data = f"{reply.line}\r\n{head}\r\n".encode("latin-1") + reply.body
        if reply.cut is not None:
            data = data[: int(reply.cut * len(data))]
        for start in range(0, len(data), reply.piece):
            time.sleep(reply.pause)
            self.request.sendall(data[start : start + reply.piece])
        if reply.end == "hang":
            self.request.settimeout(3)
            self.request.recv(1)
        elif reply.end == "reset":
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class BadServer(socketserver.ThreadingTCPServer):
    """Answers each path by its plan."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.plans: dict[str, Plan] = {}
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients hang up; that is part of the tries."""


def started() -> BadServer:
    """A server that runs as long as the program."""
    server = BadServer()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server
