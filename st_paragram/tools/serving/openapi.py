"""The description of a server for machines, as OpenAPI defines it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic.json_schema import models_json_schema

from st_paragram.core.version import installed_version
from st_paragram.tools.serving.messages import JSON
from st_paragram.tools.serving.routing import Endpoint, Form, Route

PATH = "/openapi.json"
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


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """The OpenAPI document of some routes."""
    routes = list(routes)
    schemas = [form.schema for route in routes if isinstance(route, Endpoint) for form in route.forms]
    _, definitions = models_json_schema(
        [(schema, "validation") for schema in dict.fromkeys(schemas)], ref_template=_SCHEMAS + "{model}"
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "st_paragram", "version": installed_version()},
        "paths": {route.path: _operation(route) for route in routes},
        "components": {"schemas": definitions["$defs"] | {"Error": _ERROR}},
    }


def _operation(route: Route) -> dict[str, Any]:
    error = {"description": "What was wrong.", "content": {JSON: {"schema": {"$ref": f"{_SCHEMAS}Error"}}}}
    described: dict[str, Any] = {
        "summary": route.summary,
        "responses": {"200": {"description": route.summary}, "default": error},
    }
    if not isinstance(route, Endpoint):
        return {"get": described}
    described["requestBody"] = {"required": True, "content": {JSON: {"schema": _any_of(route.forms)}}}
    return {"post": described}


def _any_of(forms: Iterable[Form]) -> dict[str, Any]:
    references = [{"$ref": f"{_SCHEMAS}{form.schema.__name__}"} for form in forms]
    return references[0] if len(references) == 1 else {"anyOf": references}
