"""Several processes at one port: they share their counts, are replaced when they die, and stop together."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest

from st_paragram.errors import SettingsError
from st_paragram.tools.serving.listening import listen_together

for package in ("httptools", "orjson", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)

COMMAND = [sys.executable, "-m", "st_paragram.cli.main", "serve", "p-sp-mini", "--port", "0", "--workers", "2"]


@contextmanager
def running():
    """A server with two workers: the process, and its port."""
    process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process, int(re.search(r":(\d+) until", process.stdout.readline())[1])
    finally:
        process.kill()
        process.communicate()


def ask(port, path="/health", body=None):
    """The answer to a request over a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Content-Type": "application/json"}
    connection.request("GET" if body is None else "POST", path, body and json.dumps(body), headers)
    answer = connection.getresponse().read().decode()
    connection.close()
    return answer


def workers(parent):
    """The worker processes: those without children that hold a server's memory."""
    return [
        process
        for process in psutil.Process(parent.pid).children(recursive=True)
        if not process.children() and "resource_tracker" not in " ".join(process.cmdline())
    ]


@pytest.mark.slow
def test_workers_count_together_are_replaced_and_stop_together():
    with running() as (process, port):
        assert len(workers(process)) == 2
        for _ in range(20):
            assert json.loads(ask(port, "/embed", {"inputs": "a"}))
        assert 'st_paragram_requests_total{path="/embed",status="200"} 20.0' in ask(port, "/metrics")
        first = workers(process)[0]
        first.kill()
        for _ in range(20):  # connections to its socket wait for the other worker
            assert json.loads(ask(port))["status"] == "ok"
        assert 'path="/embed",status="200"} 20.0' in ask(port, "/metrics")
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert f"worker {first.pid} ended with status -9; starting another" in process.stderr.read()
        assert not psutil.wait_procs(children, 10)[1]


@pytest.mark.slow
def test_workers_end_when_their_parent_is_killed():
    with running() as (process, _):
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert not psutil.wait_procs(children, 20)[1]


@pytest.mark.slow
def test_a_worker_that_cannot_start_ends_the_server_with_its_error(tmp_path):
    (tmp_path / "broken").mkdir()
    command = [*COMMAND[:4], str(tmp_path / "broken"), *COMMAND[5:]]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and not ended.stdout
    assert ended.stderr.strip().split("\n")[-1].startswith("st-paragram serve: ") and "broken" in ended.stderr


def test_processes_listen_at_one_port_that_was_free():
    first, second = listen_together("127.0.0.1", 0, 2)
    with first, second:
        assert first.getsockname() == second.getsockname()
        with pytest.raises(SettingsError, match="choose another --host or --port"):
            listen_together("127.0.0.1", first.getsockname()[1], 2)
