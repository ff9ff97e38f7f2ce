"""The application of a server for one model, and optionally an index.

It has the APIs of OpenAI, Cohere, Jina and Hugging Face.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from st_paragram.tools.serving import schemas
from st_paragram.tools.serving.answers import ERROR_HANDLERS
from st_paragram.tools.serving.endpoints import IndexEndpoints, ModelEndpoints
from st_paragram.tools.serving.guard import Guard, metrics
from st_paragram.tools.serving.model import ServedModel

_Endpoint = Callable[[Request], Awaitable[Response]]
_Answer = Callable[[Any], Awaitable[Response]]


def build(job: schemas.Job) -> Starlette:
    """Build the application; `state.about` describes what it serves."""
    model = ServedModel(job)
    of_model = ModelEndpoints(model, job)
    of_index = IndexEndpoints(model, job)

    routes = [
        Route("/v1/models", of_model.models),
        Route("/v1/models/{name:path}", of_model.models),
        Route("/info", of_model.info),
        Route("/health", of_index.health),
        Route("/metrics", metrics),
        Route("/index", of_index.about),
    ]
    posts: list[tuple[str, type[schemas.Body], _Answer]] = [
        ("/v1/embeddings", schemas.Embeddings, of_model.embeddings),
        ("/embed", schemas.Embed, of_model.embed),
        ("/similarity", schemas.Similarity, of_model.similarity),
        ("/tokenize", schemas.Tokenize, of_model.tokenize),
        ("/rerank", schemas.Rerank, of_model.rerank),
        ("/v1/rerank", schemas.Rerank, of_model.rerank),
        ("/v2/rerank", schemas.Rerank, of_model.rerank),
        ("/score", schemas.Score, of_model.score),
        ("/search", schemas.Search, of_index.search),
        ("/index/add", schemas.Add, of_index.add),
        ("/index/delete", schemas.Delete, of_index.delete),
    ]
    for path, schema, answer in posts:
        endpoint = _parsing(schema, answer, model, int(job.max_body))
        routes.append(Route(path, endpoint, methods=["POST"]))
    middleware = [Middleware(Guard, key=job.key, paths={route.path for route in routes})]
    if job.origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=job.origins,
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=["*"],
            expose_headers=["Retry-After"],
        )
        middleware.insert(0, cors)
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=ERROR_HANDLERS)
    app.router.redirect_slashes = False  # a redirect would lead to any host that the request names
    app.state.about = f"{model.name} ({model.dimension} dimensions)"
    gc.collect()
    # with torch, a garbage collection of all loaded objects would stop all requests for 0.4 s
    gc.freeze()
    return app


def _parsing(
    schema: type[schemas.Body], answer: _Answer, model: ServedModel, max_body: int
) -> _Endpoint:
    """Make an endpoint that parses the body of a request and calls `answer`."""

    async def endpoint(request: Request) -> Response:
        if not request.headers.get("content-type", "").lower().startswith("application/json"):
            # If this header were optional, any web page could send requests here.
            raise HTTPException(
                400, "the header Content-Type: application/json is missing; send it"
            )
        content = bytearray()
        async for part in request.stream():
            content += part
            if len(content) > max_body:
                raise HTTPException(
                    413, f"the body is larger than {max_body} bytes", {"Connection": "close"}
                )
        body = schema.model_validate_json(content)
        model.check_name(body.model)
        return await answer(body)

    return endpoint
