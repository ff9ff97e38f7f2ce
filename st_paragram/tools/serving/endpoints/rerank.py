"""`POST /rerank`, in the forms of Cohere, Jina and text-embeddings-inference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson
from numpy.typing import NDArray

from st_paragram.tools.serving.batching import Kind
from st_paragram.tools.serving.checks import check_model, check_texts
from st_paragram.tools.serving.endpoints.service import Service, written
from st_paragram.tools.serving.endpoints.truncation import truncated
from st_paragram.tools.serving.messages import Answer, Request
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.schemas import RerankRequest, RerankTextsRequest
from st_paragram.tools.serving.served_model import unit_rows


def endpoints(service: Service) -> list[Endpoint]:
    """The addresses that clients know; each of them reads both forms."""
    served = service.served

    async def ranked(request: Request, asked: RerankRequest) -> Answer:
        check_model(asked.model, served)
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

        return Answer(await written(content, cosines, texts))

    async def ranked_texts(request: Request, asked: RerankTextsRequest) -> Answer:
        query, *texts = truncated([asked.query, *asked.texts], asked, service.settings)
        cosines = await _cosines(service, request, query, texts, "texts")
        scores = cosines if asked.raw_scores else (1 + cosines) / 2
        return Answer.json(
            [
                {"index": index, "score": score} | ({"text": asked.texts[index]} if asked.return_text else {})
                for index, score in _best_first(scores)
            ]
        )

    forms = (Form(RerankRequest, ranked), Form(RerankTextsRequest, ranked_texts))
    summary = "Documents, the nearest to a query first."
    return [Endpoint(path, summary, forms) for path in ("/rerank", "/v1/rerank", "/v2/rerank")]


async def _cosines(service: Service, request: Request, query: str, texts: list[str], field: str) -> NDArray[np.float64]:
    """The cosine of each text with the query, (n,)."""
    check_texts([query], service.settings, "query")
    check_texts(texts, service.settings, field)
    if service.served.has_towers:
        first = await service.rows(request, [query], Kind.QUERY)
        rest = await service.rows(request, texts, Kind.DOCUMENT)
    else:
        rows = await service.rows(request, [query, *texts])
        first, rest = rows[:1], rows[1:]
    return (unit_rows(rest) @ unit_rows(first)[0]).astype(np.float64)


def _best_first(scores: NDArray[np.float64]) -> Sequence[tuple[int, float]]:
    """Numbers and scores of texts, of equally good ones the earlier first."""
    scores = scores.round(6)  # sums of products differ in their last digits with the place of a row
    order = np.argsort(-scores, kind="stable")
    return list(zip(order.tolist(), scores[order].tolist(), strict=True))
