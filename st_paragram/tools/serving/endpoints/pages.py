"""What is read with GET: the model, the health, the figures and the description of the server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pydantic.json_schema import models_json_schema

from st_paragram.core.version import installed_version
from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.guard import HEALTH
from st_paragram.tools.serving.messages import JSON, Answer
from st_paragram.tools.serving.metrics import Metrics
from st_paragram.tools.serving.routing import Endpoint, Page

_SCHEMAS = "#/components/schemas/"
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "null"},
            },
        }
    },
}


def pages(service: Service, metrics: Metrics, endpoints: Sequence[Endpoint], others: Sequence[Page]) -> list[Page]:
    """The pages of a server, `others` among them; the last one describes all for machines, as OpenAPI defines it."""
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
        service.check_model(name)
        return Answer.json(described)

    def health(_: str) -> Answer:
        sentences = None if served.index is None else len(served.index)
        about = {"status": "ok", "model": served.name, "dimensions": served.dimension, "sentences": sentences}
        return Answer.json(about)

    found = [
        Page("/v1/models", "The model that is served; /v1/models/NAME describes it alone.", models, has_children=True),
        Page("/info", "The model and the limits of a request.", lambda _: Answer.json(info)),
        Page(HEALTH, "That the server answers, and with which model.", health),
        Page("/metrics", "Counters for Prometheus.", lambda _: Answer(metrics.text(), media_type=metrics.content_type)),
        *others,
    ]
    description = lru_cache(maxsize=1)(lambda: Answer.json(_describe(endpoints, found)))
    return [
        *found,
        Page("/openapi.json", "The description of this server for machines (OpenAPI).", lambda _: description()),
    ]


def _describe(endpoints: Sequence[Endpoint], pages: Sequence[Page]) -> dict[str, Any]:
    schemas = dict.fromkeys(form.schema for endpoint in endpoints for form in endpoint.forms)
    _, definitions = models_json_schema(
        [(schema, "validation") for schema in schemas], ref_template=_SCHEMAS + "{model}"
    )
    posted = {each.path: {"post": _answers(each.summary) | {"requestBody": _body(each)}} for each in endpoints}
    return {
        "openapi": "3.1.0",
        "info": {"title": "st_paragram", "version": installed_version()},
        "paths": posted | {page.path: {"get": _answers(page.summary)} for page in pages},
        "components": {"schemas": definitions["$defs"] | {"Error": _ERROR}},
    }


def _answers(summary: str) -> dict[str, Any]:
    error = {"description": "What was wrong.", "content": {JSON: {"schema": {"$ref": f"{_SCHEMAS}Error"}}}}
    return {"summary": summary, "responses": {"200": {"description": summary}, "default": error}}


def _body(endpoint: Endpoint) -> dict[str, Any]:
    references = [{"$ref": f"{_SCHEMAS}{form.schema.__name__}"} for form in endpoint.forms]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"required": True, "content": {JSON: {"schema": schema, "example": endpoint.example}}}
