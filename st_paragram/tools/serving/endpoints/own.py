"""This server's own API: `POST /score`, the cosines of pairs, and `POST /search`, the hits of the index."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import orjson
from pydantic import Field, StrictStr

from st_paragram.tools.serving.endpoints.embeddings import TEXTS
from st_paragram.tools.serving.endpoints.service import Service, written
from st_paragram.tools.serving.messages import Answer, Refused, Request
from st_paragram.tools.serving.reading import FAIL_FAST, Number, RequestSchema, Texts
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.served_model import unit_rows


class ScoreRequest(RequestSchema):
    """`POST /score`: pairs of texts."""

    texts_field = "pairs"
    pairs: Annotated[list[tuple[StrictStr, StrictStr]], FAIL_FAST]
    model: StrictStr | None = None


class SearchRequest(RequestSchema):
    """`POST /search`: queries to the index, hits per query, and the lowest cosine of a hit."""

    texts_field = "queries"
    queries: Texts
    k: Number = 10
    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None
    model: StrictStr | None = None


def endpoints(service: Service) -> list[Endpoint]:
    """The endpoints."""
    served, settings = service.served, service.settings

    async def score(request: Request, asked: ScoreRequest) -> Answer:
        service.check_model(asked.model)
        texts = [text for pair in asked.pairs for text in pair]
        service.check_texts(texts, "pairs")
        rows = unit_rows(await service.rows(request, texts))
        cosines = np.einsum("nd,nd->n", rows[0::2], rows[1::2])
        return Answer.json({"model": served.name, "scores": cosines.astype(np.float64).round(6).tolist()})

    async def search(request: Request, asked: SearchRequest) -> Answer:
        index = served.index
        if index is None:
            raise Refused(404, "this server has no index; start it with --index")
        service.check_model(asked.model)
        service.check_texts(asked.queries, "queries")
        if asked.k > settings.max_hits:
            raise Refused(400, f"k is {asked.k}; at most {settings.max_hits} are allowed", "k")
        rows = await service.rows(request, asked.queries, served.query_kind)
        if len(unknown := np.flatnonzero(~rows.any(1))):
            raise Refused(400, f"text {unknown[0]} of queries has nothing that {served.name} knows", "queries")
        found = await request.unless_gone(
            service.batcher.in_thread(lambda: index.search_vectors(rows, asked.k, asked.threshold))
        )

        def content() -> bytes:
            results = [
                [{"score": hit.score, "line": hit.line, "sentence": hit.sentence} for hit in hits] for hits in found
            ]
            return orjson.dumps({"model": served.name, "results": results})

        return await written(content, 0, [hit.sentence for hits in found for hit in hits])

    return [
        Endpoint("/score", "The cosine of each pair.", (Form(ScoreRequest, score),), {"pairs": [TEXTS]}),
        Endpoint(
            "/search",
            "The sentences of the index nearest to each query.",
            (Form(SearchRequest, search),),
            {"queries": TEXTS[:1], "k": 3},
            needs_index=True,
        ),
    ]
