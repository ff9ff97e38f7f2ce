"""A few starts with too little, and how the endings of processes are told apart."""

import os
import random
import signal
import sys
import time
from collections import Counter

import pytest

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.native import kernels
from st_paragram.errors import SettingsError

if sys.platform != "linux":
    pytest.skip("limits as those of Linux", allow_module_level=True)

from hostile.limits import Limits, forked
from hostile.starved import Kernels, starts


@pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")
def test_starts_end_with_a_result_or_with_one_line():
    endings = list(starts(Kernels().jobs, 20, random.Random(5), 0.25))
    assert not [ending for _, ending in endings if ending.is_defect]
    assert Counter(ending.outcome for _, ending in endings).keys() >= {"done", "refused"}


def _raise(error):
    raise error


def _killed():
    os.kill(os.getpid(), signal.SIGSEGV)


@pytest.mark.parametrize(
    ("job", "outcome"),
    [
        (lambda: True, "done"),
        (lambda: False, "wrong result"),
        (lambda: _raise(SettingsError("too few threads")), "refused"),
        (lambda: _raise(SettingsError("too few\nthreads")), "traceback"),
        (lambda: _raise(MemoryError()), "refused"),
        (lambda: _raise(KeyError("a")), "traceback"),
        (lambda: len(bytearray(1 << 30)) > 0, "refused"),
        (lambda: time.sleep(9), "hang"),
    ],
)
def test_endings(job, outcome):
    assert forked(job, Limits(memory=64 << 20), seconds=0.5).outcome == outcome


def test_who_was_at_work_when_a_process_died():
    ending = forked(_killed, Limits())
    assert ending.is_defect and ending.outcome.endswith("test_starved.py, ended the process (SIGSEGV)")
    said = "cannot allocate memory for thread-local data: ABORT"
    library = forked(lambda: (os.write(2, said.encode()), os._exit(127)), Limits())
    assert not library.is_defect and library.outcome == "the C library ended the process (exit 127)"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory:\nyou tried ..."),
        RuntimeError("can't start new thread"),
        SystemError("error return without exception set"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
    ],
)
def test_commands_say_in_one_line_that_memory_has_run_out(error, capsys):
    assert run_reporting_errors("st-paragram embed", lambda: _raise(error)) == 1
    said = capsys.readouterr().err
    assert said.startswith("st-paragram embed: not enough memory (") and said.count("\n") == 1


def test_other_errors_of_libraries_stay_what_they_are():
    with pytest.raises(RuntimeError, match="shape mismatch"):
        run_reporting_errors("st-paragram embed", lambda: _raise(RuntimeError("shape mismatch")))
