"""Clients that people use, against a server that really listens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

for package in ("httptools", "orjson", "prometheus_client", "uvicorn"):
    pytest.importorskip(package)

from st_paragram.core.encoding.models import load_encoder  # noqa: E402
from st_paragram.tools.serving.schemas import CACHED_AS  # noqa: E402

pytestmark = pytest.mark.slow

TEXTS = ["where is the station?", "¿dónde está la estación?", "the cat sleeps"]
NAME = "p-sp-mini"


@pytest.fixture(scope="module")
def url():
    """A server that may find tiktoken's vocabulary where LlamaIndex has it."""
    with pytest.MonkeyPatch.context() as patch:
        if (vocabularies := _vocabularies()) is not None:
            patch.setenv("TIKTOKEN_CACHE_DIR", str(vocabularies))
        command = [sys.executable, "-m", "st_paragram.cli.main", "serve", NAME, "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            yield re.search(r"http://\S+", server.stdout.readline())[0]
        finally:
            server.terminate()
            server.communicate(timeout=60)


def _vocabularies() -> Path | None:
    try:
        import llama_index.core
    except ImportError:
        return None
    folder = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    return folder if (folder / CACHED_AS).is_file() else None


@pytest.fixture(scope="module")
def rows():
    return np.asarray(load_encoder(NAME).encode(TEXTS, normalize_embeddings=True))


def test_openai(url, rows):
    openai = pytest.importorskip("openai", reason="openai is in the extra examples")
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    answer = client.embeddings.create(model=NAME, input=TEXTS)
    assert np.allclose([each.embedding for each in answer.data], rows, atol=1e-6)
    assert [each.id for each in client.models.list()] == [NAME]


def test_langchain_with_texts(url, rows):
    langchain = pytest.importorskip(
        "langchain_openai", reason="langchain-openai is in the extra examples"
    )
    embeddings = langchain.OpenAIEmbeddings(
        base_url=f"{url}/v1", api_key="none", model=NAME, check_embedding_ctx_length=False
    )
    assert np.allclose(embeddings.embed_documents(TEXTS), rows, atol=1e-6)
    assert np.allclose(embeddings.embed_query(TEXTS[0]), rows[0], atol=1e-6)


def test_langchain_with_token_numbers(url, rows, monkeypatch):
    langchain = pytest.importorskip(
        "langchain_openai", reason="langchain-openai is in the extra examples"
    )
    if (vocabularies := _vocabularies()) is None:
        pytest.skip("tiktoken's vocabulary is taken from llama-index-core, which is not installed")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocabularies))
    embeddings = langchain.OpenAIEmbeddings(base_url=f"{url}/v1", api_key="none", model=NAME)
    assert np.allclose(embeddings.embed_documents(TEXTS), rows, atol=1e-6)


def test_llama_index_like_openai(url, rows):
    like = pytest.importorskip(
        "llama_index.embeddings.openai_like",
        reason="llama-index-embeddings-openai-like is in the extra examples",
    )
    embeddings = like.OpenAILikeEmbedding(model_name=NAME, api_base=f"{url}/v1", api_key="none")
    assert np.allclose(embeddings.get_text_embedding_batch(TEXTS), rows, atol=1e-6)


def test_llama_index_like_text_embeddings_inference(url, rows):
    inference = pytest.importorskip(
        "llama_index.embeddings.text_embeddings_inference",
        reason="llama-index-embeddings-text-embeddings-inference is in the extra examples",
    )
    embeddings = inference.TextEmbeddingsInference(model_name=NAME, base_url=url)
    assert np.allclose(embeddings.get_text_embedding_batch(TEXTS), rows, atol=1e-6)


def test_hugging_faces_client(url, rows, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    # this machine is not the hub
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    client = hub.InferenceClient(model=f"{url}/embed")
    assert np.allclose(client.feature_extraction(TEXTS[0], truncate=True), rows[:1], atol=1e-6)
    client = hub.InferenceClient(model=f"{url}/similarity")
    cosines = client.sentence_similarity(TEXTS[0], other_sentences=TEXTS[1:])
    assert cosines == pytest.approx((rows[1:] @ rows[0]).tolist(), abs=1e-5)


@pytest.mark.parametrize("version", ["Client", "ClientV2"])
def test_cohere(url, rows, version):
    cohere = pytest.importorskip("cohere", reason="cohere is in the extra examples")
    client = getattr(cohere, version)(base_url=url, api_key="none")
    results = client.rerank(model=NAME, query=TEXTS[0], documents=TEXTS[1:], top_n=2).results
    assert [each.index for each in results] == [0, 1]
    assert [each.relevance_score for each in results] == pytest.approx(
        (rows[1:] @ rows[0]).tolist(), abs=1e-5
    )
