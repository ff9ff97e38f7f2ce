"""Training that begins with the rows of another model."""

import numpy as np
import pytest
import torch
from support.data import make_pairs, write_store
from support.dual_encoder import new_model as new_dual_encoder
from support.dual_encoder import write_bitext

import st_paragram
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import ModelDirectoryError, SettingsError
from st_paragram.families.psp.settings import TrainingSettings
from st_paragram.families.psp.training import new_model
from st_paragram.learning.models import load_save
from st_paragram.learning.models.averaging import embedding_of
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.learning.training.initial_rows import initial_rows, rows_of_pieces

DIM = 16


def vocabulary_of(texts, size):
    return SentencePieceTokenizer(
        train_vocabulary(texts, size, character_coverage=1.0, num_threads=1)
    )


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A model of the first language and of the second."""
    tokenizer = vocabulary_of([text for pair in make_pairs(300) for text in pair], 150)
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("models") / "old"
    load_save.save(pipeline(SentencePieceEmbedding(tokenizer, DIM), device="cpu"), folder)
    return folder


@pytest.fixture(scope="module")
def other():
    """A vocabulary that shares pieces with the old vocabulary, at other places, and has more
    pieces.
    """
    texts = [a for a, _ in make_pairs(300)] + [
        b.replace("a", "qu") for _, b in make_pairs(300, seed=5)
    ]
    return vocabulary_of(texts, 170)


def test_shared_pieces_have_the_models_rows_and_all_others_are_random(old, other):
    embedding = embedding_of(st_paragram.load(old, device="cpu"))
    torch.manual_seed(1)
    table = initial_rows(other, old, DIM)
    torch.manual_seed(1)
    drawn = torch.randn(len(other), DIM)
    pieces = [embedding.tokenizer.piece(row) for row in range(len(embedding.tokenizer))]
    shared = 0
    for row in range(len(other)):
        piece = other.piece(row)
        expected = drawn[row]
        if row == other.unknown_id:
            expected = embedding.embedding.weight[embedding.tokenizer.unknown_id]
        elif piece is not None and piece in pieces:
            expected, shared = embedding.embedding.weight[pieces.index(piece)], shared + 1
        assert torch.equal(table[row], expected), piece
    assert 20 < shared < len(other) - 20


def test_refusals(old, other, tmp_path):
    with pytest.raises(SettingsError, match=r"dim is 8, but .*old has 16 dimensions; set --dim 16"):
        initial_rows(other, old, 8)
    with pytest.raises(ModelDirectoryError, match="no model 'none'"):
        initial_rows(other, "none", DIM)


def test_a_new_model_begins_with_them(old, other, tmp_path):
    store = write_store(tmp_path / "pairs.h5", make_pairs(40), other)
    settings = TrainingSettings(dim=DIM, dropout=0.1, init=str(old), device="cpu")
    torch.manual_seed(1)
    embedding = embedding_of(new_model(store, settings))
    torch.manual_seed(1)
    assert torch.equal(embedding.embedding.weight, initial_rows(other, old, DIM))
    assert embedding.dropout == 0.1 and embedding.embedding.weight.requires_grad


class _Lengths(torch.nn.Module):
    """Stands for a model of any kind: its vectors have the length of a text, and numbers that
    follow from it.
    """

    def __init__(self, tokenizer=None):
        super().__init__()
        self.tokenizer = tokenizer

    def encode(self, texts, **_):
        return np.stack(
            [np.random.default_rng(list(text.encode())).normal(size=24) for text in texts]
        )


def test_a_model_that_does_not_average_gives_its_vectors_of_the_pieces(other):
    table = rows_of_pieces(other, _Lengths(), DIM)
    assert table.shape == (len(other), DIM) and table.dtype == torch.float32
    known = [row for row in range(len(other)) if other.piece(row)]
    assert not table[[row for row in range(len(other)) if row not in known]].any()
    vectors = _Lengths().encode(
        [other.piece(row).replace("▁", " ").strip() or "▁" for row in known]
    )
    shares = 1 / np.arange(1, len(known) + 1)
    shares /= shares.sum()
    weighted = (vectors - shares @ vectors) * (0.001 / (0.001 + shares))[:, None]
    # Principal components keep what the pieces have in common: inner products are those of the best
    # rank-16 matrix.
    _, _, right = np.linalg.svd(weighted - weighted.mean(axis=0), full_matrices=False)
    expected = weighted @ right[:DIM].T @ right[:DIM] @ weighted.T
    found = table[known].double().numpy()
    scale = np.trace(expected) / np.trace(found @ found.T)
    np.testing.assert_allclose(scale * (found @ found.T), expected, atol=1e-4 * expected.max())
    assert table[known].std() == pytest.approx(1, abs=1e-3)


def test_pieces_that_the_model_does_not_know_start_at_random(other):
    letters = {
        piece for row in range(len(other)) if (piece := other.piece(row)) and "q" not in piece
    }
    knows = vocabulary_of([" ".join(letters).replace("▁", " ")], 40)
    unknown = [row for row in range(len(other)) if set(other.piece(row) or "") == {"q"}]
    torch.manual_seed(1)
    first = rows_of_pieces(other, _Lengths(knows), DIM)
    second = rows_of_pieces(other, _Lengths(knows), DIM)
    assert unknown and not torch.equal(first[unknown], second[unknown])
    assert first[unknown].std() == pytest.approx(1, abs=0.3)
    known = [
        row
        for row in range(len(other))
        if "q" not in (other.piece(row) or "") and other.piece(row) != "▁"
    ]
    assert torch.equal(first[known], second[known])


def test_a_pipeline_of_other_modules_is_asked_for_the_pieces(other, tmp_path):
    bitext = write_bitext(tmp_path / "bitext.h5", other, make_pairs(40))
    folder = st_paragram.save(new_dual_encoder(bitext), tmp_path / "other")
    torch.manual_seed(1)
    table = initial_rows(other, folder, 8)
    torch.manual_seed(1)
    assert torch.equal(table, rows_of_pieces(other, st_paragram.load(folder, device="cpu"), 8))
    with pytest.raises(
        SettingsError,
        match=r"dim is 4096, but there are \d+ tokens, and the model has \d+ dimensions",
    ):
        initial_rows(other, folder, 4096)
