"""`st-paragram serve`, as a separate process, and what it refuses."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from st_paragram.cli.main import main

for package in ("httptools", "orjson", "prometheus_client", "starlette", "uvicorn"):
    pytest.importorskip(package)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["no-such-model"], "no model 'no-such-model'"),
        (["--port", "70000"], "port is 70000"),
        (["--api-key-file", "empty.txt"], "first line is empty"),
        (["--port", "TAKEN"], "choose another --host or --port"),
        (["--index", "no-index", "--port", "0"], "no-index"),
        (["--index", "an-index", "--index-writable"], "--index-writable needs a key"),
        (["--cors", "https://a.org/app"], "'https://a.org/app' is not an origin; give one such as"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ST_PARAGRAM_API_KEY", raising=False)
    (tmp_path / "empty.txt").write_text("\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", *(word.replace("TAKEN", port) for word in arguments)]) == 1
    error = capsys.readouterr().err.strip().split("\n")[-1]
    assert error.startswith("st-paragram serve: ") and says in error


def test_a_missing_package_is_named_before_anything_is_announced(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", "--port", "0"]) == 1
    said = capsys.readouterr()
    assert "the server needs uvicorn" in said.err and said.out == ""


def address(url):
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


def half_sent(url, body):
    """A connection over which the head of a request, and the first bytes of its body, have been
    sent.
    """
    connection = socket.create_connection(address(url), 30)
    head = (
        f"POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\nAuthorization:"
        " Bearer sesame\r\n"
    )
    connection.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body[:10])
    return connection


def can_connect(url):
    try:
        socket.create_connection(address(url), 5).close()
    except ConnectionError:
        return False
    return True


@pytest.mark.slow
def test_a_server_stops_when_requests_are_answered(tmp_path):
    (tmp_path / "key.txt").write_text("sesame\n")
    command = [sys.executable, "-m", "st_paragram.cli.main", "serve", "p-sp-mini", "--port", "0"]
    command += ["--api-key-file", str(tmp_path / "key.txt")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = re.search(r"http://\S+", server.stdout.readline())[0]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}/v1/models")
        body = json.dumps({"model": "p-sp-mini", "input": "good morning"}).encode()
        with half_sent(url, body) as connection:
            assert urllib.request.urlopen(f"{url}/health").status == 200
            server.send_signal(signal.SIGTERM)
            while can_connect(url):
                time.sleep(0.01)
            connection.sendall(body[10:])
            answer = connection.makefile("rb").read()
        assert (
            answer.startswith(b"HTTP/1.1 200")
            and json.loads(answer.partition(b"\r\n\r\n")[2])["usage"]
        )
        assert server.wait(30) == 0 and server.stderr.read() == ""
    finally:
        server.kill()
        server.communicate()
