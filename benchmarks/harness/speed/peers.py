"""Peers, the programs that are compared: each works in a separate process, round by round, when it is asked to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any
from unittest.mock import patch

from harness.processes import LOOK, anonymous_kib, thread_environment
from harness.speed.results import Round, Row
from tqdm import tqdm


class PeerAbsentError(Exception):
    """A peer cannot run here; the message goes into the table, e.g. "not installed: pip install model2vec"."""


class Channel:
    """What a peer says to the benchmark: that it is ready, then the time of each round that it was asked for."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        """Talk through one end of a pipe."""
        self._connection = connection

    def ready(self, **metadata: Any) -> None:  # noqa: ANN401
        """Say that everything is loaded, and metadata about it."""
        self._connection.send({"ready": metadata})

    def wait(self) -> bool:
        """Wait until a round is asked for; False when there will be no more."""
        try:
            return bool(self._connection.recv())
        except EOFError:
            return False

    def report(self, seconds: float, work: float, **metadata: Any) -> None:  # noqa: ANN401
        """Report a round: wall time and units of work."""
        self._connection.send({"seconds": seconds, "work": work, "metadata": metadata})


@dataclass(frozen=True)
class Peer:
    """What a process runs.

    Args:
        name: name of its row.
        run: a function of a module: it takes `what`, `arguments` and a channel, and works until no round is wanted.
        what: which of the peers that `run` knows.
        arguments: arguments of the peer.
        threads: number of threads of every library in the process.
        environment: further variables.
        note: remark for the table.
    """

    name: str
    run: Callable[[str, dict[str, Any], Channel], None]
    what: str
    arguments: dict[str, Any]
    threads: int = 1
    environment: dict[str, str] = field(default_factory=dict)
    note: str = ""


class PeerProcess:
    """A running peer. After `absent` is set, it takes no more rounds; `first` is its first, kept or not."""

    def __init__(self, peer: Peer, timeout: float = 900.0) -> None:
        """Start the process; `timeout` limits each wait for it, in seconds."""
        self.peer = peer
        self.absent: str | None = None
        self.metadata: dict[str, Any] = {}
        self.rounds: list[Round] = []
        self.first: Round | None = None
        self.peak_anonymous_kib = 0
        self._timeout = timeout
        context = get_context("spawn")  # a new interpreter, whose libraries read the variables below
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(peer, theirs))
        variables = {"HF_HUB_OFFLINE": "1", **thread_environment(peer.threads), **peer.environment}
        with patch.dict(os.environ, variables):
            self._process.start()
        theirs.close()

    def __enter__(self) -> PeerProcess:
        """Return the process."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; after an error, without waiting for the end of its round."""
        self.close(patience=0 if kind is not None else 20)

    def wait_ready(self) -> None:
        """Wait until it has loaded what it needs."""
        self.metadata = self._receive().get("ready", {})

    def round(self, keep: bool = True) -> None:
        """Have it do a round, and keep the time or, in a warm-up, drop it."""
        if self.absent is not None:
            return
        with suppress(OSError):  # it has died; the look at its answer says so
            self._connection.send(True)
        reply = self._receive()
        if "seconds" not in reply:
            return
        done = Round(reply["seconds"], reply["work"])
        self.first = self.first or done
        if keep:
            self.rounds.append(done)
            for name, value in reply["metadata"].items():
                self.metadata.setdefault(name, []).append(value)

    def close(self, patience: float = 20) -> None:
        """Let it end, and kill it if it does not within `patience` seconds."""
        self._connection.close()
        self._process.join(patience)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _receive(self) -> dict[str, Any]:
        """Its next message; sets `absent` if it says so, ends or takes too long."""
        deadline = time.monotonic() + self._timeout
        assert self._process.pid is not None
        while not (answered := self._connection.poll(LOOK)) and time.monotonic() < deadline:
            self.peak_anonymous_kib = max(self.peak_anonymous_kib, anonymous_kib(self._process.pid))
        self.peak_anonymous_kib = max(self.peak_anonymous_kib, anonymous_kib(self._process.pid))
        if not answered:
            self._process.kill()
            self.absent = f"stopped: no answer within {self._timeout:.0f} s"
            return {}
        try:
            message: dict[str, Any] = self._connection.recv()
        except (EOFError, OSError):
            self._process.join()
            self.absent = f"cannot run: its process ended (status {self._process.exitcode})"
            return {}
        self.absent = message.get("absent")
        return message


def _work(peer: Peer, connection: Connection[Any, Any]) -> None:
    """Be the peer; what libraries print is dropped."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(quiet, number)
    try:
        peer.run(peer.what, peer.arguments, Channel(connection))
    except PeerAbsentError as error:
        connection.send({"absent": str(error)})
    except Exception as error:  # whatever goes wrong inside a peer is a row of the table, not the end of the benchmark
        reason = str(error).strip().split("\n")[0]
        connection.send({"absent": f"cannot run: {type(error).__name__}: {reason}"[:200]})


def interleave(peers: Sequence[Peer], rounds: int, warm_up: int = 1, title: str = "") -> list[PeerProcess]:
    """Start all peers, then run them in turn, each round beginning with another peer: what disturbs one disturbs all.

    A peer works while all others wait without using the processor.

    Args:
        peers: the peers to run.
        rounds: number of rounds that count.
        warm_up: number of rounds before them that do not.
        title: title of the progress bar.

    Returns:
        The processes in the order of `peers`, closed, with their rounds, metadata and peaks of memory.
    """
    with ExitStack() as stack, tqdm(total=len(peers) * (rounds + warm_up + 1), desc=title, disable=None) as bar:
        processes = [stack.enter_context(PeerProcess(peer)) for peer in peers]  # they load at the same time
        for process in processes:
            bar.set_postfix_str(f"{process.peer.name}: loading")
            process.wait_ready()
            bar.update()
        for number in range(-warm_up, rounds):
            first = number % len(processes) if processes else 0
            for process in processes[first:] + processes[:first]:
                bar.set_postfix_str(process.peer.name)
                process.round(keep=number >= 0)
                bar.update()
    return processes


def one_shot(peers: Sequence[Peer], rounds: int, warm_up: int = 0, title: str = "") -> list[PeerProcess]:
    """Like `interleave`, with a new process for each round, which then holds the first (cold) round only.

    Returns:
        One process per peer that carries the rounds, the metadata and the highest peak of all its processes.
    """
    with tqdm(total=len(peers) * (rounds + warm_up), desc=title, disable=None) as bar:
        kept: dict[int, PeerProcess] = {}
        for number in range(-warm_up, rounds):
            for index, peer in enumerate(peers):
                bar.set_postfix_str(peer.name)
                with PeerProcess(peer) as process:
                    process.wait_ready()
                    process.round()
                bar.update()
                if number >= 0:
                    _add(kept.setdefault(index, process), process)
    return [kept[index] for index in range(len(peers))] if kept else []


def _add(total: PeerProcess, process: PeerProcess) -> None:
    if total is process:
        return
    total.rounds += process.rounds
    total.peak_anonymous_kib = max(total.peak_anonymous_kib, process.peak_anonymous_kib)
    total.absent = total.absent or process.absent
    for name, values in process.metadata.items():
        if isinstance(values, list):
            total.metadata.setdefault(name, []).extend(values)


def rows(processes: Sequence[PeerProcess], memory: bool = False) -> list[Row]:
    """Rows of a table; a peer that could not run keeps its row, with the reason.

    Args:
        processes: what `interleave` or `one_shot` gave back.
        memory: add a column with the peak of the process's own memory, in MiB.
    """
    result = []
    for process in processes:
        row = Row(process.peer.name, process.rounds, process.absent or process.peer.note)
        if process.absent is not None:
            row.rounds = []
        elif memory and process.peak_anonymous_kib:
            row.columns["peak memory, MiB"] = f"{process.peak_anonymous_kib / 2**10:,.0f}"
        result.append(row)
    return result
