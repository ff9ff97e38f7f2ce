"""Rankings, token numbers and the addresses of text-embeddings-inference."""

from __future__ import annotations

import hashlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

for package in ("httptools", "orjson", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)
testclient = pytest.importorskip("starlette.testclient")

from st_paragram.tools.serving.endpoints import embeddings  # noqa: E402
from st_paragram.tools.serving.run import build_app  # noqa: E402
from st_paragram.tools.serving.served_model import ServedModel  # noqa: E402
from st_paragram.tools.serving.settings import ServingSettings  # noqa: E402

QUERY, DOCUMENTS = "where is the station?", ["the cat sleeps", "¿dónde está la estación?", "a railway station"]
SETTINGS = ServingSettings(max_texts=4, max_characters=40)


@pytest.fixture(scope="module")
def served():
    return ServedModel("p-sp-mini")


@pytest.fixture(scope="module")
def client(served):
    with testclient.TestClient(build_app(served, SETTINGS)) as client:
        yield client


@pytest.fixture(scope="module")
def cosines(served):
    rows = np.asarray(served.model.encode([QUERY, *DOCUMENTS], normalize_embeddings=True))
    return rows[1:] @ rows[0]


def refusal(answer):
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_documents_are_ranked_by_their_cosines(client, cosines, path):
    documents = [DOCUMENTS[0], {"text": DOCUMENTS[1], "title": "ignored"}, DOCUMENTS[2]]
    asked = {"model": "p-sp-mini", "query": QUERY, "documents": documents, "max_tokens_per_doc": 9}
    answer = client.post(path, json=asked).json()
    assert [each["index"] for each in answer["results"]] == np.argsort(-cosines).tolist() == [1, 2, 0]
    assert [each["relevance_score"] for each in answer["results"]] == pytest.approx(sorted(cosines)[::-1], abs=1e-5)
    assert not any("document" in each for each in answer["results"]) and answer["usage"]["total_tokens"] > 9


def test_a_ranking_is_cut_and_holds_documents_if_asked(client):
    asked = {"query": QUERY, "documents": DOCUMENTS, "top_n": 1, "return_documents": True}
    (best,) = client.post("/rerank", json=asked).json()["results"]
    assert (best["index"], best["document"]) == (1, {"text": DOCUMENTS[1]})


def test_equal_documents_stay_in_their_order(client):
    answer = client.post("/rerank", json={"query": QUERY, "documents": ["a", "b", "a"]}).json()
    order = [each["index"] for each in answer["results"]]
    assert order.index(0) < order.index(2)


def test_texts_are_ranked_as_text_embeddings_inference_does(client, cosines):
    raw = client.post("/rerank", json={"query": QUERY, "texts": DOCUMENTS, "raw_scores": True}).json()
    assert [each["index"] for each in raw] == [1, 2, 0]
    assert [each["score"] for each in raw] == pytest.approx(sorted(cosines)[::-1], abs=1e-5)
    mapped = client.post("/rerank", json={"query": QUERY, "texts": DOCUMENTS, "return_text": True}).json()
    assert [each["score"] for each in mapped] == pytest.approx([(1 + each["score"]) / 2 for each in raw], abs=1e-5)
    assert [each["text"] for each in mapped] == [DOCUMENTS[each["index"]] for each in mapped]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"query": "a", "documents": []}, "documents is empty"),
        ({"query": " ", "documents": ["a"]}, "text 0 of query is empty"),
        ({"query": "a", "documents": ["a", {"title": "b"}]}, "documents must be a list of texts, or of objects"),
        ({"query": "a", "texts": ["a" * 41]}, "text 0 of texts has 41 characters; at most 40"),
        ({"query": "a", "texts": ["a", 1]}, "texts[1] must be a text"),
        ({"query": "a"}, "documents is missing"),
        ({"documents": ["a"], "question": "b"}, "query is missing; unknown field: question"),
        ({"query": "a", "documents": ["b"], "return_documents": "yes"}, "return_documents must be true or false"),
    ],
)
def test_wrong_rankings_are_refused(client, asked, says):
    assert says in refusal(client.post("/rerank", json=asked))


def test_embed_gives_lists_of_unit_length_or_as_they_are(client, served):
    plain = np.asarray(served.model.encode(DOCUMENTS))
    as_is = client.post("/embed", json={"inputs": DOCUMENTS, "normalize": False}).json()
    assert np.allclose(as_is, plain, atol=1e-6)
    units = client.post("/embed", json={"inputs": DOCUMENTS}).json()
    assert np.allclose(units, plain / np.linalg.norm(plain, axis=1, keepdims=True), atol=1e-6)
    (one,) = client.post("/embed", json={"inputs": DOCUMENTS[0], "dimensions": 5}).json()
    assert np.allclose(one, plain[0, :5] / np.linalg.norm(plain[0, :5]), atol=1e-6)


def test_embed_cuts_long_texts_if_asked(client):
    long = "the cat " * 20

    def row(text, **options):
        return client.post("/embed", json={"inputs": text, **options}).json()

    assert row(long, truncate=True) == row(long[:40])
    assert row(long, truncate=True, truncation_direction="Left") == row(long[-40:])
    assert "has 160 characters; at most 40" in refusal(client.post("/embed", json={"inputs": long}))
    assert "leave prompt_name out" in refusal(client.post("/embed", json={"inputs": "a", "prompt_name": "query"}))


def test_info_names_the_model_and_the_limits(client):
    info = client.get("/info").json()
    assert (info["model_id"], info["max_client_batch_size"], info["max_input_length"]) == ("p-sp-mini", 4, 40)


def test_the_description_names_every_form(client):
    description = client.get("/openapi.json").json()
    body = description["paths"]["/rerank"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    names = [each["$ref"].rpartition("/")[2] for each in body["anyOf"]]
    assert names == ["RerankRequest", "RerankTextsRequest"] and set(names) < set(description["components"]["schemas"])


class Encoding:
    """Tokens are the numbers of characters."""

    max_token_value = 300

    def decode(self, tokens):
        if 299 in tokens:
            raise KeyError(299)
        return "".join(map(chr, tokens))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder in which tiktoken would find its vocabularies."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    embeddings._encoding.cache_clear()
    yield tmp_path
    embeddings._encoding.cache_clear()


def test_token_numbers_are_read_where_the_vocabulary_is(client, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=lambda name: Encoding()))
    (cache / embeddings.CACHED_AS).touch()

    def ask(sent):
        return client.post("/v1/embeddings", json={"model": "p-sp-mini", "input": sent})

    expected = ask(["cat", "dog"]).json()
    assert ask([[99, 97, 116], [100, 111, 103]]).json() == expected
    assert ask([99, 97, 116]).json()["data"][0] == expected["data"][0]
    assert "text 0 of input has 41 characters" in refusal(ask([[99] * 41, [299]]))  # the next one is not read
    assert "5 texts; at most 4" in refusal(ask([[299]] * 5))
    assert "list 1 of input has a token id" in refusal(ask([[99], [301]]))
    assert "has a token id that cl100k_base does not have" in refusal(ask([[99], [299]]))
    assert "text 1 of input is empty" in refusal(ask([[99], []]))


@pytest.mark.parametrize("tiktoken", [None, SimpleNamespace(get_encoding=None)])
def test_token_numbers_are_refused_where_it_is_not(client, cache, monkeypatch, tiktoken):
    """tiktoken is not installed, or would have to load its vocabulary from the network."""
    monkeypatch.setitem(sys.modules, "tiktoken", tiktoken)
    told = refusal(client.post("/v1/embeddings", json={"model": "p-sp-mini", "input": [[99, 97]]}))
    assert "check_embedding_ctx_length=False" in told


def test_the_cached_vocabulary_is_found_as_tiktoken_names_it():
    address = f"https://openaipublic.blob.core.windows.net/encodings/{embeddings.ENCODING}.tiktoken"
    assert hashlib.sha1(address.encode()).hexdigest() == embeddings.CACHED_AS
