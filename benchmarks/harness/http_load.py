"""A server as a process, clients that check every answer, and requests that are none."""

from __future__ import annotations

import base64
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

PATHS = ("/v1/embeddings", "/score", "/search", "/v1/models", "/health", "/nothing")
_HEADERS = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Server:
    """A server that runs, and where."""

    process: psutil.Process
    port: int

    def connect(self) -> http.client.HTTPConnection:
        """A new connection to it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def megabytes(self) -> float:
        """Its resident memory."""
        return float(self.process.memory_info().rss) / 1e6

    def is_healthy(self) -> bool:
        """Whether it runs and answers."""
        connection = self.connect()
        connection.request("GET", "/health")
        return self.process.is_running() and connection.getresponse().status == 200


@contextmanager
def server(model: str) -> Iterator[Server]:
    """Serve a model on this machine while the context lasts."""
    command = [sys.executable, "-m", "st_paragram.cli.main", "serve", model, "--port", "0"]
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


def load(
    where: Server, model: str, texts: Sequence[str], rows: NDArray[np.float32], clients: int, each: int, seconds: float
) -> Answers:
    """Ask for embeddings from so many threads for so long, `each` texts a request, and compare every row.

    Args:
        where: the server.
        model: its name.
        texts: to be asked for, in an order of each client's own.
        rows: their embeddings (n, D), of length 1.
        clients: threads.
        each: texts of a request.
        seconds: how long.
    """
    answers, end = [Answers() for _ in range(clients)], time.perf_counter() + seconds
    threads = [
        threading.Thread(target=_client, args=(where, model, texts, rows, each, end, number, answers[number]))
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = Answers([one for answer in answers for one in answer.seconds])
    both.wrong, both.lost = sum(answer.wrong for answer in answers), sum(answer.lost for answer in answers)
    return both


def _client(
    where: Server,
    model: str,
    texts: Sequence[str],
    rows: NDArray[np.float32],
    each: int,
    end: float,
    seed: int,
    answers: Answers,
) -> None:
    choose, connection = random.Random(seed), where.connect()
    while time.perf_counter() < end:
        chosen = [choose.randrange(len(texts)) for _ in range(each)]
        request = {"model": model, "input": [texts[number] for number in chosen], "encoding_format": "base64"}
        began = time.perf_counter()
        try:
            connection.request("POST", "/v1/embeddings", json.dumps(request), _HEADERS)
            answer = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            answers.lost += 1
            connection = where.connect()
            continue
        answers.seconds.append(time.perf_counter() - began)
        got = [np.frombuffer(base64.b64decode(part["embedding"]), "<f4") for part in answer.get("data", [])]
        answers.wrong += len(got) != each or not np.allclose(got, rows[chosen], atol=1e-5)


def fuzz(where: Server, count: int, seed: int = 0) -> dict[str, int]:
    """Send requests that are none, and count the statuses of the answers ("none" where the connection was closed)."""
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
        "pairs": [["a", "b"]],
        "queries": ["a"],
    }
    kind = choose.randrange(7)
    if kind == 0:
        return choose.randbytes(choose.randrange(2000))
    if kind == 1:
        return (choose.choice("[{") + choose.choice(["", '"a":'])).encode() * choose.choice([10, 1000, 100_000])
    if kind == 2:
        return json.dumps(good | {choose.choice(list(good)): "x" * choose.choice([10_000, 5_000_000])}).encode()
    if kind == 3:
        strange: Any = choose.choice([None, -1, 1e400, 10**5000, [], {}, [[]], "\ud800", True, [None], "x" * 30_000])
        fields = [*good, "dimensions", "encoding_format", "input_type", "k", "threshold"]
        text = json.dumps(good | {choose.choice(fields): strange} if strange != 10**5000 else good)
        return text.replace('"a text"', "1" * 5000).encode() if strange == 10**5000 else text.encode()
    body = bytearray(json.dumps(good).encode())
    if kind == 4:
        return bytes(body[: choose.randrange(len(body))])
    for _ in range(choose.randrange(1, 6)):
        body[choose.randrange(len(body))] = choose.randrange(256)
    return bytes(body)
