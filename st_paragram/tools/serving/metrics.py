"""What a server counts, for Prometheus: no text and nothing about clients."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from st_paragram.core.extras import require

#: Where the processes of one server keep their counts, so that each of them can report all; prometheus_client reads it
#: when it is imported.
SHARED_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


class Metrics:
    """Counters of one server, or of one of its processes.

    Args:
        waiting: gives the number of texts that wait.

    Raises:
        MissingExtraError: prometheus_client is not installed.
    """

    def __init__(self, waiting: Callable[[], float]) -> None:
        prometheus = require("prometheus_client", "serve")
        self._count_waiting = waiting
        self._registry = prometheus.CollectorRegistry()
        kept = {"registry": self._registry}
        requests = prometheus.Counter("st_paragram_requests", "Requests answered", ["path", "status"], **kept)
        seconds = prometheus.Histogram(
            "st_paragram_request_seconds", "Time from a request to its answer", ["path"], buckets=_SECONDS, **kept
        )
        self._texts = prometheus.Histogram("st_paragram_batch_texts", "Texts encoded together", buckets=_TEXTS, **kept)
        self._waiting = prometheus.Gauge(
            "st_paragram_waiting_texts", "Texts that wait to be encoded", multiprocess_mode="livesum", **kept
        )
        self._write = prometheus.generate_latest
        self.content_type: str = prometheus.CONTENT_TYPE_LATEST

        @lru_cache(maxsize=1024)
        def of_request(path: str, status: int) -> tuple[Any, Any]:
            return requests.labels(path, str(status)), seconds.labels(path)

        self._of_request = of_request

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request to one of the server's addresses, or to "other"."""
        count, times = self._of_request(path, status)
        count.inc()
        times.observe(seconds)
        self._waiting.set(self._count_waiting())

    def encoded(self, texts: int) -> None:
        """Count a batch."""
        self._texts.observe(texts)

    def text(self) -> bytes:
        """All figures in Prometheus' text format, of all processes of this server."""
        self._waiting.set(self._count_waiting())
        registry = self._registry
        if SHARED_VARIABLE in os.environ:
            prometheus = require("prometheus_client.multiprocess", "serve")
            registry = require("prometheus_client", "serve").CollectorRegistry()
            prometheus.MultiProcessCollector(registry)
        return bytes(self._write(registry))
