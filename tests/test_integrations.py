"""The examples of docs/integrations.md: each section runs after the first one, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import re
import sqlite3
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer
from support.data import make_pairs
from support.dual_encoder import new_model, unlike_new, write_bitext

from st_paragram.learning.models import directory as model_directory

PAGE = Path(__file__).parents[1] / "docs" / "integrations.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PRINTED = re.compile(r"^# prints: (.*)$", re.MULTILINE)
PACKAGES = {
    "FAISS": "faiss",
    "Qdrant": "qdrant_client",
    "LanceDB": "lancedb",
    "sqlite-vec": "sqlite_vec",
    "LangChain": "langchain_huggingface",
    "LlamaIndex": "llama_index.core",
}


def sections() -> dict[str, str]:
    """Heading -> the Python below it."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {title: "\n".join(BLOCK.findall(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def run(code: str, names: dict[str, object]) -> str:
    """What the code prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, str(PAGE), "exec"), names)
    return printed.getvalue()


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The folder with the model, and the names that all examples begin with."""
    folder, names = tmp_path_factory.mktemp("integrations"), {"__name__": "page"}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        code = sections()["Sentences and vectors"]
        assert run(code, names).splitlines() == PRINTED.findall(code)
    return folder, names


def test_each_section_with_an_example_is_tested():
    assert {title for title, code in sections().items() if code} == {"Sentences and vectors", *PACKAGES}


@pytest.mark.parametrize("title", PACKAGES)
def test_the_nearest_sentence_is_the_one_on_the_page(title, first, monkeypatch):
    pytest.importorskip(PACKAGES[title])
    if title == "sqlite-vec" and not hasattr(sqlite3.Connection, "enable_load_extension"):
        pytest.skip("this Python's sqlite3 loads no extensions")
    folder, names = first
    monkeypatch.chdir(folder)
    code = sections()[title]
    (expected,) = PRINTED.findall(code)
    assert expected in names["sentences"]
    assert run(code, dict(names)) == f"{expected}\n"


@pytest.fixture(scope="module")
def dual_encoder(tmp_path_factory, vocabulary):
    """The directory of a small dual encoder whose towers differ."""
    folder = tmp_path_factory.mktemp("dual")
    model = unlike_new(new_model(write_bitext(folder / "bitext.h5", vocabulary, make_pairs(40))))
    model_directory.save(model, folder / "muse", "")
    return folder / "muse"


def test_langchain_goes_through_the_towers(dual_encoder, first):
    pytest.importorskip("langchain_huggingface")
    code = sections()["LangChain"].replace('"p-sp-mini"', repr(str(dual_encoder)))
    names = dict(first[1])
    run(code, names)
    same_towers(names["embeddings"].embed_query, names["embeddings"].embed_documents, dual_encoder)


def test_llamaindex_goes_through_the_towers(dual_encoder, first):
    pytest.importorskip("llama_index.core")
    names = dict(first[1])
    names["model"] = SentenceTransformer(str(dual_encoder), device="cpu")
    run(sections()["LlamaIndex"], names)
    embed = names["embed_model"]
    same_towers(embed.get_query_embedding, embed.get_text_embedding_batch, dual_encoder)


def same_towers(embed_query, embed_texts, folder):
    """Both ways are those of the model's towers, which differ."""
    model, text = SentenceTransformer(str(folder), device="cpu"), make_pairs(1)[0][0]
    question, answer = model.encode_query(text), model.encode_document(text)
    assert abs(question - answer).max() > 1e-3
    assert embed_query(text) == pytest.approx(question.tolist(), abs=1e-5)
    assert embed_texts([text])[0] == pytest.approx(answer.tolist(), abs=1e-5)


def test_llamaindex_has_not_learnt_to_open_averaging_models(first):
    """If this fails, the page need no longer show a class of its own."""
    base = pytest.importorskip("llama_index.embeddings.huggingface")
    folder = str(first[0] / "p-sp-mini")
    with pytest.raises(ValueError, match="finite number"):
        base.HuggingFaceEmbedding(folder, device="cpu")
    with pytest.raises(AttributeError, match="max_seq_length"):
        base.HuggingFaceEmbedding(folder, device="cpu", max_length=512)
