"""What the functions behind the tabs answer, with models of every kind."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from support.dual_encoder import new_model
from support.generative import new_generator

from st_paragram.core.encoding.find import shipped_folder
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.errors import ModelDirectoryError, ParagramError, SettingsError, TextError
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.learning.models import directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import token_embedding
from st_paragram.tools.demo_page import tabs, texts
from st_paragram.tools.demo_page.comparison import _shown, compare, cosine_of, languages_of, nearest
from st_paragram.tools.demo_page.models import Models
from st_paragram.tools.demo_page.tabs import answering

MINI = "p-sp-mini (average of pieces)"


@pytest.fixture(scope="module")
def models(tmp_path_factory, store, vocabulary, pairs):
    """Labels of the shipped model and of small ones: generative, only translating, dual, and of two vocabularies."""
    torch.manual_seed(5)
    folder = tmp_path_factory.mktemp("demo")
    for name, objective in (("bgt", "bgt"), ("trans", "bilingual-trans")):
        generator = new_generator(vocabulary, objective)
        directory.save(
            GenerativeEncoder.of(generator.semantic.pipeline, ("en", "xx"), vocabulary, generator), folder / name
        )
    directory.save(new_model(store), folder / "muse")
    both = BilingualTokenizer.of(vocabulary, vocabulary, Sharing.DISJOINT, ("en", "xx"))
    directory.save(pipeline(token_embedding(both, 8)), folder / "both")
    names = ["p-sp-mini", *(str(folder / name) for name in ("bgt", "trans", "muse", "both"))]
    return Models(names)


def label(models, name):
    return next(one for one in models.labels if one.startswith(f"{name} ("))


def test_models_are_labelled_by_folder_and_kind(models, tmp_path):
    assert models.labels == [
        MINI,
        "bgt (generative model, BGT)",
        "trans (generative model, BGT)",
        "muse (dual encoder, mUSE)",
        "both (average of pieces)",
    ]
    twin = tmp_path / "p-sp-mini"
    twin.symlink_to(shipped_folder())
    twins = Models(["p-sp-mini", str(twin), "p-sp-mini"])
    assert twins.labels == [MINI, f"{twin} (average of pieces)"]


def test_models_are_read_when_they_are_picked_and_once():
    read = []
    models = Models(["p-sp-mini"], lambda folder: read.append(folder) or object())
    assert not read
    assert models.model(MINI) is models.model(MINI)
    assert read == [shipped_folder()]
    with pytest.raises(SettingsError, match="Unknown model"):
        models.model("other")
    with pytest.raises(ModelDirectoryError, match="no model 'nobody'"):
        Models(["nobody"])
    with pytest.raises(SettingsError, match="name at least one"):
        Models([])


def test_pieces_of_an_averaging_model_sum_to_its_cosine(models):
    model = models.model(MINI)
    sentences = "Where is the waterfalls station?", "¿Dónde está la estación de tren?"
    found = compare(model, *sentences)
    expected = float(model.similarity(*(model.encode([one]) for one in sentences))[0, 0])
    assert found.exact
    assert found.cosine == pytest.approx(expected, abs=1e-6)
    for parts in (found.first, found.second):
        assert sum(part.contribution for part in parts) == pytest.approx(found.cosine, abs=1e-9)
    assert [part.text for part in found.first] == ["where", "is", "the", "water", "…falls", "station", "?"]
    assert cosine_of(model, *sentences) == pytest.approx(expected, abs=1e-6)


def test_a_piece_within_a_word_begins_with_dots_and_an_unknown_one_is_named():
    shown = _shown(["▁a", "b", None, "c", "▁", "▁d", "1", "!", "e", "猫", "f"])
    assert shown == ["a", "…b", "(unknown)", "c", "(space)", "d", "…1", "!", "e", "猫", "f"]


@pytest.mark.parametrize("name", ["bgt", "muse"])
def test_words_are_left_out_of_other_models(models, pairs, name):
    model = models.model(label(models, name))
    words = pairs[0][0].split()
    found = compare(model, pairs[0][0], pairs[0][1])
    assert not found.exact
    assert [part.text for part in found.first] == words
    vectors = model.encode([" ".join(words[1:]), pairs[0][1], pairs[0][0]]).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = vectors[2] @ vectors[1] - vectors[0] @ vectors[1]
    assert found.first[0].contribution == pytest.approx(expected, abs=1e-5)
    assert compare(model, words[0], pairs[0][1]).first[0].contribution == pytest.approx(
        cosine_of(model, words[0], pairs[0][1]), abs=1e-5
    )
    with pytest.raises(TextError, match="Sentence 2 has 101 words"):
        compare(model, "a", "a " * 101)


def test_two_vocabularies_read_a_side_each(models, pairs):
    model = models.model(label(models, "both"))
    first, second = model.in_language("en").encode(pairs[0][0]), model.in_language("xx").encode(pairs[0][1])
    expected = float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    assert languages_of(model) == ("en", "xx")
    assert compare(model, *pairs[0]).cosine == pytest.approx(expected, abs=1e-5)
    assert nearest(model, pairs[0][0], [pairs[0][1]], 1)[0].cosine == pytest.approx(expected, abs=1e-5)
    with pytest.raises(SettingsError, match="reads en and xx with a vocabulary of each"):
        tabs.align_html(models, label(models, "both"), "a", "b", tabs.LINES)


def test_the_answer_on_two_sentences_has_chips_tables_and_the_sum(models):
    shown = tabs.compare_html(models, MINI, "<b>Hello</b>", "Hallo")
    assert re.search(r"Cosine: <strong>0\.\d{3}</strong>", shown)
    assert shown.count("<table") == 2 and shown.count("Sum, which is the cosine") == 2
    assert "<b>" not in shown and "sum to the cosine" not in shown
    assert "do not sum to the cosine" in tabs.compare_html(models, label(models, "muse"), "a b", "b c")


def test_nearest_sentences_come_best_first_and_equal_ones_in_order(models):
    hits = nearest(models.model(MINI), "a dog", ["the moon", "a dog", "ein Hund", "a dog"], 3)
    assert [(hit.line, hit.sentence) for hit in hits] == [(2, "a dog"), (4, "a dog"), (3, "ein Hund")]
    assert hits[0].cosine == pytest.approx(1, abs=1e-6)
    shown = tabs.nearest_html(models, MINI, texts.QUERY, texts.LIST)
    assert "The nearest of 16 sentences: <strong><bdi>متى يفتح المتحف؟" in shown
    assert shown.count("<tr>") == 11


def test_an_upload_takes_the_place_of_the_list_or_leaves_it(tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("one\ntwo\n")
    text, said = tabs.upload_list(str(file), "old")
    assert text == "one\ntwo" and "number of sentences: 2." in said
    file.write_bytes(b"\xff")
    text, said = tabs.upload_list(str(file), "old")
    assert text == "old" and "not UTF-8" in said and 'role="alert"' in said
    assert tabs.upload_list(None, "old")[0] == "old"


def test_texts_are_aligned_with_what_is_left_over(models):
    pytest.importorskip("faiss")
    both = texts.FIRST_TEXT, texts.SECOND_TEXT
    by_line = tabs.align_html(models, MINI, *both, tabs.LINES)
    assert "3 pairs were found in texts of 5 and 4 sentences." in by_line
    assert '<td dir="auto">Nobody is sad about that.</td><td dir="auto">–</td>' in by_line
    joined = [" ".join(text.split("\n")) for text in both]
    by_marks = tabs.align_html(models, MINI, *joined, tabs.MARKS)
    assert by_marks.split("<tbody>")[1] == by_line.split("<tbody>")[1]
    with pytest.raises(SettingsError, match="choose how"):
        tabs.align_html(models, MINI, *both, "otherwise")


def test_errors_become_messages_and_unexpected_ones_tell_nothing(caplog):
    def fail(error):
        raise error

    shown = answering(fail)(ParagramError("No <such> thing"))
    assert shown == '<div class="sp-message" role="alert">No &lt;such&gt; thing</div>'
    assert not caplog.records
    shown = answering(fail)(ValueError("/secret/path"))
    assert "Something went wrong" in shown and "secret" not in shown
    assert "/secret/path" in caplog.text


def test_the_first_texts_of_the_page_are_within_its_limits():
    assert texts.checked_lines(texts.LIST)
    assert texts.LIST.count("\n") == 15
