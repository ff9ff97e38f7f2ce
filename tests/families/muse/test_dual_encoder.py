"""Dual encoders: their vectors, the answers' contexts, the classifier, and their directories for both readers."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from support.columns import columns, iterables
from support.dual_encoder import ARCHITECTURES, new_model, unlike_new

import st_paragram
from st_paragram.core.encoding.directory import fingerprint
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
from st_paragram.families.muse.t5_encoder import is_t5
from st_paragram.families.muse.towers import DOCUMENT
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.untrained import random_model

WAYS = ("encode", "encode_query", "encode_document")
STRANGE = ["", " ", "\u2603\u2603 \u2603", "ba ce di " * 3334]


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
def unsealed(folders, tmp_path):
    """A copy of the CNN, to be damaged."""
    return shutil.copytree(folders["cnn"], tmp_path / "muse")


def largest_difference(one, other):
    return np.abs(one - other).max()


# Vectors.


@pytest.mark.parametrize("way", WAYS)
def test_columns_of_texts(model, texts, way):
    expected = getattr(model, way)(texts[:3])
    for container, inputs in [*iterables(texts[:3]), *columns(texts[:3])]:
        np.testing.assert_array_equal(getattr(model, way)(inputs), expected, container)
    with pytest.raises(SettingsError, match="text 1 of 2 is None"):
        getattr(model, way)(["ba", None])


@pytest.mark.parametrize("way", [*WAYS, "encode_answers"])
def test_vectors_of_whatever_text_are_unit_vectors(model, texts, way):
    found = getattr(model, way)([*STRANGE, *texts])
    assert found.dtype == np.float32 and np.isfinite(found).all()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("keep_bag", [True, False])
def test_and_before_any_training(store, name, keep_bag):
    found = new_model(store, name, keep_bag=keep_bag).encode(STRANGE)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def opened(folder, reader):
    if reader == "ours":
        return st_paragram.load(folder, device="cpu")
    return SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)


@pytest.mark.parametrize("reader", ["ours", "stock"])
def test_a_text_alone_is_as_in_any_batch(folders, name, texts, reader):
    read = opened(folders[name], reader)
    for way in WAYS:
        encode = getattr(read, way)
        together = encode([*texts[:12], STRANGE[3]], batch_size=13)
        alone = np.stack([encode(text) for text in [*texts[:12], STRANGE[3]]])
        np.testing.assert_allclose(together, alone, atol=1e-6)


def test_the_order_of_words_counts(model):
    one, other = model.encode(["ba ce di", "di ce ba"])
    assert largest_difference(one, other) > 1e-4


def test_towers_are_the_sentence_before_training_and_not_after(new, models, name, texts):
    for way in WAYS[1:]:
        np.testing.assert_allclose(getattr(new[name], way)(texts), new[name].encode(texts), atol=1e-6)
        assert largest_difference(getattr(models[name], way)(texts), models[name].encode(texts)) > 0.05
    assert largest_difference(models[name].encode_query(texts), models[name].encode_document(texts)) > 0.05


def test_texts_are_cut_where_the_settings_say(model, pairs):
    """Pieces behind the last that is read change nothing; the last one does."""
    most = model.values.max_length - (1 if is_t5(model[0]) else 2)
    pieces = model.sentencepiece.encode([" ".join(text for text, _ in pairs[:20])], most + 4)[0].tolist()
    for length, same in ((most, True), (most - 1, False)):
        texts = [model.sentencepiece.decode(pieces[:count]) for count in (length, len(pieces))]
        counts = np.diff(model.sentencepiece.encode(texts)[1])
        assert counts.tolist() == [length, len(pieces)]
        assert (largest_difference(*model.encode(texts)) < 1e-6) == same


def test_flat_ids_have_the_vectors_of_their_texts(model, texts):
    first, second = (model.sentencepiece.encode(part) for part in (texts[:15], texts[15:]))
    with torch.no_grad():
        found = torch.cat(model.vectors([first, second])).numpy()
    np.testing.assert_allclose(found, model.encode(texts), atol=1e-6)


# Answers in their contexts.


def test_an_answer_without_a_context_is_a_document(model, texts):
    expected = model.encode_document(texts)
    nothing = [None if number % 2 else "" for number in range(len(texts))]
    for found in (model.encode_answers(texts), model.encode_answers(texts, nothing)):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(model.encode_answers(texts, [" \n"] * len(texts)), expected, atol=1e-6)


def test_contexts_by_hand(model, texts):
    """u + tanh(W u + V (c - u) + b), with the direction c of the mean of the rows of the context's pieces."""
    answers, contexts = texts[:9], [None, *texts[20:28]]
    u = model.encode(answers, convert_to_tensor=True)
    c = u.clone()
    for number, context in list(enumerate(contexts))[1:]:
        ids = model.sentencepiece.encode([context])[0][: model.values.context_length]
        mean = model.vectors.table[torch.from_numpy(ids)].mean(0)
        c[number] = mean / mean.norm()
    first, second = list(model[-1].sub_modules[DOCUMENT])[1:3]
    with torch.no_grad():
        inner = first.linear(u) + (c - u) @ model.heads.context.weight.T
        expected = u + torch.tanh(inner)
        expected = expected + torch.tanh(second.linear(expected))
        expected = (expected / expected.norm(dim=1, keepdim=True)).numpy()
    found = model.encode_answers(answers, contexts)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (np.abs(found - model.encode_document(answers)).max(1) > 0.01).tolist() == [False, *[True] * 8]


def test_new_models_have_no_use_for_contexts(new, name, texts):
    found = new[name].encode_answers(texts[:20], texts[20:])
    np.testing.assert_allclose(found, new[name].encode(texts[:20]), atol=1e-6)


def test_answers_do_not_depend_on_the_batch(model, texts):
    answers, contexts = texts[:20], [*texts[20:39], None]
    together = model.encode_answers(answers, contexts, batch_size=20)
    alone = [model.encode_answers([a], [c])[0] for a, c in zip(answers, contexts, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_contexts_are_cut_too(model, texts):
    most = model.values.context_length
    long = " ".join(texts)
    pieces = model.sentencepiece.encode([long])[0].tolist()
    assert len(pieces) > most
    cut = model.sentencepiece.decode(pieces[:most])
    assert len(model.sentencepiece.encode([cut])[0]) == most
    found = model.encode_answers([texts[0]] * 2, [long, cut])
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_contexts_of_nothing_known_are_finite(model, texts):
    found = model.encode_answers(texts[:2], ["\u2603", "\u2603 \u2603"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_nothing_to_encode(model):
    assert model.encode_answers([]).shape == model.encode_answers([], []).shape == (0, 16)
    assert model.classify([], []).shape == (0, 3)


def test_contexts_may_be_an_array(model):
    found = model.encode_answers(["ba", "ce"], np.array(["ba ce di", "ce di"]))
    np.testing.assert_array_equal(found, model.encode_answers(["ba", "ce"], ["ba ce di", "ce di"]))


def test_another_number_of_contexts_is_refused(model):
    with pytest.raises(SettingsError, match="2 answers and 1 contexts; give one for each, or none"):
        model.encode_answers(["ba", "ce"], ["di"])


# The classifier.


def test_probabilities_of_labels(model, texts):
    found = model.classify(texts[:20], texts[20:])
    assert found.shape == (20, 3) and found.dtype == np.float32
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    u, v = (model.encode(part, convert_to_tensor=True) for part in (texts[:20], texts[20:]))
    with torch.no_grad():
        np.testing.assert_allclose(found, model.heads.logits(u, v).softmax(1).numpy(), atol=1e-6)
    assert np.ptp(found, axis=0).max() > 1e-3


def test_a_model_without_inference_is_no_classifier(new, models, name):
    assert models[name].has_classifier and not new[name].has_classifier
    with pytest.raises(SettingsError, match="this model was not trained on inference; train it with --nli"):
        new[name].classify(["ba"], ["ce"])


def test_another_number_of_hypotheses_is_refused(model):
    with pytest.raises(SettingsError, match="1 premises and 2 hypotheses; give as many of both"):
        model.classify(["ba"], ["ce", "di"])


# Directories.


def test_both_readers_give_the_same_vectors(model, name, folders, texts):
    ours, stock = (opened(folders[name], reader) for reader in ("ours", "stock"))
    assert isinstance(ours, DualEncoder) and type(stock) is SentenceTransformer
    assert ("st_paragram" in {type(module).__module__.partition(".")[0] for module in stock}) == (name == "cnn")
    long = [*texts, STRANGE[3]]
    for way in WAYS:
        expected = getattr(model, way)(long)
        np.testing.assert_array_equal(getattr(ours, way)(long), expected)
        assert largest_difference(getattr(stock, way)(long), expected) < 1e-5
    np.testing.assert_array_equal(ours.encode_answers(texts, texts[::-1]), model.encode_answers(texts, texts[::-1]))
    np.testing.assert_array_equal(ours.classify(texts, texts[::-1]), model.classify(texts, texts[::-1]))
    assert ours.similarity_fn_name == stock.similarity_fn_name == "cosine"
    assert ours.get_embedding_dimension() == stock.get_embedding_dimension() == 16


@pytest.mark.parametrize("keep_bag", [True, False])
def test_one_layer_with_and_without_the_bag(store, name, tmp_path, texts, keep_bag):
    made = unlike_new(new_model(store, name, layers=1, keep_bag=keep_bag))
    folder = model_directory.save(made, tmp_path / "x")
    np.testing.assert_array_equal(opened(folder, "ours").encode_query(texts), made.encode_query(texts))
    assert largest_difference(opened(folder, "stock").encode_query(texts), made.encode_query(texts)) < 1e-5


def test_what_the_directory_says(model, name, folders, vocabulary):
    values = json.loads((folders[name] / "st_paragram.json").read_text())
    assert values["architecture"] == "dual-encoder" and values["dim"] == 16 and values["max_length"] == 30
    assert values["tasks"] == ["nli", "qa", "response", "translation"]
    assert (folders[name] / "sentencepiece.model").read_bytes() == vocabulary.content
    assert opened(folders[name], "ours").values == model.values


def test_heads_are_no_part_of_the_pipeline(model, name, folders):
    assert not [each for each, _ in model.named_parameters() if "context" in each or "classifier" in each]
    ours = opened(folders[name], "ours")
    assert not ours.training and not ours.heads.training
    for each, tensor in model.heads.state_dict().items():
        assert torch.equal(ours.heads.state_dict()[each], tensor)


def test_a_model_saved_again_is_the_same(name, folders, tmp_path):
    ours = opened(folders[name], "ours")
    once = model_directory.save(ours, tmp_path / "once")
    again = model_directory.save(opened(once, "ours"), tmp_path / "again")
    assert fingerprint(again) == fingerprint(once)
    with torch.no_grad():
        ours.heads.context.weight[0] += 1
    changed = model_directory.save(ours, tmp_path / "changed")
    assert fingerprint(changed) != fingerprint(once)


def test_saving_does_not_move_the_random_generator(model, tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model_directory.save(model, tmp_path / "x")
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("arguments", [{"dtype": "float16"}, {"truncate_dim": 3}])
def test_other_types_and_dimensions_are_refused(model, tmp_path, arguments):
    with pytest.raises(SettingsError, match="only averaging models"):
        model_directory.save(model, tmp_path / "x", **arguments)
    assert not list(tmp_path.iterdir())


def test_fewer_components_can_be_read(model, name, folders, texts):
    short = st_paragram.load(folders[name], device="cpu", truncate_dim=4)
    for way in WAYS:
        np.testing.assert_allclose(getattr(short, way)(texts), getattr(model, way)(texts)[:, :4], atol=1e-6)


def test_and_of_answers_and_labels_too(model, name, folders, texts):
    short = st_paragram.load(folders[name], device="cpu", truncate_dim=4)
    found = short.encode_answers(texts, texts[::-1])
    np.testing.assert_allclose(found, model.encode_answers(texts, texts[::-1])[:, :4], atol=1e-6)
    np.testing.assert_allclose(short.classify(texts, texts[::-1]), model.classify(texts, texts[::-1]), atol=1e-6)


# What is damaged.


def refused(folder, message):
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(folder, device="cpu")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 700


@pytest.mark.parametrize("file", ["heads.safetensors", "sentencepiece.model", "modules.json", "st_paragram.json"])
def test_missing_and_damaged_files_are_named(unsealed, file):
    whole = (unsealed / file).read_bytes()
    for damaged in (b"", whole[: len(whole) // 2]):
        (unsealed / file).write_bytes(damaged)
        refused(unsealed, str(unsealed))
    (unsealed / file).unlink()
    if file != "st_paragram.json":  # without it the pipeline is one of sentence-transformers
        refused(unsealed, file)


def test_heads_of_another_model_are_refused(unsealed):
    tensors = load_file(unsealed / "heads.safetensors")
    save_file(tensors | {"context.weight": tensors["context.weight"][:2].clone()}, unsealed / "heads.safetensors")
    refused(unsealed, "heads.safetensors: not the weights of this model")


EDITS = {
    "dim 0": {"dim": 0},
    "another dim": {"dim": 8},
    "text for a number": {"dim": "many"},
    "nothing can be read": {"max_length": 3},
    "no context": {"context_length": 0},
    "tasks that are no list": {"tasks": 3},
    "other options": {"tokenizer_options": {"speed": 3}},
}


@pytest.mark.parametrize("kind", EDITS)
def test_a_configuration_that_does_not_fit_is_refused(unsealed, kind):
    values = json.loads((unsealed / "st_paragram.json").read_text())
    (unsealed / "st_paragram.json").write_text(json.dumps(values | EDITS[kind]))
    refused(unsealed, str(unsealed))


def test_a_pipeline_without_towers_is_refused(folders, tmp_path, models):
    folder = shutil.copytree(folders["transformer"], tmp_path / "x")
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:-1]))
    refused(folder, "its last module is not the towers of 16 components; save it again")


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("sentence_0_Normalize/config.json", {"module_output_name": "elsewhere"}),
        ("document_3_Normalize/config.json", {"module_input_name": "token_embeddings"}),
        ("query_1_Dense/config.json", {"use_residual": False}),
        ("document_2_Dense/config.json", {"activation_function": "torch.nn.modules.linear.Identity"}),
    ],
)
def test_towers_of_another_design_are_refused(unsealed, file, change):
    """With some of them vectors would have any length, or answers two."""
    path = unsealed / "2_Router" / file
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    refused(unsealed, str(unsealed))


def test_random_models_of_the_same_architecture(folders, name, texts):
    """As `evaluate --untrained` makes them."""
    model, one, other = st_paragram.load(folders[name], device="cpu"), *(random_model(str(folders[name])) for _ in "ab")
    assert [type(each) for each in one] == [type(each) for each in model]
    for way in WAYS:
        found = getattr(one, way)(texts)
        np.testing.assert_array_equal(found, getattr(other, way)(texts))
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
        assert largest_difference(found, getattr(model, way)(texts)) > 0.1
    assert largest_difference(random_model(str(folders[name]), seed=1).encode(texts), one.encode(texts)) > 0.1
