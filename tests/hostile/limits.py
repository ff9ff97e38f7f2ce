"""Jobs in forked processes that have too little: address space, threads, time. Linux."""

from __future__ import annotations

import faulthandler
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from st_paragram.errors import ParagramError

_DONE, _REFUSED, _WRONG, _OTHER = 0, 40, 41, 42
_SIGNS = {
    "libgomp:": "libgomp",
    "thread-local data": "the C library",
    "memory allocation of": "a library in Rust",
}
_FRAME = re.compile(r'File "(.*?)"')


@dataclass(frozen=True)
class Limits:
    """What a process may have.

    Attributes:
        memory: bytes of address space beyond what is mapped when it starts; None: any.
        threads: its own among them; None: any. Only root can tell a process's from a user's: by another user.
    """

    memory: int | None = None
    threads: int | None = None

    def impose(self) -> None:
        """Limit this process."""
        if self.threads is not None:
            resource.setrlimit(resource.RLIMIT_NPROC, (self.threads, self.threads))
            if os.geteuid() == 0:  # whom the limit does not hold
                user = 60_000 + os.getpid() % 5_000
                os.setgroups([])
                os.setresgid(user, user, user)
                os.setresuid(user, user, user)
        if self.memory is not None:
            mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (mapped + self.memory, mapped + self.memory))


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file grow beyond some bytes, which is how a full disk looks to a program."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@dataclass(frozen=True)
class Ending:
    """How a job ended.

    Attributes:
        outcome: "done", "refused", "hang", "traceback", "wrong result", or whose fault the death of the process is.
        text: what it wrote.
    """

    outcome: str
    text: str

    @property
    def is_defect(self) -> bool:
        """Whether it must not be so."""
        return self.outcome in ("hang", "traceback", "wrong result") or self.outcome.startswith("st_paragram")


def forked(job: Callable[[], bool], limits: Limits, seconds: float = 60) -> Ending:
    """Do a job in a process of its own.

    Args:
        job: says whether its result is right. ParagramError and MemoryError are refusals if they are of one line.
        limits: of the process.
        seconds: that it may take.
    """
    with tempfile.TemporaryFile() as log:
        if (process := os.fork()) == 0:
            _work(job, limits, log.fileno())
        status = _wait(process, seconds)
        log.seek(0)
        text = log.read().decode(errors="replace")
    if status is None:
        return Ending("hang", text)
    known = {_DONE: "done", _REFUSED: "refused", _WRONG: "wrong result", _OTHER: "traceback"}
    if status in known:
        return Ending(known[status], text)
    how = signal.Signals(-status).name if status < 0 else f"exit {status}"
    return Ending(f"{_owner(text)} ended the process ({how})", text)


def _work(job: Callable[[], bool], limits: Limits, log: int) -> NoReturn:
    """What the child does; it returns to nobody."""
    status = _OTHER
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(log), "w", buffering=1) for _ in range(2))
        faulthandler.enable(log)
        faulthandler.register(signal.SIGUSR1, log)
        limits.impose()
        status = _DONE if job() else _WRONG
    except (ParagramError, MemoryError) as error:
        status = _REFUSED if "\n" not in str(error) else _OTHER
        os.write(log, f"{error or type(error).__name__}\n".encode())
    except BaseException:
        os.write(log, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _wait(process: int, seconds: float) -> int | None:
    """The exit status of a child, or minus its signal; None if it had to be killed."""
    end = time.monotonic() + seconds
    pause = 0.0005
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    os.kill(process, signal.SIGUSR1)  # where is it?
    time.sleep(0.5)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None


def _owner(text: str) -> str:
    """Who was at work when a process died, by its last words: a package, or Python itself."""
    for sign, owner in _SIGNS.items():
        if sign in text:
            return owner
    frame = _FRAME.search(text)
    where = frame.group(1) if frame else "nowhere in Python"
    if package := re.search(r"(?:site|dist)-packages/([^/]+)", where):
        return package.group(1)
    return "python" if "/lib/python" in where or where.startswith("<frozen") else f"st_paragram, in {where},"
