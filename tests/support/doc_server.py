"""The server that a page of the documentation starts, and requests to it."""

from __future__ import annotations

import re
import subprocess
import sys

ADDRESS = "http://127.0.0.1:8080"  # on the pages


class DocServer:
    """A server in a process, on any free port."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._url = ADDRESS

    def start(self, words: list[str]) -> None:
        """Start the server of a command `st-paragram serve ...` and wait until it answers."""
        self.stop()
        command = [sys.executable, "-m", "st_paragram.cli.main", *words[1:], "--port", "0"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._url = re.findall(r"http://\S+", self._process.stdout.readline())[0]

    def run(self, text: str) -> str:
        """Run a block of curl commands against this server; return what they print."""
        script = text.replace(ADDRESS, self._url)
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        return done.stdout

    def stop(self) -> None:
        """Stop the server, if there is one."""
        if self._process is not None:
            self._process.terminate()
            self._process.communicate(timeout=60)
            self._process = None
