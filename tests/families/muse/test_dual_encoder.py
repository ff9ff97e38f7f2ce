"""Dual encoders: their vectors, the answers' contexts, the classifier, and their directories for
both readers.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from support.dual_encoder import ARCHITECTURES, new_model, unlike_new

import st_paragram
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
from st_paragram.learning.models import load_save

WAYS = ("encode", "encode_query", "encode_document")
STRANGE = ["", " ", "\u2603\u2603 \u2603", "ba ce di " * 3334]


@pytest.fixture(scope="module")
def new(store):
    return {name: new_model(store, name) for name in ARCHITECTURES}


@pytest.fixture(scope="module")
def models(new):
    return {name: unlike_new(model) for name, model in new.items()}


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


# Answers in their contexts.


def test_contexts_by_hand(model, vocabulary, texts):
    """A context is the direction of the mean of the rows of its pieces; an answer without one is
    its own.
    """
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
    assert (np.abs(found - model.encode_document(answers)).max(1) > 0.01).tolist() == [
        False
    ] * 2 + [True] * 8
    alone = [
        model.encode_answers([answer], [context])[0]
        for answer, context in zip(answers, contexts, strict=True)
    ]
    np.testing.assert_allclose(found, alone, atol=1e-6)


def test_unknown_contexts_and_nothing_to_encode(model, texts):
    found = model.encode_answers(texts[:2], ["\u2603", "\u2603 \u2603"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert model.encode_answers([]).shape == model.encode_answers([], []).shape == (0, 16)
    assert model.classify([], []).shape == (0, 3)


def test_what_is_refused(model, new, name):
    with pytest.raises(SettingsError, match="2 answers but 1 contexts; give one for each, or none"):
        model.encode_answers(["ba", "ce"], ["di"])
    with pytest.raises(SettingsError, match="1 premises but 2 hypotheses; give as many of both"):
        model.classify(["ba"], ["ce", "di"])
    with pytest.raises(SettingsError, match="a single text; give a list of texts"):
        model.encode_answers("ba ce")
    with pytest.raises(
        SettingsError, match="this model was not trained on inference; train it with --nli"
    ):
        new[name].classify(["ba"], ["ce"])


# Directories.


@pytest.mark.parametrize("changes", [{}, {"keep_bag": False, "layers": 1}])
def test_both_readers_give_the_same_vectors(store, name, texts, changes, tmp_path):
    model = unlike_new(new_model(store, name, **changes))
    folder = load_save.save(model, tmp_path / "x")
    ours, stock = (opened(folder, reader) for reader in ("ours", "stock"))
    assert isinstance(ours, DualEncoder) and type(stock) is SentenceTransformer
    assert ("st_paragram" in {type(module).__module__.partition(".")[0] for module in stock}) == (
        name == "cnn"
    )
    long = [*texts, STRANGE[3]]
    for way in WAYS:
        expected = getattr(model, way)(long)
        for reader in (ours, stock):  # a text alone is as in any batch
            np.testing.assert_allclose(
                [getattr(reader, way)(text) for text in long[::9]], expected[::9], atol=2e-6
            )
        np.testing.assert_array_equal(getattr(ours, way)(long), expected)
        assert largest_difference(getattr(stock, way)(long), expected) < 1e-5
    np.testing.assert_array_equal(
        ours.encode_answers(texts, texts[::-1]), model.encode_answers(texts, texts[::-1])
    )
    np.testing.assert_array_equal(
        ours.classify(texts, texts[::-1]), model.classify(texts, texts[::-1])
    )
    assert ours.similarity_fn_name == stock.similarity_fn_name == "cosine"
    assert ours.get_embedding_dimension() == stock.get_embedding_dimension() == 16
    assert (
        ours.tasks == model.tasks == ("nli", "qa", "response", "translation")
        and not ours.heads.training
    )
    assert not [
        each for each, _ in model.named_parameters() if "context" in each or "classifier" in each
    ]


@pytest.mark.parametrize("file", ["heads.safetensors", "sentencepiece.model", "modules.json"])
def test_missing_and_damaged_files_are_named(models, tmp_path, file):
    folder = load_save.save(models["cnn"], tmp_path / "muse")
    for damage in (lambda path: path.write_bytes(path.read_bytes()[:40]), Path.unlink):
        damage(folder / file)
        with pytest.raises(ModelDirectoryError, match=str(folder)) as caught:
            st_paragram.load(folder, device="cpu")
        assert "\n" not in str(caught.value)
