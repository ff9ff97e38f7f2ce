"""`save_pretrained` and `push_to_hub` of an averaging model write files for both readers."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import st_paragram
from st_paragram.core.embedding_table import TableType
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import ParagramEncoder, pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding


@pytest.fixture(params=list(TableType))
def loaded(request, vocabulary, tmp_path):
    """A model as `st_paragram.load` gives it."""
    torch.manual_seed(1)
    model = pipeline(
        SentencePieceEmbedding(vocabulary, 12), "cpu", prompts={"query": "ba ", "document": ""}
    )
    load_save.save(
        model, tmp_path / "original", card="# original\n\nIts scores.\n", dtype=request.param
    )
    return st_paragram.load(tmp_path / "original", device="cpu")


def check_both_readers(folder, model, texts):
    expected = model.encode(texts)
    ours = st_paragram.load(folder, device="cpu")
    assert type(ours) is ParagramEncoder and type(ours[0]) is SentencePieceEmbedding
    np.testing.assert_array_equal(ours.encode(texts), expected)
    unknown = ["", "Ω", "ba Ω ce"]
    np.testing.assert_array_equal(ours.encode(unknown), model.encode(unknown))
    stock = SentenceTransformer(str(folder), device="cpu")
    assert [type(module).__name__ for module in stock] == ["StaticEmbedding"]
    np.testing.assert_allclose(
        stock.encode(texts).astype(np.float32), expected, rtol=2e-3, atol=2e-3
    )
    assert ours.prompts == stock.prompts == model.prompts


def test_save_pretrained(loaded, tmp_path, pairs):
    loaded.save_pretrained(str(tmp_path / "x"))
    check_both_readers(tmp_path / "x", loaded, [a for a, _ in pairs[:30]])
    # what was known of the model stays
    assert (tmp_path / "x" / "README.md").read_text().startswith("# original\n")


def test_a_new_model_gets_sentence_transformers_card_if_any(vocabulary, tmp_path):
    model = pipeline(SentencePieceEmbedding(vocabulary, 8), device="cpu")
    model.save_pretrained(
        str(tmp_path / "x"), model_name="somebody/p-sp-xx", safe_serialization=False
    )
    card = (tmp_path / "x" / "README.md").read_text()
    assert (
        "somebody/p-sp-xx" in card
        and "SentenceTransformer" in card
        and "import ParagramEncoder" not in card
    )
    assert (tmp_path / "x" / "model.safetensors").is_file()
    assert not list((tmp_path / "x").glob("*.bin"))
    model.save(str(tmp_path / "y"), None, False)
    assert not (tmp_path / "y" / "README.md").exists()
    model.save(None)
