"""A server of files for tests, which can be told to misbehave: cut connections, ignore ranges, trickle, redirect."""

from __future__ import annotations

import hashlib
import io
import re
import socket
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Answer:
    """How to answer one request; by default as a good server does.

    Args:
        status: answer with this error, or this redirect if there is a `Location`.
        headers: to send besides, or in place of, the usual ones; None leaves one out.
        body: in place of the file.
        cut: close the connection after so many bytes of the body.
        ranges: understand Range.
        validators: send ETag and Last-Modified.
        length: send Content-Length; else the end of the connection is the end of the file.
        raw: send these bytes and nothing else, in pieces.
        pause: seconds before each piece of the body.
        piece: bytes.
    """

    status: int | None = None
    headers: dict = field(default_factory=dict)
    body: bytes | None = None
    cut: int | None = None
    ranges: bool = True
    validators: bool = True
    length: bool = True
    raw: bytes | None = None
    pause: float = 0.0
    piece: int = 1 << 20


GOOD = Answer()


class FileServer(ThreadingHTTPServer):
    """`files` are served; `script[path]` are the answers to the first requests, `always[path]` to all others."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.script: dict[str, list[Answer]] = {}
        self.always: dict[str, Answer] = {}
        self.asked: list[tuple[str, str, str | None]] = []  # method, path, range
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def gets(self, path=None):
        """Ranges of the GET requests, of one path or all."""
        return [where for method, asked, where in self.asked if method == "GET" and path in (None, asked)]

    def handle_error(self, request, client_address):
        pass  # clients that hang up are part of the tests


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_HEAD(self):
        self.answer(self.server.always.get(self.path, GOOD))

    def do_GET(self):
        with self.server.lock:
            script = self.server.script.get(self.path, [])
            answer = script.pop(0) if script else self.server.always.get(self.path, GOOD)
        self.answer(answer)

    def answer(self, answer):
        with self.server.lock:
            self.server.asked.append((self.command, self.path, self.headers.get("Range")))
            self.server.headers = self.headers
        if answer.raw is not None:
            self.send_body(answer.raw, answer)
            return
        file = self.server.files.get(self.path.partition("?")[0])
        if file is None and answer.status is None and answer.body is None:
            answer = Answer(status=404)
        body = answer.body if answer.body is not None else b"" if answer.status else file
        etag = f'"{hashlib.md5(body).hexdigest()}"'
        usual = {"Content-Type": "application/octet-stream"}
        if answer.validators:
            usual |= {"ETag": etag, "Last-Modified": "Wed, 01 Jan 2020 00:00:00 GMT"}
        status = answer.status or 200
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and answer.ranges and not answer.status and self.headers.get("If-Range", etag) in (etag, None):
            start, total = int(wanted[1]), len(body)
            status, body = (206, body[start:]) if start < total else (416, b"")
            usual["Content-Range"] = f"bytes {start}-{total - 1}/{total}" if status == 206 else f"bytes */{total}"
        if answer.length:
            usual["Content-Length"] = str(len(body))
        self.send_response(status)
        for name, value in (usual | answer.headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.send_body(body, answer)

    def send_body(self, body, answer):
        body = body if answer.cut is None else body[: answer.cut]
        for start in range(0, len(body), answer.piece):
            time.sleep(answer.pause)
            self.wfile.write(body[start : start + answer.piece])
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, *args):
        pass


@contextmanager
def serving():
    """A server that runs."""
    server = FileServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def opus_zip(corpus, first, second, rows):
    """An archive in the layout of OPUS."""
    a, b = sorted((first, second))
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README", "made for tests\n")
        for place, code in enumerate((first, second)):
            archive.writestr(f"{corpus}.{a}-{b}.{code}", "".join(f"{row[place]}\n" for row in rows))
        archive.writestr(f"{corpus}.{a}-{b}.xml", "<x/>\n")
    return data.getvalue()


@contextmanager
def dripping(first, drop, pause):
    """The port of a server that sends `first` to whoever connects, then `drop` for ever, `pause` seconds apart."""
    listening = socket.create_server(("127.0.0.1", 0))

    def drip(connection):
        with connection, suppress(OSError):
            connection.sendall(first)
            while True:
                time.sleep(pause)
                connection.sendall(drop)

    def accept():
        with suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.close()
