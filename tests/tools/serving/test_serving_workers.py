"""Several processes at one port: they share their counts, are replaced when they die, and stop together."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import psutil
import pytest

from st_paragram.errors import SettingsError
from st_paragram.tools.serving.listening import listen_together
from st_paragram.tools.serving.settings import Job
from st_paragram.tools.serving.workers import Started, Workers, _Worker

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


class Process:
    """A worker's process: alive until it is asked to end, unless it is born dead."""

    sentinel, pid, exitcode = 0, 1, -9

    def __init__(self, alive=True):
        self.alive, self.was_asked = alive, False

    def is_alive(self):
        return self.alive

    def terminate(self):
        self.alive, self.was_asked = False, True

    def join(self, seconds=None):
        assert not self.alive


def worker(process):
    reports, theirs = multiprocessing.Pipe(duplex=False)
    theirs.send(Started("a", 1))
    theirs.close()
    return _Worker(process, socket.socket(), reports)


def test_workers_that_have_started_are_stopped_when_the_next_one_is_not(monkeypatch):
    """A signal while processes are started leaves none behind, which this process would wait for at its end."""
    first = Process()
    starts = iter([worker(first), KeyboardInterrupt()])

    def start(self, listening):
        if isinstance(result := next(starts), BaseException):
            raise result
        return result

    monkeypatch.setattr(Workers, "_start", start)
    Workers(Job("p-sp-mini"), [socket.socket(), socket.socket()]).serve(print)
    assert first.was_asked


def test_a_worker_that_cannot_be_replaced_yet_is_replaced_later(monkeypatch, caplog):
    """A machine may have no room for a process for a while."""
    monkeypatch.setattr("st_paragram.tools.serving.workers._WAIT", 0)
    monkeypatch.setattr("st_paragram.tools.serving.workers.wait", lambda sentinels: None)
    good = Process()
    starts = iter([worker(Process(alive=False)), OSError("no room"), worker(good), KeyboardInterrupt()])

    def start(self, listening):
        if isinstance(result := next(starts), BaseException):
            raise result
        if result.process is good:
            monkeypatch.setattr("st_paragram.tools.serving.workers.wait", stopped)
        return result

    def stopped(sentinels):
        raise KeyboardInterrupt

    monkeypatch.setattr(Workers, "_start", start)
    Workers(Job("p-sp-mini"), [socket.socket()]).serve(lambda started: None)
    assert good.was_asked and "cannot be started" in caplog.text
