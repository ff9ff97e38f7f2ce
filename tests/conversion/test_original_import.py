"""Imported checkpoints embed texts as the original code does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.data import make_pairs
from support.original import ODD, embed_by_hand, make_checkpoint, make_texts, vocabulary_of

import st_paragram
from st_paragram.conversion.original_import import import_checkpoint
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import ModelDirectoryError

TEXTS = make_texts(1000, seed=5)[: 1000 - len(ODD)] + ODD


def surfaces(model, texts, lower_case=True):
    """Tokens as the original evaluation looks them up."""
    cased = [text.lower() if lower_case else text for text in texts]
    joined = [" ".join(model.processor.encode_as_pieces(text)) for text in cased]
    return [(text.lower() if lower_case else text).split() for text in joined]


@pytest.fixture(scope="module")
def model():
    """A sentencepiece model that does not cover rare characters."""
    texts = [text for pair in make_pairs(500, seed=1) for text in pair]
    return SentencePieceTokenizer(train_vocabulary([*texts, "tel tm"] * 2, 260))


@pytest.fixture(scope="module")
def files(tmp_path_factory, model):
    """A checkpoint whose vocabulary is that of a small text: some pieces have no row, some strings
    are no piece.
    """
    folder = tmp_path_factory.mktemp("original")
    (folder / "pieces.model").write_bytes(model.content)
    training = surfaces(model, [*make_texts(60, seed=1), "字字", "tel tm"])
    checkpoint = make_checkpoint(vocabulary_of(training), sp_model="pieces.model")
    torch.save(checkpoint, folder / "zip.pt")
    return folder, checkpoint


def extra_surfaces(model, checkpoint):
    pieces = {model.piece(each) for each in range(len(model))}
    return {name for name in checkpoint["vocab"] if name not in pieces and name != "UUUNKKK"}


@pytest.mark.parametrize(("lower_case", "new_format"), [(1, True), (1, False), (0, True)])
def test_an_import_embeds_as_the_original_code_where_all_known_strings_are_pieces(
    model, files, lower_case, new_format, tmp_path
):
    folder, checkpoint = files
    arguments = make_checkpoint(checkpoint["vocab"], lower_case=lower_case)["args"]
    checkpoint = {**checkpoint, "args": arguments}
    torch.save(checkpoint, tmp_path / "model.pt", _use_new_zipfile_serialization=new_format)
    report = import_checkpoint(tmp_path / "model.pt", tmp_path / "p-sp", folder / "pieces.model")
    tokens = surfaces(model, TEXTS, bool(lower_case))
    extra = extra_surfaces(model, checkpoint)
    same = np.array([extra.isdisjoint(text) for text in tokens])
    loaded = st_paragram.load(tmp_path / "p-sp", device="cpu")
    found, expected = loaded.encode(TEXTS), embed_by_hand(checkpoint, tokens)
    np.testing.assert_array_equal(st_paragram.Encoder(tmp_path / "p-sp").encode(TEXTS), found)
    assert same.sum() > 500
    np.testing.assert_allclose(found[same], expected[same], atol=1e-6, rtol=0)
    assert not np.isclose(found[~same], expected[~same], atol=1e-3).all(axis=1).any()
    assert (report.left_out, report.tokens) == (len(extra), "sentencepiece")
    assert report.rows == len(checkpoint["vocab"]) - 1
    pieces = {model.piece(each) for each in range(len(model))} - {None}
    assert report.pieces_without_row == len(pieces - checkpoint["vocab"].keys()) > 0


WORDS = ["the cat , the dog .", "a cat does n't", "A Dog !", ""]


def windows(text):
    framed = f" {text.strip().lower()} "
    return [framed[start : start + 3] for start in range(len(framed) - 2)]


@pytest.mark.parametrize(("ngrams", "cut"), [(0, lambda text: text.lower().split()), (3, windows)])
def test_words_and_trigrams(ngrams, cut, tmp_path):
    checkpoint = make_checkpoint(vocabulary_of(map(cut, WORDS)), ngrams=ngrams)
    torch.save(checkpoint, tmp_path / "model.pt")
    report = import_checkpoint(tmp_path / "model.pt", tmp_path / "sp")
    texts = [*WORDS, "cat dog unseen", "???"]
    found = st_paragram.load(tmp_path / "sp", device="cpu").encode(texts)
    expected = embed_by_hand(checkpoint, map(cut, texts))
    # "n't" is no word of a regular expression
    split_otherwise = [1] if ngrams == 0 else []
    same = [place for place in range(len(texts)) if place not in split_otherwise]
    np.testing.assert_allclose(found[same], expected[same], atol=1e-6, rtol=0)
    assert report.left_out == len(split_otherwise)
    assert report.tokens == ("trigram" if ngrams else "word")


def test_words_split_by_moses(model, files, tmp_path):
    moses = pytest.importorskip("sacremoses").MosesTokenizer(lang="en")
    texts = ["ba isn't ce, di.", "it's (ba)"]
    split = [moses.tokenize(text, escape=False) for text in texts]
    checkpoint = make_checkpoint(vocabulary_of(split), tokenize=1)
    torch.save(checkpoint, tmp_path / "words.pt")
    report = import_checkpoint(tmp_path / "words.pt", tmp_path / "words")
    found = st_paragram.load(tmp_path / "words", device="cpu").encode(texts)
    np.testing.assert_allclose(found, embed_by_hand(checkpoint, split), atol=1e-6)
    assert (report.moses, report.left_out) == ("en", 0)

    folder, _ = files
    pieces = vocabulary_of(surfaces(model, make_texts(60, 1)))
    torch.save(make_checkpoint(pieces, tokenize=1, sp_model="x"), tmp_path / "pieces.pt")
    with pytest.raises(ModelDirectoryError, match=r"tokenized by Moses .* give --moses none"):
        import_checkpoint(tmp_path / "pieces.pt", tmp_path / "new", folder / "pieces.model")


def test_another_sentencepiece_model_is_refused(files, tmp_path):
    folder, _ = files
    (tmp_path / "other.model").write_bytes(
        train_vocabulary(["Ζευς Αθηνα Αρης Ηρα Ποσειδων Δημητρα"] * 9, 30)
    )
    message = r"has rows for \d+ of the \d+ tokens of the sentencepiece model"
    with pytest.raises(ModelDirectoryError, match=message):
        import_checkpoint(folder / "zip.pt", tmp_path / "p-sp", tmp_path / "other.model")
    assert not (tmp_path / "p-sp").exists()
