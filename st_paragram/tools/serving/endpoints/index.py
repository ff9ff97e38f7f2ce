"""`POST /search`, the hits of the index; `POST /index/add` and `/index/delete`, which change it; `GET /index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import orjson
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr

from st_paragram.tools.serving.endpoints.embeddings import TEXTS
from st_paragram.tools.serving.endpoints.service import Service, written
from st_paragram.tools.serving.messages import Answer, Refused, Request
from st_paragram.tools.serving.reading import FAIL_FAST, Number, RequestSchema, Texts
from st_paragram.tools.serving.routing import Endpoint, Form, Page

if TYPE_CHECKING:
    from st_paragram.tools.search.search_index import Hit
    from st_paragram.tools.serving.served_index import ServedIndex

_MOST_CONDITIONS = 32  # each of them takes a look at every sentence
_Value = StrictBool | StrictInt | StrictFloat | StrictStr
_Conditions = Annotated[list[StrictStr], Field(max_length=_MOST_CONDITIONS)]
_Wanted = Annotated[dict[StrictStr, _Value | list[_Value]], Field(max_length=_MOST_CONDITIONS)]
_Where = StrictStr | _Conditions | _Wanted
_Fields = dict[StrictStr, _Value | None]


class SearchRequest(RequestSchema):
    """`POST /search`: queries to the index, hits per query, the lowest cosine of a hit, and a filter."""

    texts_field = "queries"
    queries: Texts
    k: Number = 10
    threshold: Annotated[float, Field(ge=-1, le=1)] | None = None
    where: _Where | None = None
    model: StrictStr | None = None


class AddRequest(RequestSchema):
    """`POST /index/add`: sentences, and fields of all of them or of each."""

    texts_field = "sentences"
    sentences: Texts
    metadata: _Fields | Annotated[list[_Fields], FAIL_FAST] | None = None
    model: StrictStr | None = None


class DeleteRequest(RequestSchema):
    """`POST /index/delete`: what is to be deleted, in one of three ways."""

    texts_field = "sentences"
    lines: Annotated[list[Number], FAIL_FAST] | None = None
    sentences: Texts | None = None
    where: _Where | None = None


def endpoints(service: Service) -> list[Endpoint]:
    """The endpoints; they answer where there is an index, and the latter two where it may be changed."""
    served, settings = service.served, service.settings

    async def search(request: Request, asked: SearchRequest) -> Answer:
        index = _index(service)
        service.check_model(asked.model)
        service.check_texts(asked.queries, "queries")
        if asked.k > settings.max_hits:
            raise Refused(400, f"k is {asked.k}; at most {settings.max_hits} are allowed", "k")
        rows = await service.rows(request, asked.queries, served.query_kind)
        if len(unknown := np.flatnonzero(~rows.any(1))):
            raise Refused(400, f"text {unknown[0]} of queries has nothing that {served.name} knows", "queries")

        def hits() -> list[list[Hit]]:
            return index.current().search_vectors(rows, asked.k, asked.threshold, asked.where)

        found = await request.unless_gone(service.batcher.in_thread(hits))

        def content() -> bytes:
            results = [[_shown(hit) for hit in hits] for hits in found]
            return orjson.dumps({"model": served.name, "results": results})

        return await written(content, 0, [hit.sentence for hits in found for hit in hits])

    async def add(_: Request, asked: AddRequest) -> Answer:
        index = _writable(service)
        service.check_model(asked.model)
        service.check_texts(asked.sentences, "sentences")
        if not any(sum(map(str.isalnum, text)) > 1 for text in asked.sentences):
            raise Refused(400, "none of sentences has two letters or digits", "sentences")
        if isinstance(asked.metadata, list) and len(asked.metadata) != len(asked.sentences):
            seen = f"metadata has {len(asked.metadata)} objects for {len(asked.sentences)} sentences"
            raise Refused(400, f"{seen}; give one for each, or one object for all", "metadata")
        added = await index.change(lambda opened: opened.add(asked.sentences, asked.metadata))
        counts = {"added": added.added, "tagged": added.tagged, "known": added.known}
        left_out = added.counts.lines - added.counts.sentences
        return Answer.json(counts | {"left_out": left_out, "sentences": len(index)})

    async def delete(_: Request, asked: DeleteRequest) -> Answer:
        index = _writable(service)
        if asked.sentences is not None:
            service.check_texts(asked.sentences, "sentences")
        deleted = await index.change(lambda opened: opened.delete(asked.lines, asked.sentences, asked.where))
        return Answer.json({"deleted": deleted, "sentences": len(index)})

    can_search, can_change = served.index is not None, served.index is not None and served.index.writable
    return [
        Endpoint(
            "/search",
            "The sentences of the index nearest to each query.",
            (Form(SearchRequest, search),),
            {"queries": TEXTS[:1], "k": 3},
            can_search,
        ),
        Endpoint(
            "/index/add",
            "Add sentences with fields to the index.",
            (Form(AddRequest, add),),
            {"sentences": TEXTS, "metadata": {"source": "phrase book"}},
            can_change,
        ),
        Endpoint(
            "/index/delete",
            "Delete sentences of the index, by their lines, by what they say, or by their fields.",
            (Form(DeleteRequest, delete),),
            {"where": "source=phrase book"},
            can_change,
        ),
    ]


def pages(service: Service) -> list[Page]:
    """The page that describes the index, where there is one."""
    index = service.served.index
    if index is None:
        return []

    def about(_: str) -> Answer:
        opened = index.current()
        fields = {name: kind.value for name, kind in opened.fields.items()}
        about = {"sentences": len(opened), "lines": opened.metadata.all_lines, "fields": fields}
        return Answer.json(about | {"changes": opened.metadata.generation, "writable": index.writable})

    return [Page("/index", "The index: its sentences, and their fields.", about, in_thread=True)]


def _shown(hit: Hit) -> dict[str, object]:
    shown = {"score": hit.score, "line": hit.line, "sentence": hit.sentence}
    return shown | {"metadata": dict(hit.metadata)} if hit.metadata else shown


def _index(service: Service) -> ServedIndex:
    if service.served.index is None:
        raise Refused(404, "this server has no index; start it with --index")
    return service.served.index


def _writable(service: Service) -> ServedIndex:
    index = _index(service)
    if not index.writable:
        raise Refused(403, "the index may not be changed through this server; start it with --index-writable")
    return index
