"""A server of one model, and perhaps an index, behind the APIs of OpenAI, Cohere, Jina and Hugging Face."""

from __future__ import annotations

import gc
import hmac
import logging
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from asyncio import Lock, to_thread
from binascii import b2a_base64
from contextlib import suppress
from html import escape
from pathlib import Path
from traceback import extract_tb
from typing import Any

import numpy as np
import orjson
import prometheus_client as prometheus
from numpy.typing import NDArray
from prometheus_client.multiprocess import MultiProcessCollector
from pydantic import TypeAdapter, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config, Server
from uvicorn.supervisors import Multiprocess

from st_paragram.core.encoding.find import find
from st_paragram.core.version import installed_version
from st_paragram.errors import SettingsError
from st_paragram.tools.serving import schemas
from st_paragram.tools.serving.batching import Batcher, Model, Rows

VARIABLE = "ST_PARAGRAM_SERVE"  # has the job of a worker process
_OPEN = ("/", "/health")  # read without the key
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
REQUESTS = prometheus.Counter("st_paragram_requests", "Requests answered", ["path", "status"])
LATENCY = prometheus.Histogram("st_paragram_request_seconds", "Time to the answer", ["path"], buckets=_SECONDS)
BATCHES = prometheus.Histogram("st_paragram_batch_texts", "Texts encoded together", buckets=[2**n for n in range(13)])
logger = logging.getLogger(__name__)


def build(job: schemas.Job) -> Starlette:
    """The application; `state.about` says what it serves."""
    service = _Service(job)
    posted = {
        "/v1/embeddings": (schemas.Embeddings, service.embeddings),
        "/embed": (schemas.Embed, service.embed),
        **dict.fromkeys(("/rerank", "/v1/rerank", "/v2/rerank"), (schemas.Rerank, service.rerank)),
        "/score": (schemas.Score, service.score),
        "/search": (schemas.Search, service.search),
        "/index/add": (schemas.Add, service.add),
        "/index/delete": (schemas.Delete, service.delete),
    }
    pages = {
        "/": service.start_page,
        "/v1/models": service.models,
        "/v1/models/{name:path}": service.models,
        "/info": service.info,
        "/health": service.health,
        "/metrics": _metrics,
        "/index": service.about_index,
    }
    routes = [Route(path, service.reading(*each), methods=["POST"]) for path, each in posted.items()]
    routes += [Route(path, page) for path, page in pages.items()]
    middleware = [Middleware(Guard, key=job.key, paths={*posted, *pages})]
    if job.origins:
        how: Any = {"allow_methods": ["GET", "HEAD", "POST"], "allow_headers": ["*"], "expose_headers": ["Retry-After"]}
        middleware.insert(0, Middleware(CORSMiddleware, allow_origins=job.origins, **how))
    handlers: Any = {HTTPException: _refused, SettingsError: _refused, ValidationError: _invalid}
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    app.router.redirect_slashes = False  # a redirection would lead to whatever host the request names
    app.state.about = f"{service.name} ({service.model.dimension} components)"
    gc.collect()
    gc.freeze()  # with torch, a collection of all that is loaded would stop all requests for 0.4 s
    return app


def build_worker() -> Starlette:
    """The application of a worker process, which ends with its parent."""

    def follow() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()
    return build(TypeAdapter(schemas.Job).validate_json(os.environ[VARIABLE]))


def serve(job: schemas.Job) -> None:
    """Open model and index, announce the address, and answer requests until SIGINT or SIGTERM.

    A client may connect from the announcement on, and is answered as soon as the workers have started.
    """
    app = build(job)  # also for several workers, so that what cannot be served is refused once and in a line
    about = app.state.about
    try:
        family = socket.AF_INET6 if ":" in job.host else socket.AF_INET
        listening = socket.create_server((job.host, job.port), family=family, backlog=1024)
    except OSError as error:
        seen = f"cannot listen on {job.host}, port {job.port} ({error.strerror or error})"
        raise SettingsError(f"{seen}; choose another --host or --port") from error
    with listening, tempfile.TemporaryDirectory(prefix="st_paragram-metrics-") as counts:
        # Connections inherit it. asyncio sets it only for sockets of `getaddrinfo`; small answers would wait for 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = listening.getsockname()[:2]
        sys.stdout.write(f"{about} answers at http://{f'[{host}]' if ':' in host else host}:{port} until Ctrl-C.\n")
        sys.stdout.flush()
        config = Config(
            app if job.workers == 1 else "st_paragram.tools.serving.app:build_worker",
            factory=job.workers > 1,
            workers=job.workers,
            http="httptools",
            loop="asyncio",  # under load, uvloop keeps new connections waiting for seconds
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=job.stop_seconds,
            timeout_worker_healthcheck=60,  # a worker may be deaf for a while, as when it imports torch
        )
        with suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has stopped
            if job.workers == 1:
                Server(config).run([listening])
            else:
                del app
                os.environ[VARIABLE] = TypeAdapter(schemas.Job).dump_json(job).decode()
                os.environ["PROMETHEUS_MULTIPROC_DIR"] = counts
                Multiprocess(config, [listening]).run()


class Guard:
    """Checks the key, counts, and answers what fails: the log gets no message of an error, which may hold a text."""

    def __init__(self, app: ASGIApp, key: str | None, paths: set[str]) -> None:
        self.app, self.key, self.paths = app, key and key.encode(), paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began, path, status = time.perf_counter(), scope["path"], 0

        async def counted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            if path in _OPEN or self._knows_key(scope):
                await self.app(scope, receive, counted)
            else:
                advice = "a key is needed; send it as Authorization: Bearer KEY"
                await _refusal(401, advice, headers={"WWW-Authenticate": "Bearer"})(scope, receive, counted)
        except ClientDisconnect:
            return
        except Exception as error:
            frames = reversed(extract_tb(error.__traceback__)[-4:])
            places = ", ".join(f"{Path(each.filename).name}:{each.lineno} ({each.name})" for each in frames)
            logger.error("a request failed: %s at %s", type(error).__name__, places)
            if not status:
                await _refusal(500, "the server failed; its log has the kind of error")(scope, receive, counted)
        name = path if path in self.paths else "other"
        REQUESTS.labels(name, status).inc()
        LATENCY.labels(name).observe(time.perf_counter() - began)

    def _knows_key(self, scope: Scope) -> bool:
        scheme, _, given = dict(scope["headers"]).get(b"authorization", b"").partition(b" ")
        return self.key is None or (scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), self.key))


class _Service:
    """What answers requests."""

    def __init__(self, job: schemas.Job) -> None:
        folder = find(job.model)
        self.job, self.model, self.index, self.changing = job, Model(folder), None, Lock()
        self.name = job.name or job.model.partition("@")[0].rstrip("/").rpartition("/")[2]
        self.encode = Batcher(self.model, self.model.short, job.batch_texts, job.max_waiting, BATCHES.observe)
        if job.index is not None:
            from st_paragram.tools.search.index import SearchIndex

            self.index = SearchIndex(job.index, folder)
            self.index.encoder = self.model.encoder

    def reading(self, schema: Any, answer: Any) -> Any:  # noqa: ANN401
        """The endpoint that reads the body of a request, and has it answered."""
        most = int(self.job.max_body)

        async def endpoint(request: Request) -> Response:
            if not request.headers.get("content-type", "").lower().startswith("application/json"):
                # Without this header, any page in a browser could send requests here.
                raise HTTPException(400, "the body is read with the header Content-Type: application/json; send it")
            body = bytearray()
            too_large = HTTPException(413, f"the body is larger than {most} bytes", {"Connection": "close"})
            if int(request.headers.get("content-length", 0)) > most:
                raise too_large
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise too_large
            asked = schema.model_validate_json(body)
            self._check_model(asked.model)
            return await answer(asked)

        return endpoint

    async def embeddings(self, asked: schemas.Embeddings) -> Response:
        self._check(asked.input, "input", asked.dimensions)
        found = await self.encode(asked.input, asked.input_type)
        rows: Any = _unit(found.rows, asked.dimensions)
        if asked.encoding_format == "base64":
            rows = [b2a_base64(row.astype("<f4", copy=False), newline=False).decode() for row in rows]
        data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
        return _json({"object": "list", "data": data, "model": self.name, "usage": _usage(found.tokens)})

    async def embed(self, asked: schemas.Embed) -> Response:
        texts = asked.cut(asked.inputs, self.job.max_characters)
        self._check(texts, "inputs", asked.dimensions)
        rows = (await self.encode(texts)).rows
        return _json(_unit(rows, asked.dimensions) if asked.normalize else rows[:, : asked.dimensions])

    async def rerank(self, asked: schemas.Rerank) -> Response:
        name, texts = ("documents", asked.documents or []) if asked.texts is None else ("texts", asked.texts)
        query, *cut = asked.cut([asked.query, *texts], self.job.max_characters)
        self._check([query], "query")
        self._check(cut, name)
        first, rest = await self.encode([query], "query"), await self.encode(cut, "document")
        scores = (_unit(rest.rows) @ _unit(first.rows)[0]).astype(np.float64)
        if asked.texts is not None and not asked.raw_scores:
            scores = (1 + scores) / 2
        scores = scores.round(6)  # sums differ in their last digits with the place of a row
        order = np.argsort(-scores, kind="stable")[: asked.top_n].tolist()
        is_tei, shown = asked.texts is not None, list[dict[str, Any]]([{}] * len(texts))
        if asked.return_text if is_tei else asked.return_documents:
            shown = [{"text": text} if is_tei else {"document": {"text": text}} for text in texts]
        if is_tei:
            return _json([{"index": n, "score": scores[n]} | shown[n] for n in order])
        results = [{"index": n, "relevance_score": scores[n]} | shown[n] for n in order]
        return _json({"model": self.name, "results": results, "usage": _usage(first.tokens, rest.tokens)})

    async def score(self, asked: schemas.Score) -> Response:
        texts = [text for pair in asked.pairs for text in pair]
        self._check(texts, "pairs")
        rows = _unit((await self.encode(texts)).rows)
        cosines = np.einsum("nd,nd->n", rows[::2], rows[1::2], dtype=np.float64)
        return _json({"model": self.name, "scores": cosines.round(6)})

    async def search(self, asked: schemas.Search) -> Response:
        index = self._index()
        self._check(asked.queries, "queries")
        if asked.k > self.job.max_hits:
            raise HTTPException(400, f"k is {asked.k}; at most {self.job.max_hits} are allowed")
        rows = (await self.encode(asked.queries, "query" if index.answers else "sentence")).rows
        if len(unknown := np.flatnonzero(~rows.any(1))):
            raise HTTPException(400, f"text {unknown[0]} of queries has nothing that {self.name} knows")
        found = await to_thread(index.search_vectors, rows, asked.k, asked.threshold, asked.where)
        return _json({"model": self.name, "results": [[hit._asdict() for hit in hits] for hits in found]})

    async def add(self, asked: schemas.Add) -> Response:
        index = self._index(writable=True)
        self._check(asked.sentences, "sentences")
        async with self.changing:
            added = await to_thread(index.add, asked.sentences, asked.metadata)
        return _json({"added": added, "sentences": await to_thread(len, index)})

    async def delete(self, asked: schemas.Delete) -> Response:
        index = self._index(writable=True)
        async with self.changing:
            deleted = await to_thread(index.delete, asked.where, asked.sentences, asked.lines)
        return _json({"deleted": deleted, "sentences": await to_thread(len, index)})

    async def about_index(self, _: Request) -> Response:
        index = self._index()
        sentences, fields = await to_thread(lambda: (len(index), index.fields))
        return _json({"sentences": sentences, "fields": fields, "writable": self.job.index_writable})

    async def models(self, request: Request) -> Response:
        about = {"id": self.name, "object": "model", "created": 0, "owned_by": "st_paragram"}
        name = request.path_params.get("name")
        self._check_model(name)
        return _json(about if name else {"object": "list", "data": [about]})

    async def info(self, _: Request) -> Response:
        """As text-embeddings-inference; but `max_input_length` counts characters."""
        about: dict[str, Any] = {"model_id": self.name, "model_sha": None, "model_dtype": "float32"}
        about |= {"model_type": {"embedding": {"pooling": "mean"}}, "auto_truncate": False}
        limits = {"max_input_length": self.job.max_characters, "max_client_batch_size": self.job.max_texts}
        limits |= {"max_batch_requests": self.job.batch_texts, "max_concurrent_requests": self.job.max_waiting}
        return _json(about | limits | {"version": installed_version()})

    async def health(self, _: Request) -> Response:
        sentences = None if self.index is None else await to_thread(len, self.index)
        return _json({"status": "ok", "model": self.name, "dimensions": self.model.dimension, "sentences": sentences})

    async def start_page(self, request: Request) -> Response:
        key = ' -H "Authorization: Bearer $KEY"' if self.job.key else ""
        body = orjson.dumps({"model": self.name, "input": ["Where is the station?"]}).decode()
        curl = f"curl {request.base_url}v1/embeddings -H 'Content-Type: application/json'{key} -d '{body}'"
        paths = "".join(f"<li>{escape(route.path)}" for route in request.app.routes)
        page = f"<!DOCTYPE html><title>{escape(self.name)}</title><h1>{escape(self.name)}</h1>"
        page += f"<p>Sentence embeddings of {self.model.dimension} components, served by st_paragram."
        return HTMLResponse(f"{page}<pre>{escape(curl)}</pre><ul>{paths}</ul>")

    def _check_model(self, name: str | None) -> None:
        if name not in (None, self.name):
            raise HTTPException(404, f"this server has one model, {self.name}")

    def _check(self, texts: list[str], name: str, dimensions: int | None = None) -> None:
        """Refuse no text, too many, empty and too long ones, and more components than there are."""
        if not 1 <= len(texts) <= self.job.max_texts:
            raise HTTPException(400, f"{name} has {len(texts)} texts; give 1 to {self.job.max_texts}")
        for number, text in enumerate(texts):
            if not text.strip():
                raise HTTPException(400, f"text {number} of {name} is empty")
            if len(text) > (most := self.job.max_characters):
                raise HTTPException(
                    400, f"text {number} of {name} has {len(text)} characters; at most {most} are allowed"
                )
        if dimensions is not None and dimensions > (known := self.model.dimension):
            raise HTTPException(400, f"dimensions is {dimensions}; {self.name} has {known} components")

    def _index(self, writable: bool = False) -> Any:  # noqa: ANN401
        if self.index is None:
            raise HTTPException(404, "this server has no index; start it with --index")
        if writable and not self.job.index_writable:
            raise HTTPException(403, "the index cannot be changed through this server; start it with --index-writable")
        return self.index


def _unit(rows: Rows, dimensions: int | None = None) -> Rows:
    """The first components of rows at length 1; a row of zeros stays as it is."""
    rows = rows[:, :dimensions]
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-30))


def _usage(*tokens: NDArray[np.int64]) -> dict[str, int]:
    total = sum(int(each.sum()) for each in tokens)
    return {"prompt_tokens": total, "total_tokens": total}


def _json(value: object, status: int = 200, headers: Any = None) -> Response:  # noqa: ANN401
    """A value, possibly with arrays, as JSON."""
    content = orjson.dumps(value, np.ascontiguousarray, orjson.OPT_SERIALIZE_NUMPY)
    return Response(content, status, headers, "application/json")


def _refusal(status: int, message: str, field: str | None = None, headers: Any = None) -> Response:  # noqa: ANN401
    """An error in the form that OpenAI's clients expect."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 503: "server_busy"}
    kind = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    return _json({"error": {"message": message, "type": kind, "param": field, "code": None}}, status, headers)


async def _refused(_: Request, error: Any) -> Response:  # noqa: ANN401
    if isinstance(error, SettingsError):
        return _refusal(400, str(error))
    return _refusal(error.status_code, error.detail, headers=error.headers)


async def _invalid(_: Request, error: Any) -> Response:  # noqa: ANN401
    """The first mistake that pydantic found, with its place, such as pairs[1][0]; never with the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = "".join([*map(str, first["loc"][:1]), *(f"[{part}]" for part in first["loc"][1:] if isinstance(part, int))])
    message = first["msg"].removeprefix("Value error, ")
    return _refusal(400, f"{field}: {message}" if field else message, field or None)


async def _metrics(_: Request) -> Response:
    registry = prometheus.REGISTRY
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        MultiProcessCollector(registry := prometheus.CollectorRegistry())
    return Response(prometheus.generate_latest(registry), media_type=prometheus.CONTENT_TYPE_LATEST)
