"""Measure a server under load: `python benchmarks/serving.py [--workers 2] [--texts 32]`.

It starts `st-paragram serve` on this machine. One thread of this process runs all clients, on the
same cores. It prints latency, rate and the memory of the largest server process, with 1 client and
with 64 clients.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import cast

import numpy as np
import psutil
from harness.output import print_growing

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.sample import sample_pairs

HEAD = [
    "clients",
    "texts per request",
    "requests/s",
    "sentences/s",
    "p50 ms",
    "p99 ms",
    "failed",
    "RSS MB",
]


def main() -> int:
    """Measure and print; return status 1 if a request failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="p-sp-mini", help="(%(default)s)")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="N", help="server processes (%(default)s)"
    )
    parser.add_argument(
        "--clients", type=int, nargs="+", default=[1, 64], metavar="N", help="(%(default)s)"
    )
    parser.add_argument(
        "--texts", type=int, nargs="+", default=[1], metavar="N", help="per request (%(default)s)"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="time per row (%(default)s)")
    given = parser.parse_args()
    sentences, failed = [text for pair in sample_pairs("es", 2000) for text in pair], 0

    def row(process: psutil.Process, port: int, clients: int, texts: int) -> list[str]:
        nonlocal failed
        choose = random.Random(0)
        bodies = [
            {"input": choose.sample(sentences, texts), "encoding_format": "base64"}
            for _ in range(1000)
        ]
        model = given.model.rstrip("/").rpartition("/")[2]
        requests = [_request(json.dumps(body | {"model": model}).encode()) for body in bodies]
        began = time.perf_counter()
        seconds, wrong = load(port, requests, clients, given.seconds)
        rate, failed = len(seconds) / (time.perf_counter() - began), failed + wrong
        middle, high = 1000 * np.percentile(seconds, [50, 99])
        memory = (
            max(each.memory_info().rss for each in [process, *process.children(recursive=True)])
            / 1e6
        )
        rates = [f"{rate:,.0f}", f"{rate * texts:,.0f}", f"{middle:.2f}", f"{high:.2f}"]
        return [str(clients), str(texts), *rates, str(wrong), f"{memory:.0f}"]

    with server(given.model, given.workers) as (process, port):
        work = ((clients, texts) for texts in given.texts for clients in given.clients)
        print_growing(HEAD, (row(process, port, *each) for each in work))
    return int(failed > 0)


@contextmanager
def server(model: str, workers: int) -> Iterator[tuple[psutil.Process, int]]:
    """Run a server within the block; yield its process and its port."""
    command = [
        sys.executable,
        "-m",
        "st_paragram.cli.main",
        "serve",
        model,
        "--port",
        "0",
        "--workers",
        str(workers),
    ]
    # not the package in the working folder, whose kernels may be missing; from Python 3.11
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            found = re.search(
                r"http://[^:]+:(\d+)", process.stdout.readline() if process.stdout else ""
            )
            if found is None:
                raise SystemExit("the server did not start")
            yield psutil.Process(process.pid), int(found[1])
        finally:
            process.terminate()


def load(port: int, requests: list[bytes], clients: int, seconds: float) -> tuple[list[float], int]:
    """Return the seconds of each request, and the number of requests without status 200.

    Each client sends its next request when it has read the answer. Client threads would wait for
    each other, which would be counted as the server's time.
    """
    times, failed, choose, end = list[float](), 0, random.Random(1), time.perf_counter() + seconds
    with selectors.DefaultSelector() as ready, ExitStack() as opened:

        def ask(client: socket.socket) -> None:
            client.sendall(choose.choice(requests))
            ready.register(client, selectors.EVENT_READ, (time.perf_counter(), bytearray()))

        for _ in range(clients):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(client)
        while ready.get_map():
            for key, _ in ready.select():
                (began, content), client = key.data, cast("socket.socket", key.fileobj)
                part = client.recv(1 << 20)
                content += part
                head, _, body = content.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                if part and (length is None or len(body) < int(length[1])):
                    continue
                ready.unregister(client)
                times.append(time.perf_counter() - began)
                failed += not head.startswith(b"HTTP/1.1 200")
                if part and times[-1] + began < end:
                    ask(client)
    return times, failed


def _request(body: bytes) -> bytes:
    head = "POST /v1/embeddings HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


if __name__ == "__main__":
    sys.exit(run_reporting_errors("serving", main))
