"""Processes that start at once: forked from a server that has imported what tests need, and has computed nothing.

A new interpreter takes seconds to import torch and sentence-transformers. Python's fork server does it once; each of
its children is new in all other ways: no thread, no CUDA, no random state of the tests.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

_IMPORTED = ["faiss", "st_paragram.tools.bitext_mining.miner", "st_paragram.learning.training.run"]


def start(work: Callable[..., Any], *arguments: object, folder: Path) -> BaseProcess:
    """Start a function of a module that imports little in a child, in a folder; `said` has what it prints."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    process = context.Process(target=_run, args=(folder, work, arguments))
    process.start()
    return process


def said(process: BaseProcess, folder: Path) -> str:
    """What a child has printed so far."""
    log = folder / f"{process.pid}.log"
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def wait(processes: list[BaseProcess], folder: Path, seconds: float = 120) -> None:
    """Wait for the end of children; all must end well, and none stays."""
    try:
        for process in processes:
            process.join(seconds)
            assert process.exitcode == 0, said(process, folder)
    finally:
        for process in processes:
            process.kill()


def _run(folder: Path, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.chdir(folder)
    written = os.open(folder / f"{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    for number in (1, 2):
        os.dup2(written, number)
    sys.stdout = sys.stderr = os.fdopen(written, "w", buffering=1, encoding="utf-8")
    work(*arguments)
