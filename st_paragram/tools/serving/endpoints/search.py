"""`POST /search`: the sentences of the index that are nearest to each query."""

from __future__ import annotations

import numpy as np

from st_paragram.tools.serving.checks import check_model, check_texts
from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.errors import Refused
from st_paragram.tools.serving.messages import Answer, Request
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.schemas import SearchRequest


def endpoint(service: Service) -> Endpoint:
    """The endpoint."""
    served, settings = service.served, service.settings

    async def search(request: Request, asked: SearchRequest) -> Answer:
        index = served.index
        if index is None:
            raise Refused(404, "this server has no index; start it with --index")
        check_model(asked.model, served)
        check_texts(asked.queries, settings, "queries")
        if asked.k > settings.max_hits:
            raise Refused(400, f"k is {asked.k}; at most {settings.max_hits} are allowed", "k")
        rows = await service.rows(request, asked.queries, served.query_kind)
        if len(unknown := np.flatnonzero(~rows.any(1))):
            raise Refused(400, f"text {unknown[0]} of queries has nothing that {served.name} knows", "queries")
        found = await request.unless_gone(
            service.batcher.in_thread(lambda: index.search_vectors(rows, asked.k, asked.threshold))
        )
        results = [[{"score": hit.score, "line": hit.line, "sentence": hit.sentence} for hit in hits] for hits in found]
        return Answer.json({"model": served.name, "results": results})

    return Endpoint("/search", "The sentences of the index nearest to each query.", (Form(SearchRequest, search),))
