"""Endpoints of the model and of the index."""

from __future__ import annotations

import asyncio
import time
from binascii import b2a_base64
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from st_paragram.core.extras import installed_version
from st_paragram.core.text.words import has_two_letters
from st_paragram.tools.serving import schemas
from st_paragram.tools.serving.answers import json_answer
from st_paragram.tools.serving.batching import BATCH_TEXTS, MAX_WAITING, Rows
from st_paragram.tools.serving.model import ServedModel, place_of

SEARCH_SECONDS = 30.0  # until a search is given up
MAX_SEARCHES = 8  # at the same time
_HITS = 10  # by default


class ModelEndpoints:
    """The endpoints of the model."""

    def __init__(self, model: ServedModel, job: schemas.Job) -> None:
        self.model = model
        self.job = job

    async def embeddings(self, body: schemas.Embeddings) -> Response:
        """Answer like OpenAI."""
        self.model.check_dimensions(body.dimensions)
        encoded = await self.model.embed(body.input, "input", body, kind=body.input_type)
        data = []
        for number, row in enumerate(_cut(encoded.units, body.dimensions, "input")):
            embedding: Any = row
            if body.encoding_format == "base64":
                content = row.astype("<f4", copy=False)
                embedding = b2a_base64(content, newline=False).decode()
            data.append({"object": "embedding", "index": number, "embedding": embedding})
        tokens = int(encoded.tokens.sum())
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        answer = {"object": "list", "data": data, "model": self.model.name, "usage": usage}
        return json_answer(answer)

    async def embed(self, body: schemas.Embed) -> Response:
        """Answer like text-embeddings-inference."""
        self.model.check_dimensions(body.dimensions)
        encoded = await self.model.embed(body.inputs, "inputs", body)
        if not body.normalize:
            return json_answer(encoded.rows[:, : body.dimensions])
        return json_answer(_cut(encoded.units, body.dimensions, "inputs"))

    async def similarity(self, body: schemas.Similarity) -> Response:
        """Answer with cosines, like text-embeddings-inference."""
        texts = [body.inputs.source_sentence]
        source = await self.model.embed(texts, "source_sentence", body.parameters)
        sentences = await self.model.embed(body.inputs.sentences, "sentences", body.parameters)
        return json_answer((sentences.units @ source.units[0]).astype(np.float64).round(6))

    async def tokenize(self, body: schemas.Tokenize) -> Response:
        """Answer with the tokens of each text, like text-embeddings-inference."""
        with self.model.batcher.counted(len(body.inputs)):
            tokens = await asyncio.to_thread(self.model.tokens, body.inputs, body.prompt_name)
        return json_answer(tokens)

    async def rerank(self, body: schemas.Rerank) -> Response:
        """Answer in the form of text-embeddings-inference if the request has `texts`."""
        is_tei = body.texts is not None
        field = "texts" if is_tei else "documents"
        texts = body.texts if body.texts is not None else body.documents or []
        options = schemas.Options(truncate=body.truncate)
        query = await self.model.embed([body.query], "query", options, kind="query")
        documents = await self.model.embed(texts, field, options, kind="document")
        scores = (documents.units @ query.units[0]).astype(np.float64)
        if is_tei and not body.raw_scores:
            scores = (1 + scores) / 2
        scores = scores.round(6)  # equal rows score equally
        order = np.argsort(-scores, kind="stable")[: body.top_n]
        results = list[dict[str, Any]]()
        for number in order.tolist():
            result: dict[str, Any] = {"index": number}
            result["score" if is_tei else "relevance_score"] = scores[number]
            if is_tei and body.return_text:
                result["text"] = texts[number]
            elif body.return_documents:
                result["document"] = {"text": texts[number]}
            results.append(result)
        return json_answer(results if is_tei else {"model": self.model.name, "results": results})

    async def score(self, body: schemas.Score) -> Response:
        """Answer with the cosine of each pair."""
        texts = [text for pair in body.pairs for text in pair]
        encoded = await self.model.embed(texts, "pairs")
        first = encoded.units[::2]
        second = encoded.units[1::2]
        cosines = np.einsum("nd,nd->n", first, second, dtype=np.float64)
        return json_answer({"model": self.model.name, "scores": cosines.round(6)})

    async def models(self, request: Request) -> Response:
        """Answer with the model, like OpenAI."""
        model = {"id": self.model.name, "object": "model", "created": 0, "owned_by": "st_paragram"}
        name = request.path_params.get("name")
        self.model.check_name(name)
        return json_answer(model if name else {"object": "list", "data": [model]})

    async def info(self, _: Request) -> Response:
        """Answer like text-embeddings-inference; here, `max_input_length` counts characters."""
        answer = {
            "model_id": self.model.name,
            "model_sha": None,
            "model_dtype": "float32",
            "model_type": {"embedding": {"pooling": "mean"}},
            "auto_truncate": self.job.truncate,
            "max_input_length": self.job.max_characters,
            "max_client_batch_size": self.job.max_texts,
            "max_batch_requests": BATCH_TEXTS,
            "max_concurrent_requests": MAX_WAITING,
            "version": installed_version(),
        }
        return json_answer(answer)


class IndexEndpoints:
    """The endpoints of the index."""

    def __init__(self, model: ServedModel, job: schemas.Job) -> None:
        """Open the index, if there is one."""
        self.model = model
        self.job = job
        self.index: Any = None
        self._changing = asyncio.Lock()
        self._searches = ThreadPoolExecutor(MAX_SEARCHES)
        if job.index is not None:
            from st_paragram.tools.search.index import SearchIndex

            self.index = SearchIndex(job.index, model.folder, int(job.index_memory))
            self.index.encoder = model.encoder

    async def search(self, body: schemas.Search) -> Response:
        """Answer with the nearest sentences of each query."""
        index = self._opened()
        limit = self.job.max_hits
        k = min(_HITS, limit) if body.k is None else body.k
        if k > limit:
            raise HTTPException(400, f"k is {k}; at most {limit} are allowed")
        kind = "query" if index.answers else "sentence"
        queries = (await self.model.embed(body.queries, "queries", kind=kind)).units
        end = time.monotonic() + SEARCH_SECONDS
        search = partial(self._search, queries, k, body, end)
        with self.model.batcher.counted(len(queries)):
            try:
                answer = asyncio.get_running_loop().run_in_executor(self._searches, search)
                return await asyncio.wait_for(answer, SEARCH_SECONDS)
            # the second is another class in Python 3.10
            except (TimeoutError, asyncio.TimeoutError):
                raise HTTPException(
                    504,
                    f"the search took longer than {SEARCH_SECONDS:.0f} seconds; send fewer queries"
                    " or a simpler condition",
                ) from None

    def _search(self, queries: Rows, k: int, body: schemas.Search, end: float) -> Response:
        """Search in a thread, until a time of the monotonic clock."""
        texts = [text[: self.job.max_characters] for text in body.queries]
        results = self.index.search_vectors(
            queries,
            k,
            body.threshold,
            body.where,
            recall=self.job.recall,
            seconds=end - time.monotonic(),
            texts=texts if body.hybrid else None,
        )
        lists = []
        for hits in results:
            lists.append([hit._asdict() for hit in hits])
        return json_answer({"model": self.model.name, "results": lists})

    async def add(self, body: schemas.Add) -> Response:
        """Add sentences to the index."""
        index = self._writable()
        kind = "document" if index.answers else "sentence"
        # refuses unusable texts
        options = schemas.Options(truncate=False)
        await self.model.embed(body.sentences, "sentences", options, kind=kind)
        for number, sentence in enumerate(body.sentences):
            if not has_two_letters(sentence):
                raise HTTPException(
                    400, f"text {number} of sentences has fewer than two letters or digits"
                )
        change = partial(index.add, body.sentences, body.metadata)
        return await self._changed("added", len(body.sentences), change)

    async def delete(self, body: schemas.Delete) -> Response:
        """Delete sentences from the index."""
        index = self._writable()
        change = partial(index.delete, body.where, body.sentences, body.lines)
        return await self._changed("deleted", len(body.sentences or ()), change)

    async def _changed(self, name: str, texts: int, change: Callable[[], int]) -> Response:
        """Change the index in a thread; answer with the number of changed sentences."""
        with self.model.batcher.counted(texts):
            async with self._changing:
                count = await asyncio.to_thread(change)
                sentences = await asyncio.to_thread(len, self.index)
                return json_answer({name: count, "sentences": sentences})

    async def about(self, _: Request) -> Response:
        """Answer with the size and the fields of the index."""
        index = self._opened()
        sentences = await asyncio.to_thread(len, index)
        fields = await asyncio.to_thread(lambda: index.fields)
        answer = {"sentences": sentences, "fields": fields, "writable": self.job.index_writable}
        return json_answer(answer)

    async def health(self, _: Request) -> Response:
        """Answer that the server works."""
        sentences = None if self.index is None else await asyncio.to_thread(len, self.index)
        answer = {
            "status": "ok",
            "model": self.model.name,
            "dimensions": self.model.dimension,
            "sentences": sentences,
        }
        return json_answer(answer)

    def _opened(self) -> Any:
        if self.index is None:
            raise HTTPException(404, "this server has no index; start it with --index")
        return self.index

    def _writable(self) -> Any:
        index = self._opened()
        if not self.job.index_writable:
            raise HTTPException(
                403,
                "the index cannot be changed through this server; start it with --index-writable",
            )
        return index


def _cut(units: Rows, dimensions: int | None, field: str) -> Rows:
    """Keep the first dimensions of rows of length 1, and scale them to length 1 again."""
    if dimensions is None:
        return units
    rows = units[:, :dimensions]
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not lengths.all():
        place = place_of(int(np.argmin(lengths)), field)
        raise HTTPException(
            400, f"{place} is zero in {dimensions} dimensions; ask for more dimensions"
        )
    return rows / lengths
