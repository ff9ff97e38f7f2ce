"""The application: what it answers, and what it refuses."""

from __future__ import annotations

import asyncio
import base64
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.data import make_pairs
from support.dual_encoder import new_model, unlike_new, write_bitext

import st_paragram
from st_paragram.errors import MiningError
from st_paragram.learning.models import directory as model_directory
from st_paragram.tools.search.search_index import SearchIndex

for package in ("httptools", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)
orjson = pytest.importorskip("orjson")
testclient = pytest.importorskip("starlette.testclient")

from st_paragram.tools.serving.endpoints import embeddings, index, rerank, score  # noqa: E402
from st_paragram.tools.serving.messages import Answer  # noqa: E402
from st_paragram.tools.serving.run import build_app  # noqa: E402
from st_paragram.tools.serving.served_model import ServedModel  # noqa: E402
from st_paragram.tools.serving.settings import ServingSettings  # noqa: E402

TEXTS = ["where is the station?", "¿dónde está la estación?", "the cat sleeps"]
SMALL = ServingSettings(max_body=100_000, max_texts=6, max_characters=50, max_hits=4, body_seconds=1.0)


@pytest.fixture(scope="module")
def model():
    return st_paragram.load("p-sp-mini")


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "lines.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def served(lines):
    pytest.importorskip("faiss")
    SearchIndex.build(lines, lines.with_name("index"), "p-sp-mini")
    return ServedModel("p-sp-mini", index=lines.with_name("index"))


@pytest.fixture(scope="module")
def client(served):
    with testclient.TestClient(build_app(served, SMALL)) as client:
        yield client


def embed(client, **request):
    return client.post("/v1/embeddings", json={"model": "p-sp-mini", **request})


def message(answer, status=400):
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and "\n" not in error["message"]
    return error["message"]


def test_embeddings_are_those_of_the_model_at_length_1(client, model):
    answer = embed(client, input=TEXTS).json()
    rows = np.array([each["embedding"] for each in answer["data"]], np.float32)
    assert np.allclose(rows, model.encode(TEXTS, normalize_embeddings=True), atol=1e-6)
    assert [each["index"] for each in answer["data"]] == [0, 1, 2]
    tokens = len(model[0].tokenizer.encode(TEXTS)[0])
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_base64_is_little_endian_float32(client):
    plain = embed(client, input=TEXTS[0]).json()["data"][0]["embedding"]
    coded = embed(client, input=TEXTS[0], encoding_format="base64").json()["data"][0]["embedding"]
    assert np.frombuffer(base64.b64decode(coded), "<f4").tolist() == pytest.approx(plain)


def test_fewer_dimensions_are_the_first_at_length_1(client, model):
    row = embed(client, input=TEXTS[0], dimensions=100).json()["data"][0]["embedding"]
    first = model.encode(TEXTS[0])[:100]
    assert np.allclose(row, first / np.linalg.norm(first), atol=1e-6)
    assert "256 components" in message(embed(client, input="a", dimensions=257))


def test_scores_are_cosines(client, model):
    pairs = [TEXTS[:2], TEXTS[1:]]
    answer = client.post("/score", json={"pairs": pairs}).json()
    rows = model.encode(TEXTS, normalize_embeddings=True)
    assert answer["scores"] == pytest.approx([float(rows[0] @ rows[1]), float(rows[1] @ rows[2])], abs=1e-5)


def test_a_search_is_that_of_the_index(client, served):
    answer = client.post("/search", json={"queries": ["station?", "a cat"], "k": 2, "threshold": 0.1}).json()
    expected = served.index.opened.search(["station?", "a cat"], 2, 0.1)
    assert [[(hit["line"], hit["sentence"]) for hit in hits] for hits in answer["results"]] == [
        [(hit.line, hit.sentence) for hit in hits] for hits in expected
    ]
    assert "at most 4" in message(client.post("/search", json={"queries": ["a"], "k": 5}))


def test_what_there_is(client):
    assert client.get("/health").json() == {"status": "ok", "model": "p-sp-mini", "dimensions": 256, "sentences": 3}
    assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["p-sp-mini"]
    assert client.get("/v1/models/p-sp-mini").json()["object"] == "model"
    message(client.get("/v1/models/other/one"), 404)
    message(client.get("/nothing"), 404)
    wrong_method = client.get("/score")
    message(wrong_method, 405)
    assert wrong_method.headers["Allow"] == "POST"
    message(client.post("/score/", json={}), 404)  # no redirection to an address that the client named itself
    assert [client.head(path).status_code for path in ("/health", "/metrics", "/v1/models")] == [200] * 3
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/v1/embeddings", "/score", "/search", "/embed", "/v1/rerank", "/health", "/metrics"} <= set(paths)


def test_metrics_count_requests_and_name_no_strange_paths(client):
    embed(client, input=["one", "two"])
    client.get("/secret-of-somebody")
    text = client.get("/metrics").text
    assert 'st_paragram_requests_total{path="/v1/embeddings",status="200"}' in text
    assert 'path="other",status="404"' in text and "secret" not in text
    assert "st_paragram_batch_texts_count" in text and "st_paragram_waiting_texts 0.0" in text


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"input": []}, "input is empty"),
        ({"input": ["a", " "]}, "text 1 of input is empty"),
        ({"input": ["a"] * 7}, "7 texts; at most 6"),
        ({"input": "a" * 51}, "text 0 of input has 51 characters; at most 50"),
        ({"input": [[1, -2]]}, "input must be a text, a list of texts, or token ids"),
        ({"input": ["a", 1]}, "input must be a text, a list of texts, or token ids"),
        ({"input": 3}, "input must be a text, a list of texts, or token ids"),
        ({"input": "a", "model": 3}, "model must be a text"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "dimensions": 0}, "dimensions must be at least 1"),
        ({"input": "a", "dimensions": 2**31}, "dimensions must be at most 2147483647"),
        ({"input": "a", "dimensions": "9"}, "dimensions must be a whole number"),
        ({"input": "a", "input_type": "query"}, "embeds all texts alike"),
        ({}, "input is missing"),
        ({"texts": ["a"], "inputs": 1, "user": "x", "a text": 1}, "input is missing; unknown fields: texts, inputs"),
    ],
)
def test_a_wrong_request_is_told_why(client, request_, says):
    assert says in message(embed(client, **request_))


@pytest.mark.parametrize(
    ("pairs", "says", "field"),
    [
        ([["a", "b"], ["c"]], "pairs[1] has 1 text, 2 are needed", "pairs[1]"),
        ([["a", "b", "c"]], "pairs[0] has 3 texts, 2 are needed", "pairs[0]"),
        ([[]], "pairs[0] has 0 texts, 2 are needed", "pairs[0]"),
        (["a"], "pairs[0] must be a list of 2 texts", "pairs[0]"),
        ([["a", 3]], "pairs[0][1] must be a text", "pairs[0][1]"),
    ],
)
def test_what_is_no_pair_is_told_in_plain_words(client, pairs, says, field):
    answer = client.post("/score", json={"pairs": pairs})
    assert (message(answer), answer.json()["error"]["param"]) == (says, field)


def test_the_header_that_is_missing_is_named(client):
    pairs = json.dumps({"pairs": [["a", "b"]]})
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        answer = client.post("/score", content=pairs, headers=headers)
        assert "with the header Content-Type: application/json" in message(answer)
    for kind in ("application/json; charset=utf-8", "Application/JSON"):
        assert client.post("/score", content=pairs, headers={"Content-Type": kind}).status_code == 200
        told = message(client.post("/score", content="[]", headers={"Content-Type": kind}))
        assert told == "the body must be a JSON object with the fields of a request"


def test_a_wrong_address_or_method_is_told_what_there_is(client):
    told = message(client.get("/v2"), 404)
    assert all(address in told for address in ("/v1/embeddings", "/score", "/search", "/v1/models", "/health"))
    assert message(client.get("/score"), 405) == "this method is not allowed here; use POST"


def test_unknown_fields_pass_where_nothing_is_missing(client):
    assert embed(client, input="a", user="somebody", store=True).status_code == 200


def test_another_model_is_not_there(client):
    assert "one model, p-sp-mini" in message(client.post("/v1/embeddings", json={"input": "a", "model": "x"}), 404)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[" * 90_000, b'{"input": "a", "model": ' + b"9" * 5000 + b"}", b"null", b"NaN"]
)
def test_bodies_that_are_no_request(client, content):
    message(client.post("/v1/embeddings", content=content, headers={"Content-Type": "application/json"}))


def test_bodies_that_are_too_large_are_refused_announced_or_not(client):
    large = json.dumps({"model": "p-sp-mini", "input": "a" * 100_000}).encode()
    assert "larger than 100000 bytes" in message(client.post("/v1/embeddings", content=large), 413)
    parts = (large[at : at + 1000] for at in range(0, len(large), 1000))
    assert "larger than 100000 bytes" in message(client.post("/v1/embeddings", content=parts), 413)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
SCHEMAS = (
    *(embeddings.EmbeddingsRequest, embeddings.EmbedRequest, rerank.RerankRequest, rerank.RerankTextsRequest),
    *(score.ScoreRequest, index.SearchRequest, index.AddRequest, index.DeleteRequest),
)
FIELDS = st.sampled_from(sorted({field for schema in SCHEMAS for field in schema.model_fields}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(FIELDS, VALUES | st.just("p-sp-mini"), max_size=6),
    st.sampled_from(["/v1/embeddings", "/score", "/search", "/embed", "/rerank", "/v1/rerank"]),
)
def test_whatever_is_sent_is_answered_or_refused(client, content, path):
    answer = client.post(path, content=json.dumps(content).encode("utf-8", "surrogatepass"))
    assert answer.status_code in (200, 400, 404)
    answer.json()


def test_a_key_is_needed_where_there_is_one(served):
    with testclient.TestClient(build_app(served, SMALL, key="sésame")) as client:
        assert "a key is needed" in message(embed(client, input="a"), 401)
        for wrong in ("Bearer x", "Basic c8OpeA==", "sésame".encode(), b"Bearer \xff"):
            assert client.get("/metrics", headers={"Authorization": wrong}).status_code == 401
        assert client.get("/health").status_code == 200
        right = {"Authorization": "Bearer sésame".encode()}
        assert client.get("/v1/models", headers=right).status_code == 200


def failing(texts, kind):
    try:
        raise KeyError(texts[0])
    except KeyError as error:
        raise RuntimeError(f"cannot read {texts}") from error


def test_a_failing_model_is_told_without_its_texts(served, monkeypatch, caplog):
    """Neither to the client, nor to the log; and nothing passes on to the server around, which would log it whole."""
    monkeypatch.setattr(served, "encode", failing)
    with testclient.TestClient(build_app(served, SMALL), raise_server_exceptions=True) as client:
        assert "the server failed" in message(embed(client, input="a secret"), 500)
        assert "RuntimeError at test_serving_app.py" in caplog.text and "(failing)" in caplog.text
        assert "secret" not in caplog.text
        monkeypatch.undo()
        metrics = client.get("/metrics").text
        assert 'st_paragram_requests_total{path="/v1/embeddings",status="500"} 1.0' in metrics
        assert client.get("/health").status_code == 200


def test_an_answer_that_cannot_be_counted_is_sent(served, caplog):
    def uncountable(*args):
        raise OSError("no space left on the disk")

    app = build_app(served, SMALL)
    app.guard.metrics.answered = uncountable
    with testclient.TestClient(app) as client:
        assert embed(client, input="a").status_code == 200
    assert "failed: OSError" in caplog.text


def test_a_damaged_index_is_no_fault_of_the_request(served, monkeypatch, caplog):
    def damaged(*args):
        raise MiningError("x/index.json: damaged; build the index again")

    monkeypatch.setattr(served.index.opened, "search_vectors", damaged)
    with testclient.TestClient(build_app(served, SMALL)) as client:
        assert "the server failed" in message(client.post("/search", json={"queries": ["a secret"], "k": 2}), 500)
    assert "MiningError" in caplog.text and "secret" not in caplog.text


def test_a_query_that_the_model_knows_nothing_of(served, monkeypatch):
    rows = np.eye(2, served.dimension, dtype=np.float32) * [[1.0], [0.0]]
    monkeypatch.setattr(served, "encode", lambda texts, kind: rows)
    with testclient.TestClient(build_app(served, SMALL)) as client:
        told = message(client.post("/search", json={"k": 2, "queries": ["the cat", "\u16a0\u16a1"]}))
    assert told == "text 1 of queries has nothing that p-sp-mini knows"


@pytest.mark.parametrize("form", ["float", "base64"])
def test_a_large_answer_is_that_of_small_ones(served, monkeypatch, form):
    def rows(threshold):
        monkeypatch.setattr("st_paragram.tools.serving.endpoints.service._LARGE", threshold)
        with testclient.TestClient(build_app(served, SMALL)) as client:
            return embed(client, input=TEXTS, encoding_format=form).json()

    assert rows(0) == rows(10**9)


def test_large_answers_do_not_stop_others(served, monkeypatch):
    """Hits and rankings are written in a thread, as embeddings are."""
    in_loop = []
    dumps = orjson.dumps
    monkeypatch.setattr("st_paragram.tools.serving.endpoints.service._LARGE", 0)
    monkeypatch.setattr("orjson.dumps", lambda *given: in_loop.append(_in_event_loop()) or dumps(*given))
    with testclient.TestClient(build_app(served, SMALL)) as client:
        client.post("/search", json={"queries": TEXTS, "k": 2})
        client.post("/rerank", json={"query": "a", "texts": TEXTS})
    assert in_loop == [False, False]


def _in_event_loop():
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def test_a_body_that_is_refused_for_want_of_room_is_never_read_as_whole(served, monkeypatch):
    """Even if another request makes room before the refusal."""
    monkeypatch.setattr("st_paragram.tools.serving.guard.BODIES", 1)
    sent, room = [], asyncio.Event()

    async def respond(request):
        await room.wait()
        return Answer(b"whole" if request.body == b"a" * 90_000 else b"cut")

    async def first():
        return {"type": "http.request", "body": b"a" * 90_000}

    async def second():
        room.set()
        return {"type": "http.request", "body": b"b" * 20_000, "more_body": True}

    async def send(message):
        sent.append(message.get("body", message.get("status")))

    async def both():
        app = build_app(served, SMALL)
        app.guard.respond = respond
        scope = {"type": "http", "method": "POST", "path": "/score", "headers": []}
        asked = asyncio.create_task(app(scope, first, send))
        await asyncio.sleep(0.1)
        await app(scope, second, send)
        await asked

    asyncio.run(both())
    assert sent[:2] == [200, b"whole"] and sent[2] == 503


def test_questions_and_answers_go_through_their_towers(tmp_path, vocabulary):
    model = unlike_new(new_model(write_bitext(tmp_path / "bitext.h5", vocabulary, make_pairs(40))))
    model_directory.save(model, tmp_path / "muse", "")
    served, (text, _) = ServedModel(tmp_path / "muse"), make_pairs(1)[0]
    with testclient.TestClient(build_app(served)) as client:
        rows = {
            kind: client.post("/v1/embeddings", json={"model": "muse", "input": text, "input_type": kind}).json()
            for kind in ("sentence", "query", "document")
        }
    encode = {"sentence": model.encode, "query": model.encode_query, "document": model.encode_document}
    for kind, answer in rows.items():
        expected = encode[kind](text, normalize_embeddings=True)
        assert np.allclose(answer["data"][0]["embedding"], expected, atol=1e-5)
        assert answer["usage"]["prompt_tokens"] > 0
