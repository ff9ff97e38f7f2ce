"""Indexes of answers: texts through the tower of answers, queries through that of questions."""

import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Router, StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from st_paragram.cli.main import main
from st_paragram.errors import MiningError, SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.bitext_mining.background import Background
from st_paragram.tools.search import index_metadata
from st_paragram.tools.search.content import Content
from st_paragram.tools.search.search_index import SearchIndex
from st_paragram.tools.search.settings import SearchSettings
from st_paragram.tools.search.vectors import VectorType

pytest.importorskip("faiss")

WORDS = ("who", "when", "anna", "monday")


def dense(weights):
    layer = Dense(4, 4, bias=False, activation_function=torch.nn.Identity())
    layer.linear.weight.data = torch.tensor(weights, dtype=torch.float32)
    return layer


def towers_of(routes):
    """Each word has an axis of its own; towers move the axes."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="who"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    table = StaticEmbedding(tokenizer, embedding_weights=np.eye(4, dtype=np.float32))
    return SentenceTransformer(modules=[table, Router(routes, default_route=next(iter(routes)))], device="cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Words and their vectors, which are the columns of the towers' weights.

    | | who | when | anna | monday |
    |---|---|---|---|---|
    | as questions | 1 0 0 0 | 0 .8 .6 0 | 0 0 0 1 | 0 0 0 1 |
    | as answers | 0 0 1 0 | 0 0 0 1 | 1 0 0 0 | 0 1 0 0 |
    """
    questions = [[1, 0, 0, 0], [0, 0.8, 0, 0], [0, 0.6, 0, 0], [0, 0, 1, 1]]
    answers = [[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    routes = {"sentence": [Normalize()], "query": [dense(questions), Normalize()], "document": [dense(answers)]}
    folder = tmp_path_factory.mktemp("models") / "towers"
    return model_directory.save(towers_of(routes), folder)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "answers.txt"
    path.write_text("when\nmonday\nwho\nanna\nanna\n")
    return path


@pytest.fixture(scope="module")
def answers(tmp_path_factory, source, model):
    return SearchIndex.build(source, tmp_path_factory.mktemp("index") / "answers.index", model, answers=True)


def found(index, query, k=1):
    return [(hit.sentence, hit.line, round(hit.score, 3)) for hit in index.search([query], k)[0]]


def test_questions_find_answers(answers):
    assert found(answers, "who") == [("anna", 4, 1.0)]
    assert found(answers, "when", 3) == [("monday", 2, 0.8), ("who", 3, 0.6), ("when", 1, 0.0)]


def test_sentences_find_themselves(tmp_path, source, model):
    index = SearchIndex.build(source, tmp_path / "i", model)
    for word in WORDS:
        assert found(index, word)[0][::2] == (word, 1.0)


@pytest.mark.parametrize("kind", list(VectorType))
def test_vectors_are_those_of_the_tower_of_answers(tmp_path, source, model, kind):
    index = SearchIndex.build(source, tmp_path / "i", model, SearchSettings(vector_type=kind), answers=True)
    want = index.encoder.encode_document(["when", "monday", "who", "anna"])
    np.testing.assert_allclose(index.vectors.rows(0, 4), want, atol=0.01)


def test_an_inexact_index_of_answers(tmp_path, source, model):
    index = SearchIndex.build(source, tmp_path / "i", model, SearchSettings(index="IVF1,Flat"), answers=True)
    assert index.metadata.factory == "IVF1,Flat" and found(index, "who") == [("anna", 4, 1.0)]


def test_the_folder_remembers_and_sentences_are_the_default(tmp_path, source, model, answers):
    assert SearchIndex(answers.folder).content is Content.ANSWERS
    assert found(SearchIndex(answers.folder), "who") == [("anna", 4, 1.0)]
    assert json.loads((answers.folder / "index.json").read_text())["content"] == "answers"
    sentences = SearchIndex.build(source, tmp_path / "i", model)
    assert "content" not in json.loads((sentences.folder / "index.json").read_text())  # as older folders
    assert SearchIndex(sentences.folder).content is Content.SENTENCES


@pytest.mark.parametrize(
    ("content", "message"),
    [("questions", "'questions' is not a valid Content"), (3, "content is 3"), ("sentences", "its own digest")],
)
def test_an_edited_content_is_refused(tmp_path, answers, content, message):
    folder = shutil.copytree(answers.folder, tmp_path / "i")
    values = json.loads((folder / "index.json").read_text()) | {"content": content}
    (folder / "index.json").write_text(json.dumps(values))
    with pytest.raises(MiningError, match=message) as caught:
        index_metadata.read_metadata(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("routes", [None, {"query": [Normalize()]}, {"one": [Normalize()], "two": [Normalize()]}])
def test_a_model_without_towers_is_refused(tmp_path, source, vocabulary, routes):
    model = towers_of(routes) if routes else pipeline(SentencePieceEmbedding(vocabulary, 4), device="cpu")
    folder = model_directory.save(model, tmp_path / "plain")
    with pytest.raises(SettingsError, match=r"plain has no question and answer towers; train .* leave out --answers$"):
        SearchIndex.build(source, tmp_path / "i", folder, answers=True)
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_pairs_are_not_scored_against_answers(answers):
    with pytest.raises(MiningError, match=r"answers.index: an index of answers; .*without --answers"):
        Background(answers, answers, k=1)


def run(*words):
    return main([*map(str, words)])


def test_commands(tmp_path, source, model, vocabulary, capsys):
    folder = tmp_path / "a.index"
    assert run("index", "--answers", "--model", model, source, "--output", folder) == 0
    assert capsys.readouterr().err.endswith(f"float16 vectors of 4 components by {model}, of answers\n")
    assert run("search", folder, "who", "-k", 1) == 0
    assert capsys.readouterr().out == "1.000000\t4\tanna\n"
    assert run("info", folder) == 0
    assert "    content: answers\n" in capsys.readouterr().out
    plain = model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 4), device="cpu"), tmp_path / "plain")
    assert run("index", "--answers", "--model", plain, source, "--output", tmp_path / "b.index") == 1
    said = capsys.readouterr().err
    assert said.startswith(f"st-paragram index: {plain} has no question and answer towers") and said.count("\n") == 1
