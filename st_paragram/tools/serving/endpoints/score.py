"""`POST /score`, the cosines of pairs."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import StrictStr

from st_paragram.tools.serving.endpoints.embeddings import TEXTS
from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.messages import Answer, Request
from st_paragram.tools.serving.reading import FAIL_FAST, RequestSchema
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.served_model import unit_rows


class ScoreRequest(RequestSchema):
    """`POST /score`: pairs of texts."""

    texts_field = "pairs"
    pairs: Annotated[list[tuple[StrictStr, StrictStr]], FAIL_FAST]
    model: StrictStr | None = None


def endpoints(service: Service) -> list[Endpoint]:
    """The endpoint."""
    served = service.served

    async def score(request: Request, asked: ScoreRequest) -> Answer:
        service.check_model(asked.model)
        texts = [text for pair in asked.pairs for text in pair]
        service.check_texts(texts, "pairs")
        rows = unit_rows(await service.rows(request, texts))
        cosines = np.einsum("nd,nd->n", rows[0::2], rows[1::2])
        return Answer.json({"model": served.name, "scores": cosines.astype(np.float64).round(6).tolist()})

    return [Endpoint("/score", "The cosine of each pair.", (Form(ScoreRequest, score),), {"pairs": [TEXTS]})]
