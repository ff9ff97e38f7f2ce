"""The examples of docs/integrations.md: each section runs after the first one, and prints what the
page says.
"""

from __future__ import annotations

import contextlib
import io
import re
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support.data import make_pairs
from support.dual_encoder import new_model, unlike_new, write_bitext

from st_paragram.learning.models import load_save

PAGE = Path(__file__).parents[1] / "docs" / "integrations.md"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PRINTED = re.compile(r"^# prints: (.*)$", re.MULTILINE)
PACKAGES = {
    "FAISS": "faiss",
    "Qdrant": "qdrant_client",
    "LanceDB": "lancedb",
    "sqlite-vec": "sqlite_vec",
    "Chroma": "chromadb",
    "LangChain": "langchain_huggingface",
    "LlamaIndex": "llama_index.embeddings.huggingface",
    "Haystack": "haystack_integrations.components.embedders.sentence_transformers",
    "txtai": "txtai",
    "scikit-learn": "sklearn",
    "KeyBERT": "keybert",
    "BERTopic": "bertopic",
    "SetFit": "setfit",
}
SLOW = ("Chroma", "Haystack", "txtai", "KeyBERT", "BERTopic", "SetFit")
# What a library made of the page's sentences, from the names of its example.
VECTORS: dict[str, Callable[[dict[str, Any]], list[Any]]] = {
    "Chroma": lambda names: [
        names["texts"].get([str(row) for row in range(12)], include=["embeddings"])["embeddings"]
    ],
    "LangChain": lambda names: [names["embeddings"].embed_documents(names["sentences"])],
    "LlamaIndex": lambda names: [names["embed_model"].get_text_embedding_batch(names["sentences"])],
    "Haystack": lambda names: [
        [document.embedding for document in names["documents"]["documents"]]
    ],
    "txtai": lambda names: [
        names[each].batchtransform(names["sentences"], "data") for each in ("embeddings", "light")
    ],
    "scikit-learn": lambda names: [names["classifier"][0].transform(names["sentences"])],
    "KeyBERT": lambda names: [
        names[each].model.embed(names["sentences"]) for each in ("keywords", "light")
    ],
    "BERTopic": lambda names: [
        names[each].embedding_model.embed(names["sentences"]) for each in ("topics", "light")
    ],
}


def titles(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names]


def sections() -> dict[str, str]:
    """Heading -> the Python below it."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        title: "\n".join(BLOCK.findall(text))
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


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


@pytest.fixture(scope="module")
def ran(first):
    """Run the example of a section, once: what it prints, and its names."""
    done: dict[str, tuple[list[str], dict[str, Any]]] = {}

    def run_once(title: str) -> tuple[list[str], dict[str, Any]]:
        pytest.importorskip(PACKAGES[title])
        if title == "sqlite-vec" and not hasattr(sqlite3.Connection, "enable_load_extension"):
            pytest.skip("this Python's sqlite3 loads no extensions")
        if title not in done:
            folder, names = first[0], dict(first[1])
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(folder)
                patch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
                done[title] = run(sections()[title], names).splitlines(), names
        return done[title]

    return run_once


@pytest.mark.parametrize("title", titles(PACKAGES))
def test_an_example_prints_what_the_page_says(title, ran):
    assert {name for name, code in sections().items() if code} == {
        "Sentences and vectors",
        *PACKAGES,
    }
    expected = PRINTED.findall(sections()[title])
    assert expected
    assert ran(title)[0][-len(expected) :] == expected  # trainers also print


@pytest.mark.parametrize("title", titles(VECTORS))
def test_the_vectors_are_those_of_our_model(title, ran):
    """Some libraries load another model without a word if they do not know the object that they are
    given.
    """
    names = ran(title)[1]
    for found in VECTORS[title](names):
        rows = np.asarray(found)
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        np.testing.assert_allclose(rows, names["vectors"], atol=1e-6)


@pytest.fixture(scope="module")
def dual_encoder(tmp_path_factory, vocabulary):
    """The directory of a small dual encoder whose towers differ."""
    folder = tmp_path_factory.mktemp("dual")
    model = unlike_new(
        new_model(write_bitext(folder / "bitext.h5", vocabulary, make_pairs(40)), "transformer")
    )
    load_save.save(model, folder / "muse", "")
    return folder / "muse"


@pytest.mark.parametrize("title", ["LangChain", "LlamaIndex"])
def test_queries_and_texts_go_through_their_towers(title, dual_encoder, first):
    pytest.importorskip(PACKAGES[title])
    model, text = SentenceTransformer(str(dual_encoder), device="cpu"), make_pairs(1)[0][0]
    names = dict(first[1]) | {"model": model}
    run(sections()[title].replace('"p-sp-mini"', repr(str(dual_encoder))), names)
    if title == "LangChain":
        asked, answered = (
            names["embeddings"].embed_query(text),
            names["embeddings"].embed_documents([text])[0],
        )
    else:
        asked, answered = (
            getattr(names["embed_model"], f"get_{kind}_embedding")(text)
            for kind in ("query", "text")
        )
    assert asked == pytest.approx(model.encode_query(text).tolist(), abs=1e-5)
    assert answered == pytest.approx(model.encode_document(text).tolist(), abs=1e-5) != asked
