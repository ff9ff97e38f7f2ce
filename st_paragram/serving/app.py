"""The application: what is asked at which address, and what comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from st_paragram.extras import require
from st_paragram.serving.batching import Batcher
from st_paragram.serving.checks import check_dimensions, check_model, check_texts
from st_paragram.serving.embeddings_answer import embeddings_answer
from st_paragram.serving.errors import Refused, handle_errors
from st_paragram.serving.failures import log_stray
from st_paragram.serving.guard import HEALTH, App, Guard
from st_paragram.serving.metrics import Metrics
from st_paragram.serving.schemas import EmbeddingsRequest, ScoreRequest, SearchRequest
from st_paragram.serving.served_model import ServedModel, unit_rows
from st_paragram.serving.settings import ServingSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

_LARGE = 1 << 16  # numbers of an answer, and characters of its texts, that are worth a thread


def build_app(served: ServedModel, settings: ServingSettings | None = None, key: str | None = None) -> App:
    """The ASGI application of a server.

    Args:
        served: the model, and perhaps an index.
        settings: limits.
        key: what clients must send; None: nothing.

    Raises:
        MissingExtraError: FastAPI or prometheus_client is not installed.
    """
    settings = settings or ServingSettings()
    batcher = Batcher(served.encode, settings.batch_texts, settings.max_waiting)
    metrics = Metrics(lambda: batcher.waiting)
    batcher.observe = metrics.encoded

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(log_stray)
        yield
        await asyncio.to_thread(batcher.close)  # meanwhile those whose time is over are told

    fastapi = require("fastapi", "serve")
    # The pages of documentation that FastAPI makes would load scripts from other hosts.
    app = fastapi.FastAPI(title="st_paragram", docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
    handle_errors(app)
    _add_embeddings(app, served, settings, batcher)
    _add_score(app, served, settings, batcher)
    _add_search(app, served, settings, batcher)
    _add_metadata(app, served, metrics)
    return Guard(app, settings, metrics, key)


def _add_embeddings(app: FastAPI, served: ServedModel, settings: ServingSettings, batcher: Batcher) -> None:
    async def embeddings(request: EmbeddingsRequest) -> Any:  # noqa: ANN401 - FastAPI would take a type for a schema
        """Embeddings of length 1, as OpenAI's."""
        check_model(request.model, served)
        check_dimensions(request.dimensions, served)
        check_texts(request.texts, settings, "input")
        served.check(request.input_type)
        rows = await batcher.encoded(request.texts, request.input_type)

        def written() -> bytes:
            """The answer; what takes long must not keep all others waiting."""
            units = unit_rows(rows, request.dimensions)
            return embeddings_answer(
                units, served.name, served.tokens(request.texts), request.encoding_format == "base64"
            )

        large = rows.size + sum(map(len, request.texts)) > _LARGE
        content = await asyncio.to_thread(written) if large else written()
        return _response()(content, media_type="application/json")

    app.post("/v1/embeddings", response_class=_json())(embeddings)


def _add_score(app: FastAPI, served: ServedModel, settings: ServingSettings, batcher: Batcher) -> None:
    async def score(request: ScoreRequest) -> Any:  # noqa: ANN401
        """The cosine of each pair."""
        check_model(request.model, served)
        texts = [text for pair in request.pairs for text in pair]
        check_texts(texts, settings, "pairs")
        rows = unit_rows(await batcher.encoded(texts))
        cosines = np.einsum("nd,nd->n", rows[0::2], rows[1::2])
        return {"model": served.name, "scores": cosines.astype(np.float64).round(6).tolist()}

    app.post("/score", response_class=_json())(score)


def _add_search(app: FastAPI, served: ServedModel, settings: ServingSettings, batcher: Batcher) -> None:
    async def search(request: SearchRequest) -> Any:  # noqa: ANN401
        """The sentences of the index that are nearest to each query."""
        index = served.index
        if index is None:
            raise Refused(404, "this server has no index; start it with --index")
        check_model(request.model, served)
        check_texts(request.queries, settings, "queries")
        if request.k > settings.max_hits:
            raise Refused(400, f"k is {request.k}; at most {settings.max_hits} are allowed", "k")
        rows = await batcher.encoded(request.queries, served.query_kind)
        if len(unknown := np.flatnonzero(~rows.any(1))):
            raise Refused(400, f"text {unknown[0]} of queries has nothing that {served.name} knows", "queries")
        found = await batcher.in_thread(lambda: index.search_vectors(rows, request.k, request.threshold))
        results = [[{"score": hit.score, "line": hit.line, "sentence": hit.sentence} for hit in hits] for hits in found]
        return {"model": served.name, "results": results}

    app.post("/search", response_class=_json())(search)


def _add_metadata(app: FastAPI, served: ServedModel, metrics: Metrics) -> None:
    described = {"id": served.name, "object": "model", "created": 0, "owned_by": "st_paragram"}

    async def models() -> Any:  # noqa: ANN401
        """The models of this server: one."""
        return {"object": "list", "data": [described]}

    async def model(name: str) -> Any:  # noqa: ANN401
        """The model of this name."""
        check_model(name, served)
        return described

    async def health() -> Any:  # noqa: ANN401
        """That the server answers, and with what."""
        sentences = None if served.index is None else len(served.index)
        return {"status": "ok", "model": served.name, "dimensions": served.dimension, "sentences": sentences}

    async def figures() -> Any:  # noqa: ANN401
        """Counters for Prometheus."""
        return _response()(metrics.text(), media_type=metrics.content_type)

    answers: dict[str, Callable[..., Any]] = {
        "/v1/models": models,
        "/v1/models/{name:path}": model,
        HEALTH: health,
        "/metrics": figures,
    }
    for path, work in answers.items():
        app.get(path)(work)
        app.head(path, include_in_schema=False)(work)


def _response() -> Any:  # noqa: ANN401
    """The class of answers whose bytes are there already."""
    return require("starlette.responses", "serve").Response


def _json() -> Any:  # noqa: ANN401
    """The class of answers that are written as they are, without a look at each number."""
    return require("starlette.responses", "serve").JSONResponse
