import io
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentencepiece import SentencePieceTrainer

import st_paragram
from st_paragram.cli.main import main
from st_paragram.core.embedding_table import TableType
from st_paragram.core.model_directory.card import NO_LICENSE
from st_paragram.core.model_directory.model_files import table_type
from st_paragram.core.native import kernels
from st_paragram.core.tokenizers import stock
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


@pytest.fixture
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 12, dropout=0.1), device="cpu")


@pytest.fixture
def saved(model, tmp_path):
    return load_save.save(model, tmp_path / "p-sp-xx", card="# p-sp-xx\n")


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def test_native_reader_gives_back_the_model(model, saved, pairs):
    loaded = st_paragram.load(saved, device="cpu")
    texts = [*(text for pair in pairs[:40] for text in pair), "", "Ω", "ba Ω ce"]
    np.testing.assert_array_equal(loaded.encode(texts), model.encode(texts))
    assert loaded[0].get_config_dict() == model[0].get_config_dict()
    assert (saved / "README.md").read_text() == "# p-sp-xx\n"


def test_the_unknown_row_is_zero_for_the_stock_reader_and_kept_for_the_plugin(
    model, saved, vocabulary
):
    tensors = load_file(saved / "model.safetensors")
    row = model[0].embedding.weight[vocabulary.unknown_id]
    assert (tensors["embedding.weight"][vocabulary.unknown_id] == 0).all()
    assert torch.equal(tensors["unknown_embedding"], row.detach())
    np.testing.assert_allclose(st_paragram.load(saved).encode(""), row.detach().numpy(), rtol=1e-6)


def test_an_existing_directory_is_not_overwritten_unless_asked_and_a_foreign_one_never(
    model, saved, tmp_path
):
    with pytest.raises(ModelDirectoryError, match="exists"):
        load_save.save(model, saved)
    with torch.no_grad():
        model[0].embedding.weight.mul_(2)
    load_save.save(model, saved, overwrite=True)
    assert torch.equal(st_paragram.load(saved)[0].embedding.weight, model[0].embedding.weight)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    with pytest.raises(ModelDirectoryError, match="not a model directory"):
        load_save.save(model, tmp_path / "thesis", overwrite=True)
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter1.txt"]


def test_unconvertible_vocabularies_are_refused_early(pairs, tmp_path):
    bpe, texts = io.BytesIO(), iter([text for pair in pairs for text in pair])
    ways = {"model_type": "bpe", "vocab_size": 100, "minloglevel": 2}
    SentencePieceTrainer.train(sentence_iterator=texts, model_writer=bpe, **ways)
    model = pipeline(
        SentencePieceEmbedding(SentencePieceTokenizer(bpe.getvalue()), 4), device="cpu"
    )
    for refuse in (
        load_save.check_savable,
        lambda model: load_save.save(model, tmp_path / "x"),
    ):
        with pytest.raises(ModelDirectoryError, match="not a unigram model"):
            refuse(model)
    assert not (tmp_path / "x").exists()


def test_a_vocabulary_is_checked_without_its_conversion(model, monkeypatch):
    monkeypatch.setattr(stock, "convert_tokenizer", lambda tokenizer: pytest.fail("converted"))
    load_save.check_savable(model)


def _config(saved, **changes):
    path = saved / "st_paragram.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda s: (s / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda s: (s / "sentencepiece.model").write_bytes(b"x"), "not a sentencepiece model"),
        (lambda s: (s / "st_paragram.json").write_text("{"), "not a configuration"),
        (lambda s: _config(s, embedding_dimension=7), "expected"),
        (
            lambda s: _config(s, architecture="castle"),
            r"'castle' \(this version knows averaging, modules",
        ),
    ],
)
def test_damage_is_named(saved, damage, message):
    damage(saved)
    with pytest.raises(ModelDirectoryError, match=message) as caught:
        st_paragram.load(saved)
    assert str(saved) in str(caught.value) and "\n" not in str(caught.value)


TEXTS = ["ba ce di", "", "Ω", "ba Ω ce", "fo gu ha je"]


def precision_of(kind, rows):
    """Largest error of a mean of rows."""
    shares = {
        TableType.FLOAT32: 1e-6,
        TableType.FLOAT16: 2**-11,
        TableType.INT8: 0.51 / 127,
        TableType.INT4: 0.3,
    }
    return np.abs(rows).max() * shares[kind]


@pytest.mark.parametrize("dimension", [None, 6, 100])
@pytest.mark.parametrize("kind", list(TableType))
def test_smaller_tables(model, tmp_path, kind, dimension):
    folder = load_save.save(model, tmp_path / "small", dtype=kind.value, truncate_dim=dimension)
    expected = model.encode(TEXTS, truncate_dim=dimension)
    loaded = st_paragram.load(folder, device="cpu")
    rows = loaded.encode(TEXTS)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(
        rows, expected, atol=precision_of(kind, model[0].embedding.weight.detach().numpy())
    )
    table = loaded[0].embedding.weight
    stored = torch.uint8 if kind is TableType.INT4 else getattr(torch, kind.value)
    assert table.dtype == (stored if kernels() else torch.float32)
    assert loaded.get_embedding_dimension() == min(dimension or 12, 12)
    assert table_type(folder) is kind
    part = st_paragram.load(folder, device="cpu", truncate_dim=5)
    np.testing.assert_allclose(part.encode(TEXTS), rows[:, :5], rtol=1e-6, atol=1e-7)
    # Both readers agree, and saving again changes nothing.
    plugin = kind is TableType.INT4
    stock = SentenceTransformer(str(folder), device="cpu", trust_remote_code=plugin)
    assert (
        cosines(stock.encode(TEXTS[:1] + TEXTS[3:]).astype(np.float32), rows[[0, 3, 4]]).min()
        > 0.9999
    )
    again = load_save.save(loaded, tmp_path / "again", dtype=kind)
    tensors, repeated = (
        load_file(folder / "model.safetensors"),
        load_file(again / "model.safetensors"),
    )
    assert tensors.keys() == repeated.keys()
    assert all(torch.equal(tensors[name], repeated[name]) for name in tensors) or kernels() is None


def test_a_table_of_int4_is_exported_as_another_type_with_the_same_numbers(saved, tmp_path, capsys):
    assert main(["export", str(saved), str(tmp_path / "y"), "--dtype", "int4", "--dim", "5"]) == 1
    assert (
        "two dimensions per byte, but the table has 5; choose an even number"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "y").exists()
    assert main(["export", str(saved), str(tmp_path / "y"), "--dtype", "int4"]) == 0
    assert main(["export", str(tmp_path / "y"), str(tmp_path / "z"), "--dtype", "int8"]) == 0
    assert main(["export", str(tmp_path / "y"), str(tmp_path / "w"), "--dtype", "float32"]) == 0
    assert [
        "## Table of int4" in (tmp_path / name / "README.md").read_text() for name in "yzw"
    ] == [True, False, False]
    same = (st_paragram.load(tmp_path / name, device="cpu").encode(TEXTS) for name in "yz")
    np.testing.assert_allclose(*same, rtol=1e-6, atol=1e-6)


def test_the_configuration_names_architecture_tokenizer_and_type(model, tmp_path):
    folder = load_save.save(model, tmp_path / "x", card="# x\n", dtype="int8")
    assert json.loads((folder / "st_paragram.json").read_text()) == {
        "format_version": 3,
        "architecture": "averaging",
        "embedding_dimension": 12,
        "vocabulary_size": len(model[0].tokenizer),
        "tokenizer_kind": "sentencepiece",
        "tokenizer_options": {"lower_case": True, "segmentation": "none"},
        "dropout": 0.1,
        "table_type": "int8",
        "normalize": False,
    }
    card = (folder / "README.md").read_text()
    assert card.startswith("# x\n") and "6.2" in card


def test_what_a_pipeline_says_beside_its_modules_is_kept(vocabulary, tmp_path):
    embedding = SentencePieceEmbedding(vocabulary, 6)
    prompts = {"query": "ba ", "document": "ce "}
    model = pipeline(
        embedding, "cpu", prompts=prompts, default_prompt_name="query", similarity_fn_name="dot"
    )
    folder = load_save.save(model, tmp_path / "x")
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "library_name: sentence-transformers" in card and NO_LICENSE in card
    assert 'SentenceTransformer("x")' in card and "with 6 dimensions" in card
    for loaded in (
        st_paragram.load(folder, device="cpu"),
        SentenceTransformer(str(folder), device="cpu"),
    ):
        assert (loaded.prompts, loaded.default_prompt_name, loaded.similarity_fn_name) == (
            prompts,
            "query",
            "dot",
        )
        np.testing.assert_allclose(
            loaded.encode(["di"]), model.encode(["ba di"], prompt=""), rtol=1e-5
        )
    (folder / "config_sentence_transformers.json").unlink()
    assert st_paragram.load(folder, device="cpu").similarity_fn_name == "cosine"


@pytest.mark.parametrize(
    "arguments", [{"dtype": "int2"}, {"dtype": "int4", "truncate_dim": 5}, {"truncate_dim": 0}]
)
def test_impossible_tables_are_refused(model, tmp_path, arguments):
    with pytest.raises(SettingsError):
        load_save.save(model, tmp_path / "x", **arguments)
    assert not (tmp_path / "x").exists()
