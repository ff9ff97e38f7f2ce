"""Dual encoders: their vectors, the answers' contexts, the classifier, and their directories for both readers."""

import json
import shutil

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from support.dual_encoder import ARCHITECTURES, new_model, unlike_new

import st_paragram
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.untrained import random_model

WAYS = ("encode", "encode_query", "encode_document")
STRANGE = ["", " ", "\u2603\u2603 \u2603", "ba ce di " * 3334]
MOST = {"cnn": 28, "transformer": 29}  # pieces of a text that are read, of a length of 30 with its ends


@pytest.fixture(scope="module")
def new(store):
    return {name: new_model(store, name) for name in ARCHITECTURES}


@pytest.fixture(scope="module")
def models(new):
    return {name: unlike_new(model) for name, model in new.items()}


@pytest.fixture(scope="module")
def folders(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dual")
    return {name: model_directory.save(model, folder / name, card=f"# {name}\n") for name, model in models.items()}


@pytest.fixture(scope="module")
def texts(pairs):
    """Texts of one sentence to five, some of which are cut."""
    return [" ".join(text for text, _ in pairs[i : i + 1 + i % 5]) for i in range(40)]


@pytest.fixture(params=ARCHITECTURES)
def name(request):
    return request.param


@pytest.fixture
def model(models, name):
    return models[name]


@pytest.fixture
def copied(folders, tmp_path):
    """A copy of the CNN, to be damaged."""
    return shutil.copytree(folders["cnn"], tmp_path / "muse")


def largest_difference(one, other):
    return np.abs(one - other).max()


def opened(folder, reader):
    if reader == "ours":
        return st_paragram.load(folder, device="cpu")
    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)


# Vectors.


@pytest.mark.parametrize("way", [*WAYS, "encode_answers"])
def test_vectors_of_whatever_text_are_unit_vectors(store, model, name, texts, way):
    for each in (model, new_model(store, name, keep_bag=False)):
        found = getattr(each, way)([*STRANGE, *texts])
        assert found.dtype == np.float32 and np.isfinite(found).all()
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_texts_are_cut_where_the_settings_say(model, name, vocabulary, pairs):
    """Pieces behind the last that is read change nothing; the last one does."""
    pieces = vocabulary.encode([" ".join(text for text, _ in pairs[:20])], MOST[name] + 4)[0].tolist()
    for length, same in ((MOST[name], True), (MOST[name] - 1, False)):
        texts = [vocabulary.decode(pieces[:count]) for count in (length, len(pieces))]
        assert np.diff(vocabulary.encode(texts)[1]).tolist() == [length, len(pieces)]
        assert (largest_difference(*model.encode(texts)) < 1e-6) == same


# Answers in their contexts.


def test_contexts_by_hand(model, vocabulary, texts):
    """A context is the direction of the mean of the rows of its pieces; an answer without one is its own."""
    answers, contexts = texts[:10], [None, " ", *texts[20:27], " ".join(texts)]
    u = model.encode(answers, convert_to_tensor=True)
    c = u.clone()
    for number, context in list(enumerate(contexts))[2:]:
        ids = vocabulary.encode([context], model.context_length)[0]
        c[number] = F.normalize(model.table[torch.from_numpy(ids)].mean(0), dim=0)
    assert len(ids) == 40 < len(vocabulary.encode([context])[0])
    with torch.no_grad():
        expected = model.heads.answers(model[-1], u, c).numpy()
    found = model.encode_answers(answers, np.array(contexts))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (np.abs(found - model.encode_document(answers)).max(1) > 0.01).tolist() == [False] * 2 + [True] * 8
    alone = [model.encode_answers([answer], [context])[0] for answer, context in zip(answers, contexts, strict=True)]
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_unknown_contexts_and_nothing_to_encode(model, texts):
    found = model.encode_answers(texts[:2], ["\u2603", "\u2603 \u2603"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert model.encode_answers([]).shape == model.encode_answers([], []).shape == (0, 16)
    assert model.classify([], []).shape == (0, 3)


def test_what_is_refused(model, new, name):
    with pytest.raises(SettingsError, match="2 answers and 1 contexts; give one for each, or none"):
        model.encode_answers(["ba", "ce"], ["di"])
    with pytest.raises(SettingsError, match="1 premises and 2 hypotheses; give as many of both"):
        model.classify(["ba"], ["ce", "di"])
    with pytest.raises(SettingsError, match="a single text; give a list of texts"):
        model.encode_answers("ba ce")
    with pytest.raises(SettingsError, match="this model was not trained on inference; train it with --nli"):
        new[name].classify(["ba"], ["ce"])


# Directories.


@pytest.mark.parametrize("changes", [{}, {"keep_bag": False, "layers": 1}])
def test_both_readers_give_the_same_vectors(store, name, texts, changes, tmp_path):
    model = unlike_new(new_model(store, name, **changes))
    folder = model_directory.save(model, tmp_path / "x")
    ours, stock = (opened(folder, reader) for reader in ("ours", "stock"))
    assert isinstance(ours, DualEncoder) and type(stock) is SentenceTransformer
    assert ("st_paragram" in {type(module).__module__.partition(".")[0] for module in stock}) == (name == "cnn")
    long = [*texts, STRANGE[3]]
    for way in WAYS:
        expected = getattr(model, way)(long)
        for reader in (ours, stock):  # a text alone is as in any batch
            np.testing.assert_allclose([getattr(reader, way)(text) for text in long[::9]], expected[::9], atol=2e-6)
        np.testing.assert_array_equal(getattr(ours, way)(long), expected)
        assert largest_difference(getattr(stock, way)(long), expected) < 1e-5
    np.testing.assert_array_equal(ours.encode_answers(texts, texts[::-1]), model.encode_answers(texts, texts[::-1]))
    np.testing.assert_array_equal(ours.classify(texts, texts[::-1]), model.classify(texts, texts[::-1]))
    assert ours.similarity_fn_name == stock.similarity_fn_name == "cosine"
    assert ours.get_embedding_dimension() == stock.get_embedding_dimension() == 16
    assert ours.tasks == model.tasks == ("nli", "qa", "response", "translation") and not ours.heads.training
    assert not [each for each, _ in model.named_parameters() if "context" in each or "classifier" in each]


def test_fewer_components_can_be_read(model, name, folders, texts):
    short = st_paragram.load(folders[name], device="cpu", truncate_dim=4)
    for way in WAYS:
        np.testing.assert_allclose(getattr(short, way)(texts), getattr(model, way)(texts)[:, :4], atol=1e-6)
    found = short.encode_answers(texts, texts[::-1])
    np.testing.assert_allclose(found, model.encode_answers(texts, texts[::-1])[:, :4], atol=1e-6)
    np.testing.assert_allclose(short.classify(texts, texts[::-1]), model.classify(texts, texts[::-1]), atol=1e-6)


def refused(folder, message):
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(folder, device="cpu")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


@pytest.mark.parametrize("file", ["heads.safetensors", "sentencepiece.model", "modules.json", "st_paragram.json"])
def test_missing_and_damaged_files_are_named(copied, file):
    (copied / file).write_bytes((copied / file).read_bytes()[:40])
    refused(copied, str(copied))
    (copied / file).unlink()
    if file != "st_paragram.json":  # without it the pipeline is one of sentence-transformers
        refused(copied, file)


def test_a_configuration_that_does_not_fit_is_refused(copied):
    path, modules = copied / "st_paragram.json", copied / "modules.json"
    values = json.loads(path.read_text())
    for edit in ({"dim": 8}, {"dim": "many"}, {"tasks": 3}, {"context_length": None}):
        path.write_text(json.dumps(values | edit))
        refused(copied, str(copied))
    modules.write_text(json.dumps(json.loads(modules.read_text())[:-1]))
    refused(copied, "its last module is not the towers of a dual encoder; save it again")


def test_random_models_of_the_same_architecture(folders, name, texts):
    """As `evaluate --untrained` makes them."""
    model, one, other = st_paragram.load(folders[name], device="cpu"), *(random_model(str(folders[name])) for _ in "ab")
    assert [type(each) for each in one] == [type(each) for each in model]
    for way in WAYS:
        found = getattr(one, way)(texts)
        np.testing.assert_array_equal(found, getattr(other, way)(texts))
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
        assert largest_difference(found, getattr(model, way)(texts)) > 0.1
