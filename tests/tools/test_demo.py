"""The demo page: what its tabs answer, what they refuse, and that it is served."""

from __future__ import annotations

import socket
import urllib.request
from importlib.util import find_spec
from urllib.parse import urlparse

import pytest

import st_paragram
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.errors import ModelDirectoryError, ParagramError, SettingsError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.tools import demo

# not imported here: that takes seconds, and only two tests need it
pytestmark = pytest.mark.skipif(find_spec("gradio") is None, reason="needs gradio")


@pytest.fixture(scope="module")
def mini():
    return st_paragram.Encoder("p-sp-mini")


def test_a_comparison_has_colors_and_numbers(mini):
    said, colors, rows, *_ = demo.show_comparison(mini, " <b>Hello</b> ", "Hallo")
    found = st_paragram.compare(mini, "<b>Hello</b>", "Hallo")
    assert said.startswith(f"### Cosine: {found.cosine:.3f}\n") and "sum to the cosine" in said
    assert max(abs(strength) for _, strength in colors) == 1 and [text for text, _ in colors] == [
        row[0] for row in rows[:-1]
    ]
    assert rows[-1] == ["sum", f"{found.cosine:+.4f}"]


def test_nearest_sentences_come_best_first_and_equal_ones_in_order(mini):
    found = demo.nearest(mini, "a dog", "the moon\n a dog\u2028 \r\n\nein Hund\na dog\n")
    assert [row[1:] for row in found[:3]] == [["a dog", "2"], ["a dog", "4"], ["ein Hund", "3"]]
    assert found[0][0] == "1.000" and len(demo.nearest(mini, demo.QUERY, demo.LIST)) == 10


def test_texts_are_aligned_with_what_is_left_over(mini):
    rows = demo.aligned(mini, demo.FIRST_TEXT, demo.SECOND_TEXT)
    assert sum(bool(score) for score, *_ in rows) == 3
    assert ["", "", "Mi abuela hace pan para todos."] in rows


def test_a_model_of_two_vocabularies_cannot_align(vocabulary, tmp_path):
    tokenizer = BilingualTokenizer.of(vocabulary, vocabulary, Sharing.DISJOINT, ("en", "xx"))
    load_save.save(pipeline(token_embedding(tokenizer, 8)), tmp_path / "both")
    model = st_paragram.Encoder(tmp_path / "both")
    with pytest.raises(SettingsError, match="cannot align"):
        demo.aligned(model, "a", "b")


@pytest.mark.parametrize(
    ("answer", "given", "message"),
    [
        (
            demo.show_comparison,
            ("\n", "a"),
            "the first sentence has 0 characters; write from 1 to 1,000",
        ),
        (demo.nearest, ("a", "a\n" * 2001), "the list has 2,001 sentences"),
        (demo.aligned, ("a\n" * 301, "a"), "the first text has 301 sentences; write from 1 to 300"),
    ],
)
def test_what_is_refused(mini, answer, given, message):
    with pytest.raises(ParagramError, match=f"^{message}"):
        answer(mini, *given)


def test_every_field_has_a_label_and_no_endpoint_is_public():
    config = demo.build(["p-sp-mini"]).get_config_file()
    fields = [
        part["props"]
        for part in config["components"]
        if part["type"] in ("textbox", "dropdown", "dataframe")
    ]
    assert len(fields) == 11 and all(
        field["label"] and field.get("show_label") is not False for field in fields
    )
    assert {event["api_visibility"] for event in config["dependencies"]} == {"private"}
    with pytest.raises(ModelDirectoryError, match="no model 'nobody'"):
        demo.build(["nobody"])


def test_the_page_is_served_until_it_is_closed():
    page = demo.launch(["p-sp-mini"])
    port = urlparse(page.local_url).port
    try:
        with urllib.request.urlopen(page.local_url) as answer:
            assert "Sentence embeddings" in answer.read().decode()
        with pytest.raises(
            SettingsError, match=f"cannot listen on 127.0.0.1, port {port}; choose another --port"
        ):
            demo.launch(["p-sp-mini"], port=port)
    finally:
        page.close(verbose=False)
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=2)
