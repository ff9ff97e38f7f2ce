"""`POST /rerank`, in the forms of Cohere, Jina and text-embeddings-inference."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import orjson
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, StrictBool, StrictStr

from st_paragram.tools.serving.batching import Kind
from st_paragram.tools.serving.endpoints.service import Service, Truncating, written
from st_paragram.tools.serving.messages import Answer, Request
from st_paragram.tools.serving.reading import FAIL_FAST, Number, RequestSchema, Texts
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.served_model import unit_rows


class Document(BaseModel):
    """A document as an object; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")
    text: StrictStr


class RerankRequest(RequestSchema):
    """`POST /v1/rerank`, as Cohere and Jina define it."""

    texts_field = "documents"
    query: StrictStr
    documents: Annotated[list[StrictStr | Document], FAIL_FAST]
    top_n: Number | None = None
    return_documents: StrictBool | None = False
    model: StrictStr | None = None


class RerankTextsRequest(Truncating):
    """`POST /rerank`, as text-embeddings-inference defines it."""

    texts_field = "texts"
    query: StrictStr
    texts: Texts
    raw_scores: StrictBool = False
    return_text: StrictBool = False


def endpoints(service: Service) -> list[Endpoint]:
    """The addresses that clients know; each of them reads both forms."""
    served = service.served

    async def ranked(request: Request, asked: RerankRequest) -> Answer:
        service.check_model(asked.model)
        texts = [each if isinstance(each, str) else each.text for each in asked.documents]
        cosines = await _cosines(service, request, asked.query, texts, "documents")

        def content() -> bytes:
            results = [
                {"index": index, "relevance_score": score}
                | ({"document": {"text": texts[index]}} if asked.return_documents else {})
                for index, score in _best_first(cosines)[: asked.top_n]
            ]
            tokens = served.tokens([asked.query, *texts])
            usage = {"prompt_tokens": tokens, "total_tokens": tokens}
            return orjson.dumps({"model": served.name, "results": results, "usage": usage})

        return await written(content, cosines.size, texts)

    async def ranked_texts(request: Request, asked: RerankTextsRequest) -> Answer:
        query, *texts = asked.cut([asked.query, *asked.texts], service.settings.max_characters)
        cosines = await _cosines(service, request, query, texts, "texts")
        scores = cosines if asked.raw_scores else (1 + cosines) / 2

        def content() -> bytes:
            results = [
                {"index": index, "score": score} | ({"text": asked.texts[index]} if asked.return_text else {})
                for index, score in _best_first(scores)
            ]
            return orjson.dumps(results)

        return await written(content, scores.size, asked.texts if asked.return_text else ())

    forms = (Form(RerankRequest, ranked), Form(RerankTextsRequest, ranked_texts))
    summary = "Documents, the nearest to a query first."
    example = {"query": "Where is the station?", "documents": ["The cat sleeps.", "La estación está en el centro."]}
    return [Endpoint(path, summary, forms, example) for path in ("/rerank", "/v1/rerank", "/v2/rerank")]


async def _cosines(service: Service, request: Request, query: str, texts: list[str], field: str) -> NDArray[np.float64]:
    """The cosine of each text with the query, (n,)."""
    service.check_texts([query], "query")
    service.check_texts(texts, field)
    if service.served.has_towers:
        first = await service.rows(request, [query], Kind.QUERY)
        rest = await service.rows(request, texts, Kind.DOCUMENT)
    else:
        rows = await service.rows(request, [query, *texts])
        first, rest = rows[:1], rows[1:]
    return (unit_rows(rest) @ unit_rows(first)[0]).astype(np.float64)


def _best_first(scores: NDArray[np.float64]) -> list[tuple[int, float]]:
    """Numbers and scores of texts, of equally good ones the earlier first."""
    scores = scores.round(6)  # sums of products differ in their last digits with the place of a row
    order = np.argsort(-scores, kind="stable")
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))
