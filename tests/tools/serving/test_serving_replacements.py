"""Worker processes that end are replaced at once, unless their replacements end, too."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time

import pytest

pytest.importorskip("uvicorn")

from uvicorn import Config
from uvicorn.supervisors.multiprocess import SIGNALS, Process

from st_paragram.tools.serving import workers as module


class EndingProcess(Process):
    """A process that ends before it answers."""

    def __init__(self, config, sockets):
        super().__init__(config, sockets)
        self.process = multiprocessing.get_context("spawn").Process(target=sys.exit, args=(3,))


@pytest.fixture
def workers(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "Process", EndingProcess)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    config = Config("no_application", workers=2, log_config=None, timeout_worker_healthcheck=60)
    workers = module.Workers(config, [], tmp_path, started=list)
    yield workers
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for process in workers.processes:
        process.kill()
        process.join()


def test_workers_whose_replacements_end_stop_the_server(workers, caplog):
    for _ in range(2):
        workers.processes.append(EndingProcess(workers.config, []))
        workers.processes[-1].start()
    begin = time.monotonic()
    while not workers.should_exit.is_set():
        workers.keep_subprocess_alive()
    assert time.monotonic() - begin < 50
    assert workers.failure == "it ended with status 3; --workers 1 may show why"
    assert len(caplog.messages) == module.MAX_FAILURES - 1
    assert all("is replaced: it ended with status 3" in message for message in caplog.messages)
