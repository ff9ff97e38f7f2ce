"""`POST /score`: the cosines of pairs."""

from __future__ import annotations

import numpy as np

from st_paragram.tools.serving.checks import check_model, check_texts
from st_paragram.tools.serving.endpoints.service import Service
from st_paragram.tools.serving.messages import Answer, Request
from st_paragram.tools.serving.routing import Endpoint, Form
from st_paragram.tools.serving.schemas import ScoreRequest
from st_paragram.tools.serving.served_model import unit_rows


def endpoint(service: Service) -> Endpoint:
    """The endpoint."""

    async def score(request: Request, asked: ScoreRequest) -> Answer:
        check_model(asked.model, service.served)
        texts = [text for pair in asked.pairs for text in pair]
        check_texts(texts, service.settings, "pairs")
        rows = unit_rows(await service.rows(request, texts))
        cosines = np.einsum("nd,nd->n", rows[0::2], rows[1::2])
        return Answer.json({"model": service.served.name, "scores": cosines.astype(np.float64).round(6).tolist()})

    return Endpoint("/score", "The cosine of each pair.", (Form(ScoreRequest, score),))
