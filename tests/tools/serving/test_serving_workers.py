"""A server as a command with two workers: one is killed, the index changes, and all stop."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
import time

import psutil
import pytest

for package in ("httptools", "lancedb", "orjson", "prometheus_client", "starlette", "uvicorn"):
    pytest.importorskip(package)
pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path):
    """The process, and a function that asks it over a new connection: status and content."""
    from st_paragram.tools.search.index import SearchIndex

    SearchIndex.build(["the cat sleeps", "a dog barks"], tmp_path / "index", "p-sp-mini")
    (tmp_path / "key.txt").write_text("sesame\n")
    options = [
        "--index",
        tmp_path / "index",
        "--index-writable",
        "--api-key-file",
        tmp_path / "key.txt",
    ]
    command = [
        sys.executable,
        "-m",
        "st_paragram.cli.main",
        "serve",
        "--port",
        "0",
        "--workers",
        "2",
        *options,
    ]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    port = int(re.search(r":(\d+) until", process.stdout.readline())[1])

    def ask(path, **body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Content-Type": "application/json", "Authorization": "Bearer sesame"}
        connection.request(
            "POST" if body else "GET", path, json.dumps(body) if body else None, headers
        )
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        assert answer.status == 200, content
        return content

    yield process, ask
    process.kill()
    process.communicate()


def workers(process):
    """The worker processes that run."""
    children = [
        each
        for each in psutil.Process(process.pid).children()
        if each.status() != psutil.STATUS_ZOMBIE
    ]
    return [each for each in children if "resource_tracker" not in " ".join(each.cmdline())]


def test_two_workers(server):
    process, ask = server
    for number in range(20):  # changes are seen by both
        assert json.loads(ask("/index/add", sentences=[f"sentence number {number}"]))["added"] == 1
        (hits,) = json.loads(ask("/search", queries=["a"], k=100))["results"]
        assert len(hits) == 3 + number
    assert 'st_paragram_requests_total{path="/search",status="200"} 20.0' in ask("/metrics")
    first, second = workers(process)
    first.send_signal(signal.SIGKILL)
    end = time.monotonic() + 60
    while {each.pid for each in workers(process)} in ({first.pid, second.pid}, {second.pid}):
        assert time.monotonic() < end
        time.sleep(0.1)
    for _ in range(20):
        assert json.loads(ask("/health"))["sentences"] == 22
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0 and not psutil.wait_procs([second], 10)[1]


def test_workers_end_with_their_parent(server):
    process, ask = server
    ask("/health")
    children = workers(process)
    process.kill()
    assert not psutil.wait_procs(children, 30)[1]


CANNOT_START = """
import shutil, sys
from st_paragram import Encoder
from st_paragram.errors import ParagramError
from st_paragram.tools.serving.server import serve
from st_paragram.tools.serving.schemas import Job
from st_paragram.tools.serving.workers import Workers

start = Workers.init_processes

def without_model(workers):
    shutil.rmtree(sys.argv[1])
    start(workers)

if __name__ == "__main__":
    Encoder("p-sp-mini").save(sys.argv[1])
    Workers.init_processes = without_model
    try:
        serve(Job(sys.argv[1], workers=2, port=0))
    except ParagramError as error:
        sys.exit(str(error))
"""


def test_workers_that_cannot_start_end_the_server(tmp_path):
    (tmp_path / "start.py").write_text(CANNOT_START)
    command = [sys.executable, str(tmp_path / "start.py"), str(tmp_path / "model")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert result.returncode == 1 and not result.stdout
    (line,) = result.stderr.splitlines()
    assert re.match("a worker process cannot start: no model '.*model': no such folder", line)
