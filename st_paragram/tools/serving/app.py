"""A server for one model, and optionally an index, with the APIs of OpenAI, Cohere, Jina and
Hugging Face.
"""

from __future__ import annotations

import asyncio
import gc
import hmac
import logging
import os
import socket
import sys
import tempfile
import threading
import time
from binascii import b2a_base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb
from typing import Any
from unicodedata import category

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
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config, Server

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.encoding.models import batch_size, load_encoder
from st_paragram.core.encoding.unit_embeddings import known_embeddings, scaled
from st_paragram.core.extras import installed_version
from st_paragram.core.model_directory.find import find
from st_paragram.core.text.words import has_two_letters
from st_paragram.errors import ParagramError, SettingsError, one_line
from st_paragram.tools.serving import schemas
from st_paragram.tools.serving.batching import BATCH_TEXTS, MAX_WAITING, Batcher, Encoded, Rows
from st_paragram.tools.serving.protocol import LimitedProtocol
from st_paragram.tools.serving.workers import FAILURE, Workers
from st_paragram.tools.work import end_with_parent

VARIABLE = "ST_PARAGRAM_SERVE"  # environment variable with the settings for a worker process
# environment variable with the folder for counters of all worker processes
_COUNTS = "PROMETHEUS_MULTIPROC_DIR"
SEARCH_SECONDS = 30.0  # until a search is given up
MAX_SEARCHES = 8  # at the same time
_METHODS: dict[schemas.Kind, str] = {
    "sentence": "encode",
    "query": "encode_query",
    "document": "encode_document",
}
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
REQUESTS = prometheus.Counter("st_paragram_requests", "Requests answered", ["path", "status"])
LATENCY = prometheus.Histogram(
    "st_paragram_request_seconds", "Time to the answer", ["path"], buckets=_SECONDS
)
logger = logging.getLogger(__name__)


def build(job: schemas.Job) -> Starlette:
    """Build the application; `state.about` describes what it serves."""
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
        "/v1/models": service.models,
        "/v1/models/{name:path}": service.models,
        "/info": service.info,
        "/health": service.health,
        "/metrics": _metrics,
        "/index": service.about_index,
    }
    routes = [
        Route(path, service.reading(*each), methods=["POST"]) for path, each in posted.items()
    ]
    routes += [Route(path, page) for path, page in pages.items()]
    middleware = [Middleware(Guard, key=job.key, paths={*posted, *pages})]
    if job.origins:
        how: Any = {
            "allow_methods": ["GET", "HEAD", "POST"],
            "allow_headers": ["*"],
            "expose_headers": ["Retry-After"],
        }
        middleware.insert(0, Middleware(CORSMiddleware, allow_origins=job.origins, **how))
    handlers: Any = dict.fromkeys((HTTPException, SettingsError, ValidationError), _refused)
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)
    app.router.redirect_slashes = False  # a redirect would lead to any host that the request names
    app.state.about = f"{service.name} ({service.dimension} dimensions)"
    gc.collect()
    # with torch, a garbage collection of all loaded objects would stop all requests for 0.4 s
    gc.freeze()
    return app


def build_worker() -> Starlette:
    """Build the application of a worker process, which ends with its parent."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        return build(TypeAdapter(schemas.Job).validate_json(os.environ[VARIABLE]))
    except Exception as error:  # any error; the parent reports it in one line
        reason = (
            str(error)
            if isinstance(error, ParagramError)
            else f"{type(error).__name__}: {one_line(error)}"
        )
        Path(os.environ[_COUNTS], FAILURE).write_text(reason, encoding="utf-8")
        raise SystemExit(1) from None


def serve(job: schemas.Job) -> None:
    """Open model and index, print the address, and answer requests until SIGINT or SIGTERM.

    The address is printed when clients are answered: with several workers, when all of them have
    started.
    """
    app = build(job)  # also for several workers, so that errors are reported once, in one line
    try:
        family = socket.AF_INET6 if ":" in job.host else socket.AF_INET
        listening = socket.create_server((job.host, job.port), family=family, backlog=1024)
    except OSError as error:
        seen = f"cannot listen on {job.host}, port {job.port} ({error.strerror or error})"
        raise SettingsError(f"{seen}; choose another --host or --port") from error
    with listening, tempfile.TemporaryDirectory(prefix="st_paragram-metrics-") as counts:
        # Inherited by connections. asyncio sets it only for sockets of `getaddrinfo`; small answers
        # would take 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        about = f"Serving {app.state.about} at {address} until Ctrl-C.\n"

        def started() -> None:
            sys.stdout.write(about)
            sys.stdout.flush()

        config = Config(
            app if job.workers == 1 else "st_paragram.tools.serving.app:build_worker",
            factory=job.workers > 1,
            workers=job.workers,
            http=LimitedProtocol,
            loop="asyncio",  # under load, uvloop keeps new connections waiting for seconds
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=30,
            # a worker may not respond for a while, for example when it imports torch
            timeout_worker_healthcheck=60,
        )
        with suppress(KeyboardInterrupt):  # uvicorn raises the signal again when it has stopped
            if job.workers == 1:
                started()
                Server(config).run([listening])
                return
            del app
            os.environ[VARIABLE] = TypeAdapter(schemas.Job).dump_json(job).decode()
            os.environ[_COUNTS] = counts
            workers = Workers(config, [listening], Path(counts), started)
            workers.run()
            if workers.failure:
                raise SettingsError(f"a worker process cannot start: {workers.failure}")


class Guard:
    """Checks the key, counts requests, and answers errors, without logging messages, which may
    contain texts.
    """

    def __init__(self, app: ASGIApp, key: str | None, paths: set[str]) -> None:
        self.app, self.key, self.paths = app, key and key.encode(), paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        began, path, status = time.perf_counter(), scope["path"], 0
        name = path if path in self.paths else "other"

        async def counted(message: Message) -> None:
            nonlocal status
            # before the client gets the answer, so that its own request is already counted
            if "status" in message:
                status = message["status"]
                REQUESTS.labels(name, status).inc()
                LATENCY.labels(name).observe(time.perf_counter() - began)
            await send(message)

        try:
            problem = None if path == "/health" else self._problem_with_key(scope)
            if problem is None:
                await self.app(scope, receive, counted)
            else:
                refusal = _refusal(
                    401,
                    f"{problem} Authorization: Bearer KEY",
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, counted)
        except ClientDisconnect:
            return
        except Exception as error:
            frames = reversed(extract_tb(error.__traceback__)[-4:])
            places = ", ".join(
                f"{Path(each.filename).name}:{each.lineno} ({each.name})" for each in frames
            )
            logger.error("a request failed: %s at %s", type(error).__name__, places)
            if not status:
                await _refusal(500, "the server failed; its log shows the type of error")(
                    scope, receive, counted
                )

    def _problem_with_key(self, scope: Scope) -> str | None:
        """Return the beginning of an error if a request does not have the key."""
        if not self.key:
            return None
        header = dict(scope["headers"]).get(b"authorization")
        if header is None:
            return "a key is needed; send it as"
        scheme, _, key = header.partition(b" ")
        if scheme.lower() != b"bearer":
            return "the header Authorization has another form; send the key as"
        if not hmac.compare_digest(key.strip(), self.key):
            return "the key is wrong; send the key of this server as"
        return None


class _Counter(threading.local):
    """A tokenizer that counts the tokens of each text for `usage`, so that no text is tokenized
    twice.

    Each thread has separate counts.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._encode = tokenizer.encode_rows
        self._counts = list[NDArray[np.int64]]()

    def encode_rows(self, texts: list[str], max_length: int | None, threads: int) -> Any:
        ids, offsets = self._encode(texts, max_length, threads)
        self._counts.append(np.diff(offsets))
        return ids, offsets

    def begin(self) -> None:
        """Forget earlier texts, such as those of a request that failed."""
        self._counts = []

    def counts(self) -> NDArray[np.int64]:
        """Return the numbers of tokens of the n texts since `begin`, (n,)."""
        return np.concatenate(self._counts)


class _Service:
    """The endpoints of the server."""

    def __init__(self, job: schemas.Job) -> None:
        folder = find(job.model)
        self.job, self.changing = job, asyncio.Lock()
        self.index: Any = None
        self.encoder: Any = load_encoder(folder)
        self.dimension, self.batch_size = (
            self.encoder.get_embedding_dimension() or 0,
            batch_size(self.encoder),
        )
        self.name = job.name or job.model.partition("@")[0].rstrip("/").rpartition("/")[2]
        self.model, self.counter, short = self.encoder, None, 0
        if isinstance(self.encoder, Encoder):
            # characters, about half a millisecond
            self.counter, short = _Counter(self.encoder.tokenizer), 4096
            counted: Any = self.counter
            self.model = Encoder(
                replace(self.encoder.model, tokenizer=counted), None, self.encoder.num_threads
            )
        self.encode = Batcher(self._encode, short)
        self.searches = ThreadPoolExecutor(MAX_SEARCHES)
        if job.index is not None:
            from st_paragram.tools.search.index import SearchIndex

            self.index = SearchIndex(job.index, folder)
            self.index.encoder = self.encoder

    def reading(self, schema: Any, answer: Any) -> Any:
        """Make an endpoint that parses the body of a request and calls `answer`."""

        async def endpoint(request: Request) -> Response:
            if not request.headers.get("content-type", "").lower().startswith("application/json"):
                # If this header were optional, any web page could send requests here.
                raise HTTPException(
                    400, "the header Content-Type: application/json is missing; send it"
                )
            body = bytearray()
            async for part in request.stream():
                body += part
                if len(body) > (most := int(self.job.max_body)):
                    raise HTTPException(
                        413, f"the body is larger than {most} bytes", {"Connection": "close"}
                    )
            asked = schema.model_validate_json(body)
            self._check_model(asked.model)
            return await answer(asked)

        return endpoint

    async def embeddings(self, asked: schemas.Embeddings) -> Response:
        self._check_dimensions(asked.dimensions)
        texts = self._texts(asked.input, "input")
        found = self._known(await self.encode(texts, asked.input_type), texts, "input")
        rows: Any = _cut(found.units, asked.dimensions, "input")
        if asked.encoding_format == "base64":
            rows = [
                b2a_base64(row.astype("<f4", copy=False), newline=False).decode() for row in rows
            ]
        data = [
            {"object": "embedding", "index": number, "embedding": row}
            for number, row in enumerate(rows)
        ]
        usage = dict.fromkeys(("prompt_tokens", "total_tokens"), int(found.tokens.sum()))
        return _json({"object": "list", "data": data, "model": self.name, "usage": usage})

    async def embed(self, asked: schemas.Embed) -> Response:
        self._check_dimensions(asked.dimensions)
        texts = self._texts(asked.inputs, "inputs", asked.truncate)
        found = self._known(await self.encode(texts), texts, "inputs")
        if not asked.normalize:
            return _json(found.rows[:, : asked.dimensions])
        return _json(_cut(found.units, asked.dimensions, "inputs"))

    async def rerank(self, asked: schemas.Rerank) -> Response:
        is_tei = asked.texts is not None
        texts = asked.texts if asked.texts is not None else asked.documents or []
        field = "texts" if is_tei else "documents"
        query = self._texts([asked.query], "query", asked.truncate)
        cut = self._texts(texts, field, asked.truncate)
        first = self._known(await self.encode(query, "query"), query, "query")
        rest = self._known(await self.encode(cut, "document"), cut, field)
        scores = (rest.units @ first.units[0]).astype(np.float64)
        # equal rows score equally
        scores = ((1 + scores) / 2 if is_tei and not asked.raw_scores else scores).round(6)
        results, score = list[dict[str, Any]](), "score" if is_tei else "relevance_score"
        for number in np.argsort(-scores, kind="stable")[: asked.top_n].tolist():
            results.append({"index": number, score: scores[number]})
            if is_tei and asked.return_text:
                results[-1]["text"] = texts[number]
            elif asked.return_documents:
                results[-1]["document"] = {"text": texts[number]}
        return _json(results if is_tei else {"model": self.name, "results": results})

    async def score(self, asked: schemas.Score) -> Response:
        texts = self._texts([text for pair in asked.pairs for text in pair], "pairs")
        rows = self._known(await self.encode(texts), texts, "pairs").units
        cosines = np.einsum("nd,nd->n", rows[::2], rows[1::2], dtype=np.float64)
        return _json({"model": self.name, "scores": cosines.round(6)})

    async def search(self, asked: schemas.Search) -> Response:
        index, queries = self._index(), self._texts(asked.queries, "queries")
        k = min(10, self.job.max_hits) if asked.k is None else asked.k
        if k > self.job.max_hits:
            raise HTTPException(400, f"k is {k}; at most {self.job.max_hits} are allowed")
        encoded = await self.encode(queries, "query" if index.answers else "sentence")
        rows = self._known(encoded, queries, "queries").units
        end = time.monotonic() + SEARCH_SECONDS

        def search() -> Response:
            seconds = end - time.monotonic()
            results = index.search_vectors(
                rows, k, asked.threshold, asked.where, recall=self.job.recall, seconds=seconds
            )
            return _json(
                {
                    "model": self.name,
                    "results": [[hit._asdict() for hit in hits] for hits in results],
                }
            )

        with self.encode.counted(len(queries)):
            try:
                answer = asyncio.get_running_loop().run_in_executor(self.searches, search)
                return await asyncio.wait_for(answer, SEARCH_SECONDS)
            # the second is another class in Python 3.10
            except (TimeoutError, asyncio.TimeoutError):
                advice = "send fewer queries or a simpler condition"
                raise HTTPException(
                    504, f"the search took longer than {SEARCH_SECONDS:.0f} seconds; {advice}"
                ) from None

    async def add(self, asked: schemas.Add) -> Response:
        index = self._index(writable=True)
        sentences = self._texts(asked.sentences, "sentences")
        for number, sentence in enumerate(sentences):
            if not has_two_letters(sentence):
                raise HTTPException(
                    400, f"text {number} of sentences has fewer than two letters or digits"
                )
        self._known(
            await self.encode(sentences, "document" if index.answers else "sentence"),
            sentences,
            "sentences",
        )
        return await self._changed(
            "added", len(sentences), lambda: index.add(sentences, asked.metadata)
        )

    async def delete(self, asked: schemas.Delete) -> Response:
        index = self._index(writable=True)
        texts = len(asked.sentences or ())
        return await self._changed(
            "deleted", texts, lambda: index.delete(asked.where, asked.sentences, asked.lines)
        )

    async def _changed(self, name: str, texts: int, change: Callable[[], int]) -> Response:
        with self.encode.counted(texts):
            async with self.changing:
                count = await asyncio.to_thread(change)
                return _json({name: count, "sentences": await asyncio.to_thread(len, self.index)})

    async def about_index(self, _: Request) -> Response:
        index = self._index()
        sentences, fields = await asyncio.to_thread(lambda: (len(index), index.fields))
        return _json(
            {"sentences": sentences, "fields": fields, "writable": self.job.index_writable}
        )

    async def models(self, request: Request) -> Response:
        about = {"id": self.name, "object": "model", "created": 0, "owned_by": "st_paragram"}
        name = request.path_params.get("name")
        self._check_model(name)
        return _json(about if name else {"object": "list", "data": [about]})

    async def info(self, _: Request) -> Response:
        """Answer like text-embeddings-inference, except that `max_input_length` counts characters."""
        about: dict[str, Any] = {"model_id": self.name, "model_sha": None, "model_dtype": "float32"}
        about |= {"model_type": {"embedding": {"pooling": "mean"}}, "auto_truncate": False}
        limits = {
            "max_input_length": self.job.max_characters,
            "max_client_batch_size": self.job.max_texts,
        }
        limits |= {"max_batch_requests": BATCH_TEXTS, "max_concurrent_requests": MAX_WAITING}
        return _json(about | limits | {"version": installed_version()})

    async def health(self, _: Request) -> Response:
        sentences = None if self.index is None else await asyncio.to_thread(len, self.index)
        return _json(
            {
                "status": "ok",
                "model": self.name,
                "dimensions": self.dimension,
                "sentences": sentences,
            }
        )

    def _encode(self, texts: list[str], kind: schemas.Kind) -> Encoded:
        encode = getattr(self.model, _METHODS[kind])
        if self.counter:
            self.counter.begin()
        rows = np.asarray(
            encode(texts, batch_size=self.batch_size, show_progress_bar=False), np.float32
        )
        tokens = self.counter.counts() if self.counter else self._tokens(texts)
        known = known_embeddings(self.encoder, texts, rows, method=_METHODS[kind])
        return Encoded(rows, scaled(rows, known).vectors, known, tokens)

    def _tokens(self, texts: list[str]) -> NDArray[np.int64]:
        """Return the numbers of tokens of texts, (n,); this takes little time compared with a
        network.
        """
        features = self.encoder.preprocess(texts)
        mask = features.get("attention_mask")
        return np.asarray(features["cu_seq_lens_q"].diff() if mask is None else mask.sum(1))

    def _known(self, found: Encoded, texts: list[str], name: str) -> Encoded:
        """Return the embeddings of the texts of a field; refuse a text without a known token."""
        if not found.known.all():
            number = int(np.argmin(found.known))
            # spaces and invisible characters
            is_empty = all(category(sign)[0] in "CZ" for sign in texts[number])
            reason = "is empty" if is_empty else f"has no token that {self.name} knows"
            raise HTTPException(400, f"{_place(number, name)} {reason}")
        return found

    def _check_model(self, name: str | None) -> None:
        if name not in (None, self.name):
            raise HTTPException(404, f"this server has only the model {self.name}")

    def _check_dimensions(self, dimensions: int | None) -> None:
        if dimensions is not None and dimensions > (known := self.dimension):
            raise HTTPException(
                400, f"dimensions is {dimensions}; {self.name} has {known} dimensions"
            )

    def _texts(self, texts: list[str], name: str, truncate: bool | None = False) -> list[str]:
        """Return the texts of a field, truncated on request; refuse empty or long texts, and too
        few or too many.
        """
        if not 1 <= len(texts) <= self.job.max_texts:
            raise HTTPException(
                400, f"{name} has {len(texts)} texts; give 1 to {self.job.max_texts}"
            )
        most = self.job.max_characters
        texts = [text[:most] for text in texts] if truncate else texts
        for number, text in enumerate(texts):
            if not text.strip():
                raise HTTPException(400, f"{_place(number, name)} is empty")
            if len(text) > most:
                seen = f"{_place(number, name)} has {len(text)} characters"
                raise HTTPException(400, f"{seen}; at most {most} are allowed")
        return texts

    def _index(self, writable: bool = False) -> Any:
        if self.index is None:
            raise HTTPException(404, "this server has no index; start it with --index")
        if writable and not self.job.index_writable:
            raise HTTPException(
                403,
                "the index cannot be changed through this server; start it with --index-writable",
            )
        return self.index


def _place(number: int, name: str) -> str:
    """Name a text of a field, whose pairs have been written one after another."""
    return (
        f"text {number % 2} of pairs[{number // 2}]"
        if name == "pairs"
        else f"text {number} of {name}"
    )


def _cut(units: Rows, dimensions: int | None, name: str) -> Rows:
    """Keep the first dimensions of rows of length 1, and scale them to length 1 again."""
    if dimensions is None:
        return units
    rows = units[:, :dimensions]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not lengths.all():
        number = int(np.argmin(lengths))
        raise HTTPException(
            400,
            f"{_place(number, name)} is zero in {dimensions} dimensions; ask for more dimensions",
        )
    return rows / lengths


def _json(value: object, status: int = 200, headers: Any = None) -> Response:
    """Return a value, possibly with arrays, as JSON."""
    content = orjson.dumps(value, np.ascontiguousarray, orjson.OPT_SERIALIZE_NUMPY)
    return Response(content, status, headers, "application/json")


def _refusal(status: int, message: str, field: str | None = None, headers: Any = None) -> Response:
    """Answer with an error."""
    return _json(schemas.error_of(status, message, field), status, headers)


async def _refused(_: Request, error: Any) -> Response:
    if isinstance(error, HTTPException):
        return _refusal(error.status_code, error.detail, headers=error.headers)
    if isinstance(error, SettingsError):
        return _refusal(400, str(error))
    # The first error found by pydantic, with its place, such as pairs[1][0], but never with the
    # value.
    first = error.errors(include_url=False, include_input=False)[0]
    field = "".join(
        [
            *map(str, first["loc"][:1]),
            *(f"[{part}]" for part in first["loc"][1:] if isinstance(part, int)),
        ]
    )
    message = first["msg"].removeprefix("Value error, ")
    return _refusal(400, f"{field}: {message}" if field else message, field or None)


async def _metrics(_: Request) -> Response:
    registry = prometheus.REGISTRY
    if _COUNTS in os.environ:
        MultiProcessCollector(registry := prometheus.CollectorRegistry())
    return Response(prometheus.generate_latest(registry), media_type=prometheus.CONTENT_TYPE_LATEST)
