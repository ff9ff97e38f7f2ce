"""Interleaved rounds: every peer in turn, again and again, so that what disturbs the machine disturbs all alike."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from tqdm import tqdm

from harness.processes import Peer, PeerProcess
from harness.results import Row


def interleave(peers: Sequence[Peer], rounds: int, warm_up: int = 1, title: str = "") -> list[PeerProcess]:
    """Start all peers, then run them round robin, each round beginning with another peer.

    A peer works while all others wait without using the processor.

    Args:
        peers: what to run.
        rounds: rounds that count.
        warm_up: rounds before them, that do not.
        title: of the progress bar.

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

    Args:
        peers: what to run.
        rounds: rounds that count.
        warm_up: rounds before them, that do not: they leave on disk what later processes find.
        title: of the progress bar.

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
