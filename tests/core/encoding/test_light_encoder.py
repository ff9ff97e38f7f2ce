"""The encoder: the same numbers as the SentenceTransformer, inputs, settings, copies, processes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support.columns import columns, iterables
from support.without import run_without

import st_paragram
from st_paragram import Encoder
from st_paragram.core.model_directory.card import NO_LICENSE
from st_paragram.core.model_directory.find import find
from st_paragram.core.quantization import PRECISIONS
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer, Sharing
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding, TokenEmbedding

HARD = [
    "",
    " ",
    "\ufffd",
    "a\x00b",
    "İstanbul",
    "ΟΔΟΣ",
    "\ud800x",
    "한국어",
    "x" * 300,
    "\u2581",
    "naïve café",
]


@pytest.fixture(scope="module")
def texts(pairs):
    return [text for pair in pairs[:100] for text in pair]


@pytest.fixture(scope="module")
def folders(tmp_path_factory, vocabulary, texts):
    """Model directories of every kind of tokenizer and table, with and without unit vectors."""
    root, found = tmp_path_factory.mktemp("models"), {}
    words, other = WordTokenizer(train_words(texts)), WordTokenizer(train_words(texts[1::2]))
    tokenizers = {
        "sentencepiece": vocabulary,
        "word": words,
        "trigram": CharacterTrigramTokenizer(train_trigrams(texts)),
        "bilingual": BilingualTokenizer.of(words, other, Sharing.STRING, ("en", "es")),
    }
    for kind, tokenizer in tokenizers.items():
        model = pipeline(TokenEmbedding(tokenizer, 38), device="cpu", normalize=kind == "word")
        for dtype in ("float32", "float16", "int8", "int4"):
            found[kind, dtype] = load_save.save(model, root / f"{kind}-{dtype}", dtype=dtype)
    return found


@pytest.fixture(scope="module")
def encoder():
    return Encoder("p-sp-mini")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int4"])
@pytest.mark.parametrize("kind", ["sentencepiece", "word", "trigram", "bilingual"])
def test_the_same_bytes_as_the_sentence_transformer(folders, texts, kind, dtype):
    folder = folders[kind, dtype]
    light, full, every = Encoder(folder), st_paragram.load(folder, device="cpu"), [*texts, *HARD]
    for options in (
        {},
        {"normalize_embeddings": True},
        {"truncate_dim": 5},
        {"batch_size": 7},
        {"prompt": "de "},
    ):
        found = light.encode(every, **options)
        assert found.dtype == np.float32 and found.shape[0] == len(every)
        np.testing.assert_array_equal(found, full.encode(every, **options))
    if kind == "bilingual":
        found, expected = light.encode(texts, language="es"), full.encode(texts, language="es")
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(light.in_language("es").encode(texts), expected)
        assert light.in_language("es").model.table is light.model.table


def test_a_string_gives_one_vector(encoder):
    text = "Where is the station?"
    one, other = encoder.encode(text), encoder.encode("¿Dónde está la estación?")
    assert one.shape == (256,) and encoder.similarity(one, other).shape == (1, 1)
    np.testing.assert_array_equal(one, encoder.encode([text])[0])
    assert encoder.tokenize(text) == [["▁where", "▁is", "▁the", "▁station", "?"]]
    assert repr(encoder) == "Encoder(48,000 sentencepiece ids, 256 dimensions, int4)"
    assert float(encoder.similarity(one, other)[0, 0]) == pytest.approx(0.9396, abs=5e-5)


def test_columns_arrays_and_iterables(encoder):
    rows = ["one", "two", "three"]
    expected = encoder.encode(rows)
    for name, given_rows in [*iterables(rows), *columns(rows)]:
        np.testing.assert_array_equal(encoder.encode(given_rows), expected, name)
    for name, none in [*iterables([]), *columns([])]:
        assert encoder.encode(none).shape == (0, 256), name


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        *(
            (rows, r"^text 2 of 5 \(counted from 0\) is ")
            for _, rows in iterables(["a", "b", float("nan"), "c", None])
        ),
        *(
            (rows, r"^text 2 of 5 \(counted from 0\) is ")
            for _, rows in columns(["a", "b", None, "c", None])
        ),
        (np.zeros(3), r"text 0 of 3 \(counted from 0\) is 0.0"),
        (b"abc", "type bytes"),
        ([["a"]], r"text 0 of 1 \(counted from 0\) is \['a'\]"),
    ],
)
def test_what_is_not_text_is_refused_with_its_position(encoder, inputs, message):
    with pytest.raises(SettingsError, match=message) as caught:
        encoder.encode(inputs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"precision": "int4"}, "choose float32, int8"),
        ({"prompt_name": "x"}, "no prompt 'x'; this model has query, document"),
        ({"language": "es"}, "one vocabulary"),
    ],
)
def test_wrong_settings_are_refused(encoder, options, message):
    with pytest.raises(SettingsError, match=message):
        encoder.encode(["a"], **options)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_precisions_are_those_of_sentence_transformers(encoder, texts, precision):
    from sentence_transformers.util import quantize_embeddings

    found = encoder.encode(texts, precision=precision)
    expected = quantize_embeddings(encoder.encode(texts), precision=precision)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarities_are_those_of_sentence_transformers(encoder, texts, name):
    model = st_paragram.load("p-sp-mini", device="cpu")
    model.similarity_fn_name = name
    light = copy.copy(encoder)
    light.similarity_fn_name = name
    a, b = encoder.encode(texts[:9]), encoder.encode(texts[9:14])
    np.testing.assert_allclose(
        light.similarity(a, b), model.similarity(a, b).numpy(), atol=1e-3, rtol=1e-5
    )


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarities_of_pairs_are_those_of_sentence_transformers(encoder, texts, name):
    model = st_paragram.load("p-sp-mini", device="cpu")
    model.similarity_fn_name = name
    light = copy.copy(encoder)
    light.similarity_fn_name = name
    a, b = encoder.encode(texts[:5]), encoder.encode(texts[5:10])
    scores = light.similarity_pairwise(a, b)
    assert scores.shape == (5,) and scores.dtype == np.float32
    np.testing.assert_allclose(scores, model.similarity_pairwise(a, b).numpy(), rtol=1e-5)
    np.testing.assert_allclose(scores, np.diag(light.similarity(a, b)), atol=1e-3, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cosine", [0.6, 0.0]),
        ("dot", [3.0, 0.0]),
        ("euclidean", [-(20**0.5), -1.0]),
        ("manhattan", [-6.0, -1.0]),
    ],
)
def test_similarities_of_pairs_by_hand(encoder, name, expected):
    light = copy.copy(encoder)
    light.similarity_fn_name = name
    scores = light.similarity_pairwise([[1, 0], [0, 0]], [[3, 4], [0, 1]])
    np.testing.assert_allclose(scores, expected, rtol=1e-6)


def test_similarities_need_pairs(encoder):
    with pytest.raises(SettingsError, match="2 and 1 vectors; give pairs"):
        encoder.similarity_pairwise([[1, 0], [0, 1]], [1, 0])
    with pytest.raises(SettingsError, match="rows of equal dimension"):
        encoder.similarity_pairwise([1, 0], [1, 0, 0])


def test_prompts_of_questions_and_documents(vocabulary, tmp_path, texts):
    prompts = {"query": "question ", "passage": "text "}
    model = pipeline(
        SentencePieceEmbedding(vocabulary, 8),
        device="cpu",
        prompts=prompts,
        default_prompt_name="query",
    )
    folder = load_save.save(model, tmp_path / "m")
    light, full = Encoder(folder), st_paragram.load(folder, device="cpu")
    assert light.prompts == {"query": "question ", "document": "", "passage": "text "}
    for method in ("encode", "encode_query", "encode_document"):
        np.testing.assert_array_equal(getattr(light, method)(texts), getattr(full, method)(texts))
    np.testing.assert_array_equal(
        light.encode(texts, prompt_name="passage"), full.encode(texts, prompt_name="passage")
    )
    np.testing.assert_array_equal(light.encode(["a"]), light.encode(["question a"], prompt=""))


def test_fewer_components_are_the_first_ones(encoder, texts):
    short = Encoder("p-sp-mini", truncate_dim=20)
    assert short.dimension == short.get_embedding_dimension() == 20
    assert short.model.table.weight.shape[1] == 10  # bytes of two components
    np.testing.assert_array_equal(short.encode(texts), encoder.encode(texts, truncate_dim=20))


def test_a_copy_of_another_type(encoder, texts, tmp_path):
    folder = encoder.save(
        tmp_path / "half", card="# half\n", dtype="float16", truncate_dim=30, normalize=True
    )
    again = Encoder(folder)
    np.testing.assert_allclose(np.linalg.norm(again.encode(texts), axis=1), 1, atol=1e-6)
    assert (
        again.model.table.kind.value == "float16"
        and "float16" in (folder / "README.md").read_text()
    )
    np.testing.assert_array_equal(
        st_paragram.load(folder, device="cpu").encode(texts), again.encode(texts)
    )
    with pytest.raises(ModelDirectoryError, match="exists"):
        encoder.save(folder)


def test_a_copy_without_a_given_card_has_the_card_of_save(encoder, tmp_path):
    folder = encoder.save(tmp_path / "light" / "copy", dtype="int8")
    model = st_paragram.load("p-sp-mini", device="cpu")
    full = load_save.save(model, tmp_path / "full" / "copy", dtype="int8")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card == (full / "README.md").read_text(encoding="utf-8")
    assert NO_LICENSE in card and 'SentenceTransformer("copy")' in card
    assert not (encoder.save(tmp_path / "bare", card="", dtype="float32") / "README.md").exists()


def test_pickles_and_copies_give_the_same(encoder, texts):
    expected = encoder.encode(texts)
    shared = copy.deepcopy(encoder)
    assert shared.model.table is encoder.model.table
    for again in (pickle.loads(pickle.dumps(encoder)), shared, copy.copy(encoder)):
        np.testing.assert_array_equal(again.encode(texts), expected)


def test_threads_follow_the_environment(monkeypatch):
    monkeypatch.setattr("st_paragram.core.native.usable_cores", lambda: 6)
    for value, expected in (("", 6), ("2", 2), ("3,1", 3), ("99", 99), ("0", 6), ("x", 6)):
        monkeypatch.setenv("OMP_NUM_THREADS", value)
        assert Encoder("p-sp-mini").num_threads == expected
    assert Encoder("p-sp-mini", num_threads=3).num_threads == 3


def test_it_needs_neither_torch_nor_a_cache(tmp_path):
    script = (
        "import os, sys\nos.environ['XDG_CACHE_HOME'] = sys.argv[1]\nfrom st_paragram import"
        " Encoder\nprint(*Encoder('p-sp-mini').encode(['a', 'b']).shape)\nfrom"
        " st_paragram.core.native import kernels\nassert not {'pydantic', 'filelock', 'tqdm',"
        " kernels() and 'sentencepiece'} & set(sys.modules)"
    )
    (tmp_path / "file").write_text("")
    done = run_without(script, [tmp_path / "file"])
    assert done.stdout == "2 256\n", done.stderr


def test_a_language_keeps_the_settings_of_the_encoder(folders, texts):
    for opened in (
        Encoder(folders["bilingual", "float32"]),
        st_paragram.load(folders["bilingual", "float32"], "cpu"),
    ):
        opened.prompts["query"] = "question "
        opened.default_prompt_name = "query"
        opened.similarity_fn_name = "dot"
        opened.truncate_dim = 7
        spanish = pickle.loads(pickle.dumps(opened.in_language("es")))
        assert spanish.prompts["query"] == "question " and spanish.prompts is not opened.prompts
        assert (spanish.default_prompt_name, spanish.similarity_fn_name, spanish.truncate_dim) == (
            "query",
            "dot",
            7,
        )
        expected = opened.encode([f"question {text}" for text in texts], prompt="", language="es")
        assert expected.shape[1] == 7
        np.testing.assert_array_equal(spanish.encode(texts), expected)
        np.testing.assert_array_equal(opened.encode(texts, language="es"), expected)


WITHOUT_TOKEN = ["", " ", "\u200b", "\ufeff"]


# p-sp-base is read like p-sp-mini
BASE = pytest.param("p-sp-base", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", ["p-sp-mini", BASE, "sentencepiece", "word", "trigram"])
def test_texts_without_a_token_have_zeros_in_every_library(folders, name, tmp_path):
    folder = folders[name, "float32"] if (name, "float32") in folders else find(name)
    light, full = Encoder(folder), st_paragram.load(folder, device="cpu")
    assert not light.encode(WITHOUT_TOKEN).any() and not full.encode(WITHOUT_TOKEN).any()
    assert not light.encode(WITHOUT_TOKEN, normalize_embeddings=True).any()
    assert not light.similarity(light.encode(WITHOUT_TOKEN), light.encode(WITHOUT_TOKEN)).any()
    if name.startswith("p-sp"):
        assert not light.encode("\u0640").any()
        scripts = ["გამარჯობა", "სად არის სადგური", "เมื่อวาน"]
        full.save_pretrained(str(tmp_path / "plain"))
        plain = SentenceTransformer(str(tmp_path / "plain"), device="cpu")
        assert not plain.encode(WITHOUT_TOKEN).any()
        for model in (light, full, plain):  # all have the embedding of the mark of a space
            rows = model.encode(scripts, normalize_embeddings=True)
            np.testing.assert_allclose(rows @ rows.T, 1, atol=1e-5)
            np.testing.assert_allclose(
                rows, light.encode(scripts, normalize_embeddings=True), atol=1e-5
            )
        mixed = light.encode(["hello გამარჯობა", "hello"], normalize_embeddings=True)
        assert 0.9 < mixed[0] @ mixed[1] < 1
