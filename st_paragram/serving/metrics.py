"""What a server counts, for Prometheus: no text and nothing about clients."""

from __future__ import annotations

from collections.abc import Callable

from st_paragram.extras import require

PATHS = ("/v1/embeddings", "/v1/models", "/score", "/search", "/health", "/metrics")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


class Metrics:
    """Counters of one server.

    Args:
        waiting: gives the number of texts that wait.

    Raises:
        MissingExtraError: prometheus_client is not installed.
    """

    def __init__(self, waiting: Callable[[], float]) -> None:
        prometheus = require("prometheus_client", "serve")
        self._registry = prometheus.CollectorRegistry()
        kept = {"registry": self._registry}
        self._requests = prometheus.Counter(
            "st_paragram_requests", "Requests that were answered", ["path", "status"], **kept
        )
        self._seconds = prometheus.Histogram(
            "st_paragram_request_seconds", "Time from a request to its answer", ["path"], buckets=_SECONDS, **kept
        )
        self._texts = prometheus.Histogram(
            "st_paragram_batch_texts", "Texts that were encoded together", buckets=_TEXTS, **kept
        )
        prometheus.Gauge("st_paragram_waiting_texts", "Texts that wait to be encoded", **kept).set_function(waiting)
        self._write = prometheus.generate_latest
        self.content_type: str = prometheus.CONTENT_TYPE_LATEST

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count a request; paths that are not ours are one."""
        known = path if path in PATHS else "other"
        self._requests.labels(known, str(status)).inc()
        self._seconds.labels(known).observe(seconds)

    def encoded(self, texts: int) -> None:
        """Count a batch."""
        self._texts.observe(texts)

    def text(self) -> bytes:
        """All figures in Prometheus' text format."""
        return bytes(self._write(self._registry))
