"""What the server answers, and what it refuses."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from support.data import make_pairs
from support.dual_encoder import new_model, unlike_new, write_bitext

from st_paragram import Encoder
from st_paragram.errors import SettingsError
from st_paragram.learning.models import load_save

for package in ("httptools", "orjson", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)
testclient = pytest.importorskip("starlette.testclient")

from anyio.from_thread import start_blocking_portal  # noqa: E402
from starlette.exceptions import HTTPException  # noqa: E402

from st_paragram.core.encoding import encoder as encoder_module  # noqa: E402
from st_paragram.tools.serving import endpoints, model, schemas  # noqa: E402
from st_paragram.tools.serving.app import build  # noqa: E402
from st_paragram.tools.serving.batching import Batcher  # noqa: E402
from st_paragram.tools.serving.schemas import CACHED_AS, Job  # noqa: E402

UNKNOWN = "ⵣⵣⵣⵣ ⵣⵣ"  # no letter of it is in the vocabulary
TEXTS = ["where is the station?", "¿dónde está la estación?", "the cat sleeps"]
FIELDS = [{"lang": "en", "year": 2021}, {"lang": "es"}, {"lang": "en", "year": 2019}]
QUERY, DOCUMENTS = TEXTS[0], ["the cat sleeps", TEXTS[1], "a railway station"]
SMALL = {"max_body": 10_000, "max_texts": 6, "max_characters": 50, "max_hits": 4}
ORIGIN, KEY = "https://app.example.org", {"Authorization": "Bearer sesame"}


def serving(model="p-sp-mini", **given):
    return testclient.TestClient(build(Job(model, **(SMALL | given))))


@contextmanager
def in_one_loop(client):
    """Answer all requests in one event loop, like a server, instead of one per request."""
    with start_blocking_portal() as portal:
        client.portal = portal
        yield client
    client.portal = None


@pytest.fixture(scope="module")
def client():
    with in_one_loop(serving()) as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    return Encoder("p-sp-mini").encode(TEXTS, normalize_embeddings=True)


@pytest.fixture
def folder(tmp_path):
    """An index."""
    pytest.importorskip("lancedb")
    from st_paragram.tools.search.index import SearchIndex

    SearchIndex.build(TEXTS, tmp_path / "index", "p-sp-mini", metadata=FIELDS)
    return tmp_path / "index"


def embed(client, **request):
    return client.post("/v1/embeddings", json={"model": "p-sp-mini", **request})


def message(answer, status=400):
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and "\n" not in error["message"]
    return error["message"]


def test_embeddings_are_those_of_the_model_at_length_1(client, rows):
    answer = embed(client, input=TEXTS).json()
    assert np.allclose([each["embedding"] for each in answer["data"]], rows, atol=1e-6)
    tokens = len(Encoder("p-sp-mini").tokenizer.encode(TEXTS)[0])
    assert answer["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    coded = embed(client, input=TEXTS[0], encoding_format="base64").json()["data"][0]["embedding"]
    assert np.allclose(np.frombuffer(base64.b64decode(coded), "<f4"), rows[0], atol=1e-6)
    few = embed(client, input=TEXTS[0], dimensions=100).json()["data"][0]["embedding"]
    assert np.allclose(few, rows[0, :100] / np.linalg.norm(rows[0, :100]), atol=1e-6)


def test_embed_gives_lists_and_cuts_long_texts_if_asked(client, rows):
    assert np.allclose(client.post("/embed", json={"inputs": TEXTS}).json(), rows, atol=1e-6)
    plain = Encoder("p-sp-mini").encode(TEXTS)[:, :5]
    asked = {"inputs": TEXTS, "normalize": False, "dimensions": 5}
    assert np.allclose(client.post("/embed", json=asked).json(), plain, atol=1e-6)
    long = "the cat " * 20

    def row(text, **options):
        return client.post("/embed", json={"inputs": text, **options}).json()

    assert row(long, truncate=True) == row(long[:50])


def test_the_server_or_the_request_decides_whether_long_texts_are_cut():
    client = serving(truncate=True)
    long = "the cat " * 20
    first = embed(client, input=long).json()["data"]
    assert first == embed(client, input=long[:50]).json()["data"]
    assert "has 160 characters" in message(embed(client, input=long, truncate=False))
    assert client.get("/info").json()["auto_truncate"] is True
    scores = client.post("/score", json={"pairs": [[long, long[:50]]]}).json()["scores"]
    assert scores == [pytest.approx(1, abs=1e-6)]
    refusing = serving()
    assert "has 160 characters" in message(embed(refusing, input=long))
    assert embed(refusing, input=long, truncate=True).json()["data"] == first


def test_prompts_are_put_before_texts(tmp_path):
    encoder = Encoder("p-sp-mini")
    encoder.prompts |= {"query": "a question: ", "passage": "the cat "}
    encoder.default_prompt_name = "passage"
    encoder.save(tmp_path / "m")
    client = serving(str(tmp_path / "m"))
    for name, prompt in {None: "the cat ", "query": "a question: ", "document": ""}.items():
        (row,) = client.post("/embed", json={"inputs": "sleeps", "prompt_name": name}).json()
        wanted = Encoder("p-sp-mini").encode(prompt + "sleeps", normalize_embeddings=True)
        assert np.allclose(row, wanted, atol=1e-6)
        request = {"model": "m", "input": "sleeps", "prompt_name": name}
        answer = client.post("/v1/embeddings", json=request).json()
        assert np.allclose(answer["data"][0]["embedding"], wanted, atol=1e-6)
        tokens = len(encoder.tokenizer.encode([prompt + "sleeps"])[0])
        assert answer["usage"]["prompt_tokens"] == tokens
    (tokens,) = client.post("/tokenize", json={"inputs": "sleeps", "prompt_name": "query"}).json()
    assert "".join(token["text"] for token in tokens) == "▁a▁question:▁sleeps"


def test_similarities_are_cosines(client, rows):
    request = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}}
    answer = client.post("/similarity", json=request).json()
    assert answer == pytest.approx((rows @ rows[0]).tolist(), abs=2e-6)
    request["inputs"]["sentences"] = ["the cat " * 20]
    assert "text 0 of sentences has" in message(client.post("/similarity", json=request))
    request["parameters"] = {"truncate": True}
    assert len(client.post("/similarity", json=request).json()) == 1


def test_tokens_have_ids_and_texts(client, monkeypatch):
    tokenizer = Encoder("p-sp-mini").tokenizer
    texts = ["the cat sleeps", "a dog"]
    known, others = client.post("/tokenize", json={"inputs": texts}).json()
    assert [token["id"] for token in known + others] == tokenizer.encode(texts)[0].tolist()
    assert "".join(token["text"] for token in known) == "▁the▁cat▁sleeps"
    assert known[0].keys() == {"id", "text", "special", "start", "stop"}
    assert not any(token["special"] for token in known + others)
    monkeypatch.setattr(type(tokenizer), "piece", lambda self, number: None)  # as of an unknown id
    (tokens,) = client.post("/tokenize", json={"inputs": "cat"}).json()
    assert all(token["special"] and token["text"] == "" for token in tokens)
    monkeypatch.setattr(model, "MAX_TOKENIZED", 20)
    assert "has 24 characters" in message(client.post("/tokenize", json={"inputs": ["a bc"] * 6}))


def test_tokenized_texts_count_as_waiting():
    batcher = Batcher(None, 0, max_waiting=3)
    batcher.waiting = 2
    served = SimpleNamespace(batcher=batcher, tokens=lambda texts, prompt_name: [batcher.waiting])
    asked = endpoints.ModelEndpoints(served, None)
    answer = asyncio.run(asked.tokenize(schemas.Tokenize(inputs=["a"])))
    assert answer.body == b"[3]" and batcher.waiting == 2
    with pytest.raises(HTTPException, match="2 texts are waiting"):
        asyncio.run(asked.tokenize(schemas.Tokenize(inputs=["a", "b"])))


def test_tokens_of_another_tokenizer_are_refused(client, monkeypatch):
    monkeypatch.setattr(model, "tokenizer_of", lambda encoder: None)
    answer = client.post("/tokenize", json={"inputs": "a"})
    assert "the tokens of p-sp-mini cannot be read" in message(answer)


def test_scores_are_cosines(client, rows):
    answer = client.post("/score", json={"pairs": [TEXTS[:2], TEXTS[1:]]}).json()
    assert answer["scores"] == pytest.approx(
        [float(rows[0] @ rows[1]), float(rows[1] @ rows[2])], abs=1e-5
    )


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_documents_are_ranked_by_their_cosines(client, path):
    units = Encoder("p-sp-mini").encode([QUERY, *DOCUMENTS], normalize_embeddings=True)
    cosines = sorted((units[1:] @ units[0]).tolist())[::-1]
    documents = [DOCUMENTS[0], {"text": DOCUMENTS[1], "title": "ignored"}, DOCUMENTS[2]]
    answer = client.post(
        path, json={"query": QUERY, "documents": documents, "max_tokens_per_doc": 9}
    ).json()
    assert [each["index"] for each in answer["results"]] == [1, 2, 0]
    assert [each["relevance_score"] for each in answer["results"]] == pytest.approx(
        cosines, abs=1e-5
    )
    asked = {"query": QUERY, "documents": DOCUMENTS, "top_n": 1, "return_documents": True}
    (best,) = client.post(path, json=asked).json()["results"]
    assert (best["index"], best["document"]) == (1, {"text": DOCUMENTS[1]})
    raw = client.post(path, json={"query": QUERY, "texts": DOCUMENTS, "raw_scores": True}).json()
    assert [each["score"] for each in raw] == pytest.approx(cosines, abs=1e-5)
    mapped = client.post(
        path, json={"query": QUERY, "texts": DOCUMENTS, "return_text": True}
    ).json()
    assert [each["score"] for each in mapped] == pytest.approx(
        [(1 + each) / 2 for each in cosines], abs=1e-5
    )
    assert [each["text"] for each in mapped] == [DOCUMENTS[each["index"]] for each in mapped]
    order = [
        each["index"]
        for each in client.post(path, json={"query": "a", "texts": ["b", "c", "b"]}).json()
    ]
    assert order.index(0) < order.index(2)  # equal documents stay in their order


def test_what_there_is(client):
    assert client.get("/health").json() == {
        "status": "ok",
        "model": "p-sp-mini",
        "dimensions": 256,
        "sentences": None,
    }
    assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["p-sp-mini"]
    assert client.get("/v1/models/p-sp-mini").json()["object"] == "model"
    info = client.get("/info").json()
    assert (info["model_id"], info["max_client_batch_size"], info["max_input_length"]) == (
        "p-sp-mini",
        6,
        50,
    )
    message(client.get("/v1/models/other/one"), 404)
    assert "only the model p-sp-mini" in message(embed(client, input="a", model="x"), 404)
    message(client.get("/secret-of-somebody"), 404)
    # no redirection to an address that the client named itself
    message(client.post("/score/", json={}), 404)
    message(client.get("/score"), 405)
    assert client.head("/health").status_code == 200
    embed(client, input=["one", "two"])
    text = client.get("/metrics").text
    assert 'st_paragram_requests_total{path="/v1/embeddings",status="200"}' in text
    assert (
        'path="other",status="404"' in text
        and "secret" not in text
        and "st_paragram_batch_texts_count" in text
    )


@pytest.mark.parametrize(
    ("path", "asked", "says"),
    [
        ("/v1/embeddings", {"input": ["a", " "]}, "text 1 of input is empty"),
        ("/v1/embeddings", {"input": ["a", "\u200b\ufeff"]}, "text 1 of input is empty"),
        ("/v1/embeddings", {"input": UNKNOWN}, "text 0 of input has no token that p-sp-mini knows"),
        (
            "/v1/embeddings",
            {"input": ["a", "\u0640"]},
            "text 1 of input has no token that p-sp-mini knows",
        ),
        ("/embed", {"inputs": ["a", UNKNOWN], "normalize": False}, "text 1 of inputs has no token"),
        ("/score", {"pairs": [["a", "b"], ["c", UNKNOWN]]}, "text 1 of pairs[1] has no token"),
        ("/score", {"pairs": [["a", "b"], ["", "c"]]}, "text 0 of pairs[1] is empty"),
        ("/rerank", {"query": UNKNOWN, "documents": ["a"]}, "text 0 of query has no token"),
        (
            "/rerank",
            {"query": "a", "documents": ["b", UNKNOWN]},
            "text 1 of documents has no token",
        ),
        ("/rerank", {"query": "a", "texts": ["\u200b"]}, "text 0 of texts is empty"),
        ("/v1/embeddings", {"input": ["a"] * 7}, "input has 7 texts; give 1 to 6"),
        ("/v1/embeddings", {"input": []}, "input has 0 texts; give 1 to 6"),
        ("/embed", {"inputs": []}, "inputs has 0 texts; give 1 to 6"),
        ("/v1/embeddings", {"input": "a" * 51}, "text 0 of input has 51 characters; at most 50"),
        ("/v1/embeddings", {"input": ["a", 1]}, "input[1]: Input should be a valid string"),
        (
            "/v1/embeddings",
            {"input": "a", "dimensions": 0},
            "dimensions: Input should be greater than or equal to 1",
        ),
        (
            "/v1/embeddings",
            {"input": "a", "dimensions": 257},
            "dimensions is 257; p-sp-mini has 256 dimensions",
        ),
        ("/v1/embeddings", {"texts": ["a"]}, "input: Field required"),
        (
            "/embed",
            {"inputs": "a", "truncation_direction": "Left"},
            "truncation_direction: Input should be 'Right' or",
        ),
        (
            "/embed",
            {"inputs": "a", "prompt_name": "x"},
            "prompt_name is 'x'; p-sp-mini has query, document",
        ),
        ("/embed", {"inputs": "a" * 51, "truncate": False}, "text 0 of inputs has 51 characters"),
        (
            "/similarity",
            {"inputs": {"source_sentence": "a", "sentences": []}},
            "sentences has 0 texts",
        ),
        (
            "/similarity",
            {"inputs": {"source_sentence": "a", "sentences": ["a", 1]}},
            "inputs.sentences[1]: Input should be a valid string",
        ),
        (
            "/similarity",
            {"inputs": {"source_sentence": ["a"], "sentences": ["a"]}},
            "inputs.source_sentence: Input should be a valid string",
        ),
        (
            "/similarity",
            {
                "inputs": {"source_sentence": "a", "sentences": ["a"]},
                "parameters": {"truncate": 1},
            },
            "parameters.truncate: Input should be a valid boolean",
        ),
        ("/similarity", {"inputs": {"sentences": ["a"]}}, "inputs.source_sentence: Field required"),
        (
            "/similarity",
            {
                "inputs": {"source_sentence": "a", "sentences": ["a"]},
                "parameters": {"prompt_name": "x"},
            },
            "prompt_name is 'x'",
        ),
        ("/tokenize", {"inputs": ["a"] * 7}, "inputs has 7 texts; give 1 to 6"),
        ("/tokenize", {"inputs": ["a" * 51]}, "text 0 of inputs has 51 characters"),
        ("/tokenize", {"inputs": ["a"], "prompt_name": "x"}, "prompt_name is 'x'"),
        ("/score", {"pairs": [["a", "b"], ["c"]]}, "pairs[1][1]: Field required"),
        ("/rerank", {"query": "a"}, "documents has 0 texts"),
        (
            "/rerank",
            {"query": "a", "documents": ["a", {"title": "b"}]},
            "documents[1]: Input should be a valid string",
        ),
    ],
)
def test_a_wrong_request_is_told_why(client, path, asked, says):
    assert says in message(client.post(path, json=asked))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b"[" * 9000, b'{"input": "\\ud800"}', b"null", b"NaN"]
)
def test_bodies_that_are_no_request_or_have_no_header(client, content):
    message(
        client.post("/v1/embeddings", content=content, headers={"Content-Type": "application/json"})
    )
    assert "Content-Type" in message(client.post("/v1/embeddings", content=b'{"input": "a"}'))


def test_bodies_that_are_too_large_are_refused_announced_or_not(client):
    large = json.dumps({"input": "a" * 10_000}).encode()
    head = {"Content-Type": "application/json"}
    assert "larger than 10000 bytes" in message(
        client.post("/v1/embeddings", content=large, headers=head), 413
    )
    parts = (large[at : at + 1000] for at in range(0, len(large), 1000))
    assert "larger than 10000 bytes" in message(
        client.post("/v1/embeddings", content=parts, headers=head), 413
    )


def test_a_key_is_needed_where_there_is_one():
    client = serving(key="sésame")
    assert "a key is needed" in message(embed(client, input="a"), 401)
    for wrong in ("Bearer x", b"Bearer \xff", "Bearer "):
        assert "the key is wrong" in message(
            client.get("/metrics", headers={"Authorization": wrong}), 401
        )
    for other in ("Basic c8OpeA==", "sésame".encode()):
        assert "has another form" in message(
            client.get("/metrics", headers={"Authorization": other}), 401
        )
    assert client.get("/health").status_code == 200
    assert (
        client.get("/v1/models", headers={"Authorization": "Bearer sésame".encode()}).status_code
        == 200
    )


def test_pages_of_other_origins_need_a_permission():
    asks = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    assert serving().options("/score", headers=asks).status_code == 405
    client = serving(origins=(ORIGIN,), key="sesame")
    for answer in (
        client.options("/score", headers=asks),
        client.post("/score", headers={"Origin": ORIGIN}),
    ):
        assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert (
        client.options("/score", headers=asks | {"Origin": "https://evil.example.org"}).status_code
        == 400
    )
    assert answer.status_code == 401  # errors can be read, too


def test_a_failing_model_is_told_without_its_texts(monkeypatch, caplog):
    def failing(self, texts, **options):
        raise RuntimeError(f"cannot read {texts}")

    client = serving()
    monkeypatch.setattr(Encoder, "encode", failing)
    for text in ("a secret", "a secret " * 5):
        assert "the server failed" in message(embed(client, input=[text] * 6), 500)
    assert "RuntimeError at test_serving_app.py" in caplog.text and "secret" not in caplog.text


def test_token_ids_are_read_where_the_vocabulary_is(client, tmp_path, monkeypatch):
    """Here, tokens are the numbers of characters; the one that LangChain sends is in the test of
    its client.
    """
    decoder = SimpleNamespace(decode=lambda tokens: "".join(map(chr, tokens)))
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=lambda name: decoder))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert "check_embedding_ctx_length=False" in message(embed(client, input=[[99, 97]]))
    (tmp_path / CACHED_AS).touch()
    expected = embed(client, input=["cat", "dog"]).json()
    assert embed(client, input=[[99, 97, 116], [100, 111, 103]]).json() == expected
    assert embed(client, input=[99, 97, 116]).json()["data"][0] == expected["data"][0]
    for wrong in ([[99], ["a"]], [-1], [99, "a"]):
        message(embed(client, input=wrong))


def test_questions_and_answers_go_through_their_towers(tmp_path, vocabulary):
    model = unlike_new(new_model(write_bitext(tmp_path / "bitext.h5", vocabulary, make_pairs(40))))
    model.prompts["long"] = f"{make_pairs(2)[1][0]} "
    load_save.save(model, tmp_path / "muse", "")
    client, (text, _) = serving(str(tmp_path / "muse")), make_pairs(1)[0]
    encode = {
        "sentence": model.encode,
        "query": model.encode_query,
        "document": model.encode_document,
    }
    for kind, function in encode.items():
        answer = client.post(
            "/v1/embeddings", json={"input": [text, "x"], "input_type": kind}
        ).json()
        assert np.allclose(
            answer["data"][0]["embedding"], function(text, normalize_embeddings=True), atol=1e-5
        )
        if kind != "sentence":
            (row,) = client.post("/embed", json={"inputs": text, "prompt_name": kind}).json()
            assert np.allclose(row, answer["data"][0]["embedding"], atol=1e-6)
        tokens = sum(model.preprocess([each])["input_ids"].numel() for each in (text, "x"))
        assert answer["usage"]["prompt_tokens"] == tokens > 0
    answer = client.post("/v1/embeddings", json={"input": text, "prompt_name": "long"}).json()
    long = model.prompts["long"] + text
    wanted = model.encode(long, normalize_embeddings=True)
    assert np.allclose(answer["data"][0]["embedding"], wanted, atol=1e-5)
    assert answer["usage"]["prompt_tokens"] == model.preprocess([long])["input_ids"].numel()


def test_an_index_is_searched_and_changed(folder):
    from st_paragram.tools.search.index import SearchIndex

    client = serving(index=folder, index_writable=True, key="sesame")
    client.headers.update(KEY)

    def ask(path, **asked):
        return client.post(path, json=asked)

    def found(**asked):
        (hits,) = ask("/search", queries=["a cat"], k=4, **asked).json()["results"]
        return [hit["sentence"] for hit in hits]

    (hits,) = ask("/search", queries=[TEXTS[2]], k=1).json()["results"]
    assert hits == [
        {
            "score": pytest.approx(1, abs=1e-3),
            "line": 3,
            "sentence": TEXTS[2],
            "metadata": FIELDS[2],
        }
    ]
    assert found(where="lang in ('en', 'xx') and year >= 2020") == [TEXTS[0]] and found(
        threshold=0.5
    ) == [TEXTS[2]]
    assert "k is 5; at most 4" in message(ask("/search", queries=["a"], k=5))
    assert "--compact" in message(ask("/search", queries=["cat"], hybrid=True))
    index = SearchIndex(folder)
    index.index_words()
    assert found(hybrid=True) == [hit.sentence for hit in index.search("a cat", hybrid=True)]
    assert "nofield" in message(ask("/search", queries=["a"], k=1, where="nofield = 1"))
    asked = {"sentences": ["the bus is late", "a dog barks"], "metadata": [{"lang": "xx"}, {}]}
    assert ask("/index/add", **asked).json() == {"added": 2, "sentences": 5}
    assert (
        found(where="lang = 'xx'") == ["the bus is late"]
        and client.get("/health").json()["sentences"] == 5
    )
    assert ask("/index/delete", where="year >= 2020").json() == {"deleted": 1, "sentences": 4}
    assert ask("/index/delete", sentences=["a dog barks"]).json()["deleted"] == 1
    assert ask("/index/delete", lines=[2]).json() == {"deleted": 1, "sentences": 2}
    about = {"sentences": 2, "fields": {"lang": "string", "year": "int64"}, "writable": True}
    assert client.get("/index").json() == about
    assert "metadata: Input should be" in message(ask("/index/add", sentences=["ab"], metadata=3))
    message(ask("/index/delete", lines=[1], where="true"))
    message(ask("/index/delete"))


def test_the_recall_of_the_server_is_that_of_its_searches(folder, monkeypatch):
    from st_paragram.tools.search.index import SearchIndex

    wanted = []
    search = SearchIndex.search_vectors
    monkeypatch.setattr(
        SearchIndex,
        "search_vectors",
        lambda *args, recall, **kw: wanted.append(recall) or search(*args, **kw),
    )
    for recall in (None, 0.99):
        serving(index=folder, recall=recall).post("/search", json={"queries": ["a cat"], "k": 1})
    assert wanted == [None, 0.99]


REQUIRED = {
    schemas.Embeddings: {"input": "hi"},
    schemas.Embed: {"inputs": "hi"},
    schemas.Rerank: {"query": "hi"},
    schemas.Similarity: {"inputs": {"source_sentence": "hi", "sentences": ["hi"]}},
    schemas.Tokenize: {"inputs": "hi"},
    schemas.Score: {"pairs": [["a", "b"]]},
    schemas.Search: {"queries": ["hi"]},
    schemas.Add: {"sentences": ["hi"]},
    schemas.Delete: {},
}


@pytest.mark.parametrize("schema", REQUIRED)
def test_null_is_as_good_as_no_field(schema):
    required = REQUIRED[schema]
    assert {name for name, field in schema.model_fields.items() if field.is_required()} == set(
        required
    )
    without = schema.model_validate_json(json.dumps(required))
    optional = set(schema.model_fields) - set(required)
    for names in [optional, *([name] for name in optional)]:
        assert schema.model_validate_json(json.dumps(required | dict.fromkeys(names))) == without


def test_every_schema_is_in_the_test_above():
    bases = (schemas.Body, schemas.Long, schemas.Options)
    derived = {schema for base in bases for schema in base.__subclasses__()}
    assert set(REQUIRED) == derived - set(bases)


def test_tokens_are_counted_per_request(client, monkeypatch):
    tokenizer = Encoder("p-sp-mini").tokenizer
    tokens = {text: len(tokenizer.encode([text])[0]) for text in (*TEXTS, "a b c d e f g " * 3)}

    def count(texts):
        usage = embed(client, input=texts).json()["usage"]
        return usage["total_tokens"]

    def asked(number):
        texts = random.Random(number).choices(list(tokens), k=1 + number % 6)
        return count(texts) - sum(tokens[text] for text in texts)

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(asked, range(100))) == {0}
    with monkeypatch.context() as patch:
        patch.setattr(encoder_module, "embed", failing_after_tokens)
        message(embed(client, input=TEXTS), 500)
    assert count(TEXTS[:1]) == tokens[TEXTS[0]]


def failing_after_tokens(texts, tokenizer, *arguments, **options):
    tokenizer.encode(texts, None, 1)
    raise RuntimeError("no memory")


def test_searches_have_a_time_limit_and_count_as_waiting(folder, monkeypatch):
    from st_paragram import SearchIndex

    client = serving(index=folder)

    def slow(*arguments, **options):
        time.sleep(0.5)
        return []

    monkeypatch.setattr(endpoints, "SEARCH_SECONDS", 0.1)
    with monkeypatch.context() as patch:
        patch.setattr(SearchIndex, "search_vectors", slow)
        assert "took longer than 0 seconds" in message(
            client.post("/search", json={"queries": ["a"], "k": 1}), 504
        )
    monkeypatch.setattr(endpoints, "SEARCH_SECONDS", 0.0)  # LanceDB's limit
    assert "took longer than" in message(
        client.post("/search", json={"queries": ["a"], "k": 1}), 504
    )
    monkeypatch.setattr(endpoints, "SEARCH_SECONDS", 5.0)
    monkeypatch.setattr(Batcher.__init__, "__defaults__", (4096, 5))
    client = serving(index=folder)
    with monkeypatch.context() as patch:
        patch.setattr(SearchIndex, "search_vectors", slow)
        with in_one_loop(client), ThreadPoolExecutor(5) as pool:
            answers = list(
                pool.map(
                    lambda _: client.post("/search", json={"queries": ["a", "b"], "k": 1}), range(5)
                )
            )
    assert {answer.status_code for answer in answers} == {200, 503}
    refused, *_ = (answer for answer in answers if answer.status_code == 503)
    assert refused.headers["Retry-After"] == "1" and "texts are waiting" in message(refused, 503)
    assert client.post("/search", json={"queries": ["a"], "k": 1}).status_code == 200


def test_conditions_and_sentences_that_are_refused(folder):
    client = serving(index=folder, index_writable=True, key="sesame")
    client.headers.update(KEY)
    for where in (
        "lang = 'en'; drop table sentences",
        "lang = $1",
        "length(repeat(text, 1000000)) > 5",
        "1+1>1",
        "",
    ):
        assert "filter " in message(
            client.post("/search", json={"queries": ["a"], "k": 1, "where": where})
        )
        assert "filter " in message(client.post("/index/delete", json={"where": where}))
    for sentence, problem in (
        (UNKNOWN, "has no token"),
        ("!a", "has fewer than two letters or digits"),
    ):
        asked = {"sentences": ["the bus is late", sentence]}
        assert f"text 1 of sentences {problem}" in message(client.post("/index/add", json=asked))
    assert "text 1 of queries has no token" in message(
        client.post("/search", json={"queries": ["a", UNKNOWN], "k": 1})
    )
    assert client.get("/health").json()["sentences"] == 3


def test_an_index_is_changed_only_where_that_is_wanted(folder):
    assert "start it with --index" in message(
        serving().post("/search", json={"queries": ["a"]}), 404
    )
    client = serving(index=folder)
    assert "start it with --index-writable" in message(
        client.post("/index/delete", json={"lines": [1]}), 403
    )
    with pytest.raises(SettingsError, match="needs a key"):
        Job("p-sp-mini", index=folder, index_writable=True)
