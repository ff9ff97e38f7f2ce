"""A server of files for tests, which can be told to misbehave: cut connections, ignore ranges,
redirect, wait.
"""

from __future__ import annotations

import hashlib
import io
import re
import socketserver
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Answer:
    """How to answer one request; by default as a good server does."""

    status: int | None = None  # an error, or a redirect if there is a `Location`
    # besides or in place of the usual ones; None leaves one out
    headers: dict = field(default_factory=dict)
    body: bytes | None = None  # in place of the file
    cut: int | None = None  # hang up after so many bytes of the body
    ranges: bool = True  # understand Range
    pause: float = 0.0  # seconds before each piece of the body
    piece: int = 1 << 20  # bytes


class FileServer(ThreadingHTTPServer):
    """`files` are served; `script[path]` are the answers to the first requests, `always[path]` to
    all others.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.script: dict[str, list[Answer]] = {}
        self.always: dict[str, Answer] = {}
        self.asked: list[tuple[str, str | None]] = []  # path, range
        self.lock = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def ranges(self, path=None):
        """Ranges of the requests, of one path or all."""
        return [where for asked, where in self.asked if path in (None, asked)]

    def handle_error(self, request, client_address):
        pass  # clients that hang up are part of the tests


class _Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self):
        with self.server.lock:
            script = self.server.script.get(self.path, [])
            answer = script.pop(0) if script else self.server.always.get(self.path, Answer())
            self.server.asked.append((self.path, self.headers.get("Range")))
        file = self.server.files.get(self.path.partition("?")[0])
        if file is None and answer.status is None and answer.body is None:
            answer = Answer(status=404)
        body = answer.body if answer.body is not None else b"" if answer.status else file
        etag, status = f'"{hashlib.md5(body).hexdigest()}"', answer.status or 200
        headers = {"Content-Type": "application/octet-stream", "ETag": etag}
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if (
            wanted
            and answer.ranges
            and not answer.status
            and self.headers.get("If-Range", etag) == etag
        ):
            start, total = int(wanted[1]), len(body)
            status, body = (206, body[start:]) if start < total else (416, b"")
            headers["Content-Range"] = (
                f"bytes {start}-{total - 1}/{total}" if status == 206 else f"bytes */{total}"
            )
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))} | answer.headers).items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
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
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def raw_serving(send):
    """A server of any bytes: `send(connection)` answers each request.

    Gives its address and the requests so far.
    """
    requests = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            requests.append(self.rfile.readline().decode())
            while self.rfile.readline().strip():
                pass
            with suppress(OSError):  # the client hung up
                send(self.request)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", requests
        finally:
            server.shutdown()
            thread.join()


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
