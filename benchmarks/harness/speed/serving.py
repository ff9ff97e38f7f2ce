"""A server as a process, clients that check every answer, and malformed requests."""

from __future__ import annotations

import base64
import http.client
import json
import random
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

PATHS = (
    *("/v1/embeddings", "/embed", "/rerank", "/v1/rerank", "/v2/rerank", "/score", "/search"),
    *("/v1/models", "/v1/models/p-sp-mini", "/info", "/openapi.json", "/metrics", "/health", "/nothing"),
)
_STRANGE: tuple[Any, ...] = (
    *(None, -1, 1e400, 10**5000, [], {}, [[]]),
    "\ud800",
    True,
    [None],
    "x" * 30_000,
    [1, 2],
    [[1], ["a"]],
)
_OPTIONS = (
    *("dimensions", "encoding_format", "input_type", "k", "threshold", "top_n", "return_documents", "raw_scores"),
    *("return_text", "normalize", "truncate", "truncation_direction", "prompt_name"),
)


@dataclass(frozen=True)
class Server:
    """A server that runs, and where."""

    process: psutil.Process
    port: int

    def megabytes(self) -> float:
        """The resident memory (RSS) of its largest process."""
        return max(float(process.memory_info().rss) for process in self._processes()) / 1e6

    def proportional_megabytes(self) -> float:
        """The memory (PSS) of all its processes together, what they share counted once."""
        return sum(float(process.memory_full_info().pss) for process in self._processes()) / 1e6

    def is_healthy(self) -> bool:
        """Whether it runs and answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/health")
        return self.process.is_running() and connection.getresponse().status == 200

    def _processes(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]


@contextmanager
def server(model: str, workers: int = 1) -> Iterator[Server]:
    """Serve a model on this machine while the context lasts."""
    command = [sys.executable, "-m", "st_paragram.cli.main", "serve", model, "--port", "0", "--workers", str(workers)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"http://[^:]+:(\d+)", process.stdout.readline())
        if found is None:
            raise RuntimeError("the server did not start")
        yield Server(psutil.Process(process.pid), int(found[1]))
    finally:
        process.terminate()
        process.wait(60)


@dataclass
class Answers:
    """What clients counted: seconds of each request, answers that are not the model's, requests without an answer."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    lost: int = 0


class Texts:
    """Texts to ask for, and what the server must answer.

    Args:
        texts: N texts.
        rows: their embeddings, float32 (N, D), of length 1.
    """

    def __init__(self, texts: Sequence[str], rows: NDArray[np.float32]) -> None:
        self.texts, self.rows = texts, rows
        self._right: dict[int, str] = {}  # answers in base64 that were compared before

    def is_right(self, chosen: Sequence[int], content: bytes) -> bool:
        """Whether the answer holds the rows of the chosen texts, in their order."""
        try:
            sent = [part["embedding"] for part in json.loads(content)["data"]]
        except (ValueError, KeyError):
            return False
        return len(sent) == len(chosen) and all(map(self._is_row, chosen, sent))

    def _is_row(self, number: int, sent: str) -> bool:
        if self._right.get(number) == sent:
            return True
        if not np.allclose(np.frombuffer(base64.b64decode(sent), "<f4"), self.rows[number], atol=1e-5):
            return False
        self._right[number] = sent
        return True


def load(where: Server, model: str, texts: Texts, clients: int, each: int, seconds: float) -> Answers:
    """Ask for embeddings over many connections, and compare every row.

    One thread drives all connections: threads would wait for each other, which would count as the server's time.

    Args:
        where: the server.
        model: its name.
        texts: what is asked for, in a separate order for each client.
        clients: number of connections; each sends its next request when it has read the answer.
        each: texts per request.
        seconds: how long.
    """
    answers, end = Answers(), time.perf_counter() + seconds
    with selectors.DefaultSelector() as ready, ExitStack() as opened:
        for number in range(clients):
            client = _Client(where, model, texts, each, random.Random(number), answers)
            opened.callback(client.close)
            ready.register(client.socket, selectors.EVENT_READ, client)
            client.ask()
        open_clients = clients
        while open_clients:
            for key, _ in ready.select():
                if not key.data.read():
                    continue
                if time.perf_counter() < end and not key.data.is_lost:
                    key.data.ask()
                else:
                    ready.unregister(key.fileobj)
                    open_clients -= 1
    return answers


class _Client:
    """One connection with one request under way."""

    def __init__(
        self, where: Server, model: str, texts: Texts, each: int, choose: random.Random, answers: Answers
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", where.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.close, self.is_lost = self.socket.close, False
        self._model, self._texts, self._each, self._choose, self._answers = model, texts, each, choose, answers

    def ask(self) -> None:
        """Send a request for texts drawn at random."""
        self._chosen = [self._choose.randrange(len(self._texts.texts)) for _ in range(self._each)]
        asked = [self._texts.texts[number] for number in self._chosen]
        body = json.dumps({"model": self._model, "input": asked, "encoding_format": "base64"}).encode()
        head = "POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self._read, self._began = bytearray(), time.perf_counter()
        self.socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def read(self) -> bool:
        """Read what has come; True if the answer is complete, or will never be."""
        try:
            came = self.socket.recv(1 << 20)
        except OSError:
            came = b""
        self._read += came
        head, found, content = self._read.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head) if found else None
        if came and (length is None or len(content) < int(length[1])):
            return False
        if not came:
            self._answers.lost += 1
            self.is_lost = True
            return True
        self._answers.seconds.append(time.perf_counter() - self._began)
        self._answers.wrong += not self._texts.is_right(self._chosen, bytes(content))
        return True


def fuzz(where: Server, count: int, seed: int = 0) -> dict[str, int]:
    """Send malformed requests, and count the statuses of the answers ("none" where the connection was closed)."""
    choose, counts = random.Random(seed), dict[str, int]()
    for _ in range(count):
        status = _status(where, _strange_request(choose))
        counts[status] = counts.get(status, 0) + 1
    return counts


def _status(where: Server, request: tuple[bytes, bool]) -> str:
    """Send bytes as they are: http.client would refuse to send much of what a stranger can send."""
    content, is_whole = request
    try:
        with socket.create_connection(("127.0.0.1", where.port), timeout=60) as connection:
            with suppress(OSError):  # a server that refuses a large body answers before it has read it
                connection.sendall(content)
            if not is_whole:
                connection.settimeout(0.2)  # no answer will come before the rest of the body
            line = connection.makefile("rb").readline(100)
    except OSError:
        return "none"
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", line)
    return found[1].decode() if found else "none"


def _strange_request(choose: random.Random) -> tuple[bytes, bool]:
    """The bytes of a request, and whether its body is as long as it says."""
    body = _strange_body(choose)
    announced = choose.choice([len(body)] * 8 + [choose.randrange(1 << 40)])
    method = choose.choice(["POST"] * 8 + ["GET", "PUT", "\x01X"])
    kind = choose.choice(["application/json", "text/plain", "a/b; charset=\x7f"])
    strange = "".join(chr(choose.randrange(32, 127)) for _ in range(20))
    head = f"{method} {choose.choice(PATHS)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {announced}\r\n"
    head += f"Content-Type: {kind}\r\nX-Strange: {strange}\r\nConnection: close\r\n\r\n"
    return head.encode("latin-1") + body, announced <= len(body)


def _strange_body(choose: random.Random) -> bytes:
    good = {
        "model": "p-sp-mini",
        "input": ["a text", "\u4e2d \U0001f600 \u0000"],
        "inputs": ["a text", "b"],
        "pairs": [["a", "b"]],
        "queries": ["a"],
        "query": "a",
        choose.choice(["documents", "texts"]): ["a", "b c"],
    }
    kind = choose.randrange(7)
    if kind == 0:
        return choose.randbytes(choose.randrange(2000))
    if kind == 1:
        return (choose.choice("[{") + choose.choice(["", '"a":'])).encode() * choose.choice([10, 1000, 100_000])
    if kind == 2:
        return json.dumps(good | {choose.choice(list(good)): "x" * choose.choice([10_000, 5_000_000])}).encode()
    if kind == 3:
        strange: Any = choose.choice(_STRANGE)
        fields = [*good, *_OPTIONS]
        text = json.dumps(good | {choose.choice(fields): strange} if strange != 10**5000 else good)
        return text.replace('"a text"', "1" * 5000).encode() if strange == 10**5000 else text.encode()
    body = bytearray(json.dumps(good).encode())
    if kind == 4:
        return bytes(body[: choose.randrange(len(body))])
    for _ in range(choose.randrange(1, 6)):
        body[choose.randrange(len(body))] = choose.randrange(256)
    return bytes(body)
