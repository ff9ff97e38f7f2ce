"""`POST /embed`, as text-embeddings-inference's."""

from __future__ import annotations

from st_paragram.tools.serving.checks import check_dimensions, check_texts
from st_paragram.tools.serving.endpoints.service import Service, row_list, written
from st_paragram.tools.serving.endpoints.truncation import truncated
from st_paragram.tools.serving.errors import Refused
from st_paragram.tools.serving.messages import Answer, Request
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.schemas import EmbedRequest
from st_paragram.tools.serving.served_model import unit_rows


def endpoint(service: Service) -> Endpoint:
    """The endpoint; it answers a list of lists of numbers."""

    async def embed(request: Request, asked: EmbedRequest) -> Answer:
        check_dimensions(asked.dimensions, service.served)
        if asked.prompt_name is not None:
            raise Refused(400, "prompts are not supported; leave prompt_name out", "prompt_name")
        sent = [asked.inputs] if isinstance(asked.inputs, str) else asked.inputs
        texts = truncated(sent, asked, service.settings)
        check_texts(texts, service.settings, "inputs")
        rows = await service.rows(request, texts)

        def content() -> bytes:
            kept = unit_rows(rows, asked.dimensions) if asked.normalize else rows[:, : asked.dimensions]
            return b"[%b]" % b",".join(row_list(kept))

        return Answer(await written(content, rows))

    return Endpoint("/embed", "Embeddings as a list of lists.", (Form(EmbedRequest, embed),))
