"""The benchmark's side: start a peer's process, ask it for rounds, watch its memory."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from harness.children import child_environment
from harness.process_memory import anonymous_kib
from harness.results import Round

_LOOK = 0.1  # seconds between two looks at a peer's memory


@dataclass(frozen=True)
class Peer:
    """What a process runs.

    Args:
        name: of its row.
        kind: of job, one of `worker.KINDS`.
        what: which of the kind's peers.
        arguments: for it; JSON values.
        threads: of every library in the process.
        environment: further variables.
        note: for the table.
    """

    name: str
    kind: str
    what: str
    arguments: dict[str, Any]
    threads: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    note: str = ""


def thread_environment(threads: int) -> dict[str, str]:
    """Variables that keep every library of a process to so many threads; pools read them once, when they start."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    return {name: str(threads) for name in names} | {"TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}


class PeerProcess:
    """A running peer. After `absent` is set, it takes no more rounds; `first` is its first, kept or not."""

    def __init__(self, peer: Peer, timeout: float = 900.0) -> None:
        """Start the process and give it its job; `timeout` limits each wait for it, in seconds."""
        self.peer = peer
        self.absent: str | None = None
        self.metadata: dict[str, Any] = {}
        self.rounds: list[Round] = []
        self.first: Round | None = None
        self.peak_anonymous_kib = 0
        self._timeout = timeout
        self._buffer = b""
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed by close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harness.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=_environment(peer),
            start_new_session=True,  # without a terminal, on which libraries like to draw: that would stop the process
        )
        self._send({"kind": peer.kind, "peer": peer.what, "arguments": peer.arguments})

    def __enter__(self) -> PeerProcess:
        """Return the process."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; after an error, without waiting for the end of its round."""
        if kind is not None:
            self._process.kill()
        self.close()

    def wait_ready(self) -> None:
        """Wait until it has loaded what it needs."""
        self.metadata = self._receive().get("ready", {})

    def round(self, keep: bool = True) -> None:
        """Have it do a round, and keep the time or, in a warm-up, drop it."""
        if self.absent is not None:
            return
        self._send("round")
        reply = self._receive()
        if "seconds" not in reply:
            return
        done = Round(reply["seconds"], reply["work"])
        self.first = self.first or done
        if keep:
            self.rounds.append(done)
            for name, value in reply["metadata"].items():
                self.metadata.setdefault(name, []).append(value)

    def close(self) -> None:
        """Tell it to stop and wait; a process that does not is killed."""
        if self._process.poll() is None:
            self._send("stop")
            assert self._process.stdin is not None
            try:
                self._process.stdin.close()
                self._process.wait(timeout=20)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            if stream is not None and not stream.closed:
                stream.close()

    def _send(self, message: Any) -> None:  # noqa: ANN401
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:  # it has died; the next look at its answers says so
            return

    def _receive(self) -> dict[str, Any]:
        """Its next message; sets `absent` if it says so, ends or takes too long."""
        assert self._process.stdout is not None
        stream, deadline = self._process.stdout.fileno(), time.monotonic() + self._timeout
        while b"\n" not in self._buffer:
            self.peak_anonymous_kib = max(self.peak_anonymous_kib, anonymous_kib(self._process.pid))
            if time.monotonic() > deadline:
                self._process.kill()
                self.absent = f"stopped: no answer within {self._timeout:.0f} s"
                return {}
            if not select.select([stream], [], [], _LOOK)[0]:
                continue
            if not (received := os.read(stream, 1 << 16)):
                self.absent = f"cannot run: its process ended ({self._last_line()})"
                return {}
            self._buffer += received
        self.peak_anonymous_kib = max(self.peak_anonymous_kib, anonymous_kib(self._process.pid))
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        self.absent = message.get("absent")
        return message

    def _last_line(self) -> str:
        status = self._process.wait()
        self._log.seek(0)
        lines = [line for line in self._log.read().split("\n") if line.strip()]
        return f"status {status}" + (f", {lines[-1].strip()[:150]}" if lines else "")


def _environment(peer: Peer) -> Mapping[str, str]:
    return {
        **child_environment(),
        "HF_HUB_OFFLINE": "1",
        **thread_environment(peer.threads),
        **peer.environment,
    }
