"""Plain arrays give what the native reader gives; and which models no export can hold."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.exports import KNOWN, WITHOUT_KNOWN, ids_of, reader_in, saved_model
from support.stock import lstm_pipeline

import st_paragram
from st_paragram.cli.main import main
from st_paragram.conversion.exports import ExportSettings, export_model
from st_paragram.core.tokenizers.character_trigrams import CharacterTrigramTokenizer, train_trigrams
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.core.tokenizers.words import WordTokenizer, train_words
from st_paragram.errors import ModelDirectoryError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import TokenEmbedding

TEXTS = [*KNOWN, *WITHOUT_KNOWN]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize(("normalize", "drops"), [(False, False), (True, False), (False, True)])
def test_vectors_are_those_of_the_native_reader(vocabulary, tmp_path, dtype, normalize, drops):
    source = saved_model(vocabulary, tmp_path / "model", ids_of(vocabulary, "ba ce") if drops else ())
    folder = export_model(source, tmp_path / "n", "numpy", ExportSettings(dtype, 30, normalize))
    small = tmp_path / "small"
    assert main(["export", str(source), str(small), "--dtype", dtype, "--dim", "30"]) == 0
    native = st_paragram.load(small, device="cpu").encode(TEXTS, normalize_embeddings=normalize)
    encoder = reader_in(folder)(folder)
    for batch_size in (2, 1024):
        rows = encoder.encode(TEXTS, batch_size)
        assert rows.dtype == np.float32
        np.testing.assert_allclose(rows, native, rtol=1e-4, atol=2e-6)
    assert encoder.encode([]).shape == (0, 30)


@pytest.mark.parametrize("kind", ["numpy", "onnx", "model2vec"])
def test_a_table_of_int4_goes_along_as_int8_with_the_same_numbers(vocabulary, tmp_path, kind, capsys):
    for package in {"onnx": ("onnx", "onnxruntime"), "model2vec": ("model2vec",)}.get(kind, ()):
        pytest.importorskip(package)
    source, small = saved_model(vocabulary, tmp_path / "model"), tmp_path / "small"
    assert main(["export", str(source), str(small), "--dtype", "int4", "--dim", "30"]) == 0
    folder = export_model(small, tmp_path / kind, kind)
    assert json.loads((folder / "st_paragram_export.json").read_text())["table_type"] == "int8"
    assert "table of int8" in (folder / "README.md").read_text()
    native = st_paragram.load(small, device="cpu").encode(KNOWN)
    if kind == "model2vec":
        rows = importlib.import_module("model2vec").StaticModel.from_pretrained(folder).encode(KNOWN)
    else:
        rows = reader_in(folder)(folder).encode(KNOWN)
    np.testing.assert_allclose(rows, native, rtol=1e-4, atol=2e-6)
    capsys.readouterr()
    assert main(["export", str(source), str(tmp_path / "x"), "--to", kind, "--dtype", "int4"]) == 1
    assert f"{kind} readers do not support 4-bit tables; choose int8" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


@pytest.fixture(scope="module")
def readers(vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("readers")
    source = saved_model(vocabulary, folder / "model")
    exported = export_model(source, folder / "n", "numpy")
    return reader_in(exported)(exported), st_paragram.load(source, device="cpu")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text("bacediKIfo ΩĀ我\n", max_size=30), min_size=1, max_size=4))
def test_any_text(readers, texts):
    ours, native = readers
    np.testing.assert_allclose(ours.encode(texts), native.encode(texts), rtol=1e-4, atol=2e-6)


def test_words(pairs, tmp_path):
    words = WordTokenizer(train_words([text for pair in pairs for text in pair]))
    model = pipeline(TokenEmbedding(words, 12), device="cpu")
    folder = export_model(model_directory.save(model, tmp_path / "w"), tmp_path / "n", "numpy")
    texts = [*TEXTS[:4], "ba, zzz", ""]
    np.testing.assert_allclose(reader_in(folder)(folder).encode(texts), model.encode(texts), rtol=1e-5, atol=1e-6)


def _edited(folder, **changes):
    path = folder / "st_paragram_export.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _shaped(path, said):
    """An array that says another shape than it has."""
    data = path.read_bytes()
    header = data[: data.index(b"\n")]
    place = header.index(b"(")
    path.write_bytes((header[:place] + said + b", }").ljust(len(header)) + data[len(header) :])


DAMAGE = {
    "dropped_ids": lambda folder: _edited(folder, dropped_ids=[-1]),
    "unknown_id": lambda folder: _edited(folder, unknown_id=-1),
    "lower_case": lambda folder: _edited(folder, lower_case=None),
    "vocabulary_size": lambda folder: _edited(folder, vocabulary_size=3),
    "no settings": lambda folder: (folder / "st_paragram_export.json").write_text("{\n"),
    "no vocabulary": lambda folder: (folder / "sentencepiece.model").write_bytes(b"nonsense"),
    "cut table": lambda folder: (folder / "embeddings.npy").write_bytes(b"\x93NUMPY"),
    "scales of another number": lambda folder: np.save(folder / "scale.npy", np.ones(3, np.float32)),
    "a huge scale": lambda folder: _shaped(folder / "scale.npy", b"(1000000000000,)"),
    "scales that are not finite": lambda folder: np.save(
        folder / "scale.npy", np.load(folder / "scale.npy") * np.float32("nan")
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_export_is_refused_in_a_line(vocabulary, tmp_path, damage):
    source = saved_model(vocabulary, tmp_path / "m", ids_of(vocabulary, "ba ce"))
    folder = export_model(source, tmp_path / "n", "numpy", ExportSettings("int8"))
    DAMAGE[damage](folder)
    with pytest.raises(ValueError, match="export the model again") as caught:
        reader_in(folder)(folder)
    assert str(caught.value).startswith(f"{folder}: ") and str(caught.value).isprintable()


def test_the_reader_needs_neither_torch_nor_st_paragram(vocabulary, tmp_path):
    folder = export_model(saved_model(vocabulary, tmp_path / "m"), tmp_path / "n", "numpy")
    script = (
        "import sys\nfor name in ('torch', 'st_paragram', 'sentence_transformers', 'transformers', 'tokenizers'):\n"
        "    sys.modules[name] = None\n"
        "from reader import Encoder\nprint(Encoder('.').encode(['ba ce', '']).shape)"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True)
    assert run.stdout == "(2, 37)\n", run.stderr


def _trigrams(vocabulary, pairs):
    tokenizer = CharacterTrigramTokenizer(train_trigrams([text for pair in pairs for text in pair]))
    return pipeline(TokenEmbedding(tokenizer, 4), device="cpu")


def _of_vocabulary(tokenizer, **options):
    return pipeline(TokenEmbedding(tokenizer, 4), device="cpu", **options)


def _jieba(vocabulary, pairs):
    pytest.importorskip("jieba")
    return _of_vocabulary(SentencePieceTokenizer(vocabulary.content, segmentation="jieba"))


REFUSED = {
    "trigram ids": _trigrams,
    "segmented by jieba": _jieba,
    "prompt 'query' before": lambda v, p: _of_vocabulary(v, prompts={"query": "ba "}, default_prompt_name="query"),
    "export it with --dim 3": lambda v, p: _of_vocabulary(v, truncate_dim=3),
    "architecture 'stock'; only averaging": lambda v, p: lstm_pipeline([text for pair in p for text in pair]),
}


@pytest.mark.parametrize("kind", ["onnx", "numpy", "model2vec"])
@pytest.mark.parametrize("message", REFUSED)
def test_what_an_export_could_not_repeat_is_refused(vocabulary, pairs, tmp_path, kind, message):
    source = model_directory.save(REFUSED[message](vocabulary, pairs), tmp_path / "m")
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        export_model(source, tmp_path / "n", kind)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "n").exists()


def test_stock_goes_with_model_directories_alone(vocabulary, tmp_path, capsys):
    source = saved_model(vocabulary, tmp_path / "m")
    assert main(["export", str(source), str(tmp_path / "n"), "--to", "numpy", "--stock"]) == 1
    assert "leave it out" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["model", "numpy"])
def test_more_components_than_there_are_cannot_be_kept(vocabulary, tmp_path, capsys, kind):
    source = saved_model(vocabulary, tmp_path / "m")
    own = model_directory.load(source).get_embedding_dimension()
    assert main(["export", str(source), str(tmp_path / "n"), "--to", kind, "--dim", str(own + 1)]) == 1
    assert f"dim is {own + 1}, and the embeddings of this model have {own} components" in capsys.readouterr().err
    assert not (tmp_path / "n").exists()
    assert main(["export", str(source), str(tmp_path / "n"), "--to", kind, "--dim", str(own)]) == 0
