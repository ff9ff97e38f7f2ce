"""What is read with GET: the model, the health, the figures and the description of the server."""

from __future__ import annotations

from st_paragram.core.version import installed_version
from st_paragram.tools.serving.checks import check_model
from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.guard import HEALTH
from st_paragram.tools.serving.messages import Answer
from st_paragram.tools.serving.metrics import Metrics
from st_paragram.tools.serving.routing import Page


def pages(service: Service, metrics: Metrics) -> list[Page]:
    """The pages of a server."""
    served, settings = service.served, service.settings
    described = {"id": served.name, "object": "model", "created": 0, "owned_by": "st_paragram"}
    info = {  # as text-embeddings-inference's; its limit of a text is in tokens, ours in characters
        "model_id": served.name,
        "model_sha": None,
        "model_dtype": "float32",
        "model_type": {"embedding": {"pooling": "mean"}},
        "max_concurrent_requests": settings.max_waiting,
        "max_input_length": settings.max_characters,
        "max_batch_requests": settings.batch_texts,
        "max_client_batch_size": settings.max_texts,
        "auto_truncate": False,
        "version": installed_version(),
    }

    def models(name: str) -> Answer:
        if not name:
            return Answer.json({"object": "list", "data": [described]})
        check_model(name, served)
        return Answer.json(described)

    def health(_: str) -> Answer:
        sentences = None if served.index is None else len(served.index)
        about = {"status": "ok", "model": served.name, "dimensions": served.dimension, "sentences": sentences}
        return Answer.json(about)

    return [
        Page("/v1/models", "The model that is served; /v1/models/NAME describes it alone.", models, has_children=True),
        Page("/info", "The model and the limits of a request.", lambda _: Answer.json(info)),
        Page(HEALTH, "That the server answers, and with which model.", health),
        Page("/metrics", "Counters for Prometheus.", lambda _: Answer(metrics.text(), media_type=metrics.content_type)),
    ]
