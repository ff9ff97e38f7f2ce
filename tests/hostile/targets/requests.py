"""Requests to a server's application, damaged or of other forms: answered rightly, or refused in one line of JSON.

A failure of the server (status 500, or an error that leaves the application) is a defect, whatever is sent.
"""

from __future__ import annotations

import base64
import math
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from starlette.testclient import TestClient
from support.data import make_pairs

from hostile.damage import damaged, edited_json, json_bytes
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.encoder import pipeline
from st_paragram.learning.modules.sentencepiece_embedding import SentencePieceEmbedding
from st_paragram.tools.search.search_index import SearchIndex
from st_paragram.tools.serving.run import build_app
from st_paragram.tools.serving.served_model import ServedModel
from st_paragram.tools.serving.settings import ServingSettings

TRIES, QUICK = 5_000, 40

_SETTINGS = ServingSettings(max_body=50_000, max_texts=8, max_characters=2_000, max_hits=5)
_REQUESTS: dict[str, Any] = {
    "/v1/embeddings": {"input": ["ba ce", "di"], "model": "tiny", "dimensions": 3, "encoding_format": "float"},
    "/embed": {"inputs": ["ba ce", "di"], "normalize": True, "truncate": True, "dimensions": 3},
    "/v1/rerank": {"query": "ba ce", "documents": ["di", {"text": "fo"}], "top_n": 2, "return_documents": True},
    "/rerank": {"query": "ba ce", "texts": ["di", "fo"], "raw_scores": False, "return_text": True},
    "/score": {"pairs": [["ba ce", "ba ce"], ["di", "fo"]], "model": "tiny"},
    "/search": {"queries": ["ba ce", "di"], "k": 2, "threshold": -1.0, "model": "tiny"},
}
_OTHERS = (
    "/health",
    "/info",
    "/openapi.json",
    "/v2/rerank",
    "/metrics",
    "/v1/models",
    "/v1/models/tiny",
    "/v1/models/%00",
    "/",
    "/score/",
    "/%ff",
    "//a",
    "/x" * 999,
)
_TEXTS = ("", "\ud800", "\0", "\u202e", "x" * 1_999, "x" * 2_001, "\U0010ffff" * 500, "\u2603", "e\u0301" * 40, "▁")
_HEADERS = {
    "content-type": (
        b"application/json",
        b"text/plain",
        b"application/json; charset=utf-16",
        b"\xff",
        b"",
        b"a" * 5000,
    ),
    "content-encoding": (b"gzip", b"x"),
    "content-length": (b"0", b"3", b"-1", b"9" * 30, b"\xb2", b"x"),
    "authorization": (b"Bearer x", b"\xff"),
}
_EXPECTED = {200, 400, 404, 405, 413, 415, 422}


def prepare(folder: Path) -> ServedModel:
    """A small model, and an index of some lines."""
    torch.manual_seed(0)
    vocabulary = train_vocabulary((text for pair in make_pairs(300) for text in pair), 120)
    model = pipeline(SentencePieceEmbedding(SentencePieceTokenizer(vocabulary), 4), device="cpu")
    path = model_directory.save(model, folder / "tiny")
    lines = folder / "lines.txt"
    lines.write_text("".join(f"{first}\n" for first, _ in make_pairs(50)), encoding="utf-8")
    SearchIndex.build(lines, folder / "index", path)
    return ServedModel(path, index=folder / "index")


def attempt(shared: ServedModel, rng: np.random.Generator, folder: Path) -> str:
    """Send a request and look at the answer."""
    path = str(rng.choice(sorted(_REQUESTS)))
    value = _changed(path, rng)
    body = json_bytes(value)
    if rng.random() < 0.3:
        body = damaged(body, rng)
    headers: dict[str, str | bytes] = {"content-type": "application/json"}
    if rng.random() < 0.2:
        name = str(rng.choice(sorted(_HEADERS)))
        headers[name] = _HEADERS[name][rng.integers(len(_HEADERS[name]))]
    method, target = "POST", path
    if rng.random() < 0.1:
        method = str(rng.choice(["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post", "X"]))
    if rng.random() < 0.1:
        target = _OTHERS[rng.integers(len(_OTHERS))]
    with TestClient(build_app(shared, _SETTINGS)) as client:
        answer = client.request(method, target, content=body, headers=headers)
        healthy = client.get("/health").status_code == 200
    if not healthy:
        return "wrong: the server is no longer well"
    if answer.status_code not in _EXPECTED:
        return f"wrong: status {answer.status_code}, {answer.text[:500]}"
    if answer.status_code != 200:
        return "refused" if method == "HEAD" or _is_refusal(answer) else f"wrong: {answer.text[:500]}"
    wrong = _judged(path, answer.json()) if (method, target) == ("POST", path) else None
    return f"wrong: {wrong} to {body[:300]!r}" if wrong else "answered"


def _changed(path: str, rng: np.random.Generator) -> Any:
    """A request as it should be, or with other texts, or with anything else."""
    value = _REQUESTS[path]
    texts = next(key for key in ("input", "inputs", "documents", "texts", "pairs", "queries") if key in value)
    if rng.random() < 0.4:
        one, other = (_TEXTS[rng.integers(len(_TEXTS))] for _ in range(2))
        value = {**value, texts: [[one, other]] if texts == "pairs" else [one, other][: rng.integers(3)]}
    if rng.random() < 0.3:
        value = {**value, "encoding_format": "base64", "input_type": str(rng.choice(["sentence", "query", "x"]))}
    return edited_json(value, rng) if rng.random() < 0.6 else value


def _is_refusal(answer: Any) -> bool:
    error = answer.json().get("error", {})
    return set(error) == {"message", "type", "param", "code"} and error["message"].isprintable()


def _judged(path: str, found: Any) -> str | None:
    """What is wrong with an answer; None if nothing is."""
    if path == "/score":
        scores = found["scores"]
        return None if scores and all(abs(each) <= 1.0001 for each in scores) else f"scores {scores}"
    if path == "/search":
        hits = [hit for each in found["results"] for hit in each]
        good = all(math.isfinite(hit["score"]) and 1 <= hit["line"] <= 50 and hit["sentence"] for hit in hits)
        return None if found["results"] and good else f"results {found}"
    if path.endswith("rerank"):
        return _judged_ranking(found)
    rows = found if path == "/embed" else [each["embedding"] for each in found["data"]]
    for row in rows:
        vector = np.frombuffer(base64.b64decode(row), "<f4") if isinstance(row, str) else np.array(row)
        is_unit = np.isclose(np.linalg.norm(vector), 1, atol=1e-4) or not vector.any()
        if not (is_unit or path == "/embed") or vector.size > 4:  # /embed gives other lengths, too
            return f"a vector {vector}"
    return None if rows else "no row"


def _judged_ranking(found: Any) -> str | None:
    """What is wrong with a ranking: scores that rise, or numbers that occur twice."""
    results = found["results"] if isinstance(found, dict) else found
    scores = [each.get("relevance_score", each.get("score")) for each in results]
    good = scores == sorted(scores, reverse=True) and all(abs(each) <= 1.0001 for each in scores)
    return None if good and results and len({each["index"] for each in results}) == len(results) else f"{found}"
