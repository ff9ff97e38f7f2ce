"""Processes that start at once: forked from a server that has imported what tests need, and has computed nothing.

A new interpreter takes seconds to import torch and sentence-transformers. Python's own fork server does it once for all
tests of a process; each of its children is new in all other ways: no thread, no CUDA, no random state of the tests.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

_IMPORTED = [
    "faiss",
    "st_paragram.tools.bitext_mining.miner",
    "st_paragram.learning.models.directory",
    "st_paragram.learning.training.run",
    "st_paragram.families.bgt.training",
    "st_paragram.families.muse.train",
]


def context() -> ForkServerContext:
    """Of multiprocessing, with the server at work."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(_IMPORTED)
    forkserver.ensure_running()
    return made


def start(work: Callable[..., Any], *arguments: object, folder: Path, **environment: str) -> BaseProcess:
    """Start a child in a folder; what it prints goes to `<folder>/<number of the child>.log`, see `said`.

    Args:
        work: A function that can be pickled: of a module that imports little.
        arguments: Of the function.
        folder: To work in.
        environment: Variables, besides those of the first start.
    """
    process = context().Process(target=_run, args=(folder, environment, work, arguments))
    process.start()
    return process


def said(process: BaseProcess, folder: Path) -> str:
    """What a child has printed so far."""
    log = folder / f"{process.pid}.log"
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def run(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a Python module (`python -m MODULE WORDS`) by its `main` in a child, as `subprocess.run` would."""
    process = start(_main, command[2], command[3:], folder=folder, **env)
    process.join()
    printed = said(process, folder)
    return subprocess.CompletedProcess(command, process.exitcode or 0, printed, printed)


def start_ranks(count: int, work: Callable[..., Any], *arguments: object, folder: Path) -> list[BaseProcess]:
    """Processes of one training, on CPUs, in the environment that torchrun makes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared |= {"OMP_NUM_THREADS": 1, "ACCELERATE_USE_CPU": "true", "CUDA_VISIBLE_DEVICES": ""}
    ranks = [shared | {"RANK": rank, "LOCAL_RANK": rank} for rank in range(count)]
    words = [{name: str(value) for name, value in each.items()} for each in ranks]
    return [start(work, *arguments, folder=folder, **each) for each in words]


def wait(processes: list[BaseProcess], folder: Path, seconds: float = 120) -> None:
    """Wait for the end of children; all must end well, and none stays."""
    try:
        for process in processes:
            process.join(seconds)
            assert process.exitcode == 0, said(process, folder)
    finally:
        for process in processes:
            process.kill()


def instead_of_spawn(monkeypatch: pytest.MonkeyPatch, executors: ModuleType) -> None:
    """Let the workers of `LocalExecutor` come from the server, which is then the parent that they end with."""
    made = context()
    monkeypatch.setattr(executors, "get_context", lambda method: made)
    monkeypatch.setattr(executors, "os", SimpleNamespace(getpid=lambda: forkserver._forkserver._forkserver_pid))


def _main(module: str, words: Sequence[str]) -> None:
    sys.argv = [module, *words]
    sys.exit(importlib.import_module(module).main())


def _run(folder: Path, environment: dict[str, str], work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ.update(environment)
    os.chdir(folder)
    written = os.open(folder / f"{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for number in (1, 2):
        os.dup2(written, number)
    sys.stdout = sys.stderr = os.fdopen(written, "w", buffering=1, encoding="utf-8")
    work(*arguments)
