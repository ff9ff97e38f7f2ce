"""Imported checkpoints embed texts as the original code does."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from support.data import make_pairs
from support.original import ODD, embed_by_hand, make_checkpoint, make_texts, vocabulary_of

import st_paragram
from st_paragram.conversion.original_import import ImportSettings, import_checkpoint
from st_paragram.core.tokenizers.base import load_tokenizer
from st_paragram.core.tokenizers.original import OriginalTokenizer
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import ModelDirectoryError

EXACT = ImportSettings(exact=True)
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
    """A checkpoint whose vocabulary is that of a small text: some pieces have no row, some strings are no piece."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "pieces.model").write_bytes(model.content)
    training = surfaces(model, [*make_texts(60, seed=1), "字字", "tel tm"])
    checkpoint = make_checkpoint(vocabulary_of(training), sp_model="pieces.model")
    torch.save(checkpoint, folder / "zip.pt")
    torch.save(checkpoint, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    return folder, checkpoint


def extra_surfaces(model, checkpoint):
    pieces = {model.piece(each) for each in range(len(model))}
    return {name for name in checkpoint["vocab"] if name not in pieces and name != "UUUNKKK"}


def test_the_data_has_what_the_tests_need(model, files):
    _, checkpoint = files
    assert len(extra_surfaces(model, checkpoint)) > 5
    tokens = surfaces(model, TEXTS)
    assert sum(not extra_surfaces(model, checkpoint).isdisjoint(text) for text in tokens) > 100
    pieces = {model.piece(each) for each in range(len(model))}
    missing = pieces - {None, *checkpoint["vocab"]}
    assert any(not missing.isdisjoint(text) for text in tokens)


@pytest.mark.parametrize("saved", ["zip.pt", "legacy.pt"])
def test_an_exact_import_embeds_as_the_original_code(model, files, saved, tmp_path):
    folder, checkpoint = files
    report = import_checkpoint(folder / saved, tmp_path / "exact", folder / "pieces.model", EXACT)
    found = st_paragram.load(tmp_path / "exact", device="cpu").encode(TEXTS)
    np.testing.assert_array_equal(st_paragram.Encoder(tmp_path / "exact").encode(TEXTS), found)
    np.testing.assert_allclose(found, embed_by_hand(checkpoint, surfaces(model, TEXTS)), atol=1e-6, rtol=0)
    assert (report.rows, report.left_out, report.tokens) == (len(checkpoint["vocab"]) - 1, 0, "original")


@pytest.mark.parametrize("lower_case", [1, 0])
def test_the_default_import_is_exact_where_all_known_strings_are_pieces(model, files, lower_case, tmp_path):
    folder, checkpoint = files
    checkpoint = {**checkpoint, "args": make_checkpoint(checkpoint["vocab"], lower_case=lower_case)["args"]}
    torch.save(checkpoint, tmp_path / "model.pt")
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
    assert report.left_out_share == len(extra) / (len(checkpoint["vocab"]) - 1)
    pieces = {model.piece(each) for each in range(len(model))} - {None}
    assert report.pieces_without_row == len(pieces - checkpoint["vocab"].keys()) > 0


def test_sentence_transformers_alone_finds_the_same_cosines(files, tmp_path):
    folder, _ = files
    import_checkpoint(folder / "zip.pt", tmp_path / "p-sp", folder / "pieces.model")
    ours = st_paragram.load(tmp_path / "p-sp", device="cpu").encode(TEXTS[:200], normalize_embeddings=True)
    stock = SentenceTransformer(str(tmp_path / "p-sp"), device="cpu").encode(TEXTS[:200], normalize_embeddings=True)
    np.testing.assert_allclose(stock, ours, atol=1e-6)


def test_a_checkpoint_with_a_row_for_each_piece_has_an_ordinary_tokenizer(model, files, tmp_path):
    folder, _ = files
    pieces = [piece for each in range(len(model)) if (piece := model.piece(each))]
    torch.save(make_checkpoint(vocabulary_of([pieces[::-1]]), dropout=0.3), tmp_path / "model.pt")
    report = import_checkpoint(tmp_path / "model.pt", tmp_path / "p-sp", folder / "pieces.model")
    embedding = st_paragram.load(tmp_path / "p-sp", device="cpu")[0]
    assert embedding.tokenizer == model and embedding.dropout == 0.3
    assert (report.left_out, report.pieces_without_row) == (0, 0)


WORDS = ["the cat , the dog .", "a cat does n't", "A Dog !", ""]


def windows(text):
    framed = f" {text.strip().lower()} "
    return [framed[start : start + 3] for start in range(len(framed) - 2)]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("ngrams", "cut"), [(0, lambda text: text.lower().split()), (3, windows)])
def test_words_and_trigrams(exact, ngrams, cut, tmp_path):
    checkpoint = make_checkpoint(vocabulary_of(map(cut, WORDS)), ngrams=ngrams)
    torch.save(checkpoint, tmp_path / "model.pt")
    report = import_checkpoint(tmp_path / "model.pt", tmp_path / "sp", settings=ImportSettings(exact=exact))
    texts = [*WORDS, "cat dog unseen", "???"]
    found = st_paragram.load(tmp_path / "sp", device="cpu").encode(texts)
    expected = embed_by_hand(checkpoint, map(cut, texts))
    split_otherwise = [1] if ngrams == 0 and not exact else []  # "n't" is no word of a regular expression
    same = [place for place in range(len(texts)) if place not in split_otherwise]
    np.testing.assert_allclose(found[same], expected[same], atol=1e-6, rtol=0)
    assert report.left_out == len(split_otherwise)
    assert report.tokens == ("original" if exact else "trigram" if ngrams else "word")


def test_moses_comes_before_lower_casing(model, files, tmp_path):
    moses = pytest.importorskip("sacremoses").MosesTokenizer(lang="en")
    texts = ["Ba isn't No. 5.", "ba isn't no. 5."]
    split = [" ".join(moses.tokenize(text, escape=False)) for text in texts]
    assert split[0].lower() != split[1]  # it knows the abbreviation by its capital
    folder, _ = files
    checkpoint = make_checkpoint(vocabulary_of([text.lower().split() for text in split]), tokenize=1)
    torch.save(checkpoint, tmp_path / "words.pt")
    report = import_checkpoint(tmp_path / "words.pt", tmp_path / "words", settings=EXACT)
    found = st_paragram.load(tmp_path / "words", device="cpu").encode(texts)
    np.testing.assert_allclose(found, embed_by_hand(checkpoint, [text.lower().split() for text in split]), atol=1e-6)
    assert report.moses == "en"
    checkpoint = make_checkpoint(vocabulary_of(surfaces(model, make_texts(60, 1))), tokenize=1, sp_model="x")
    torch.save(checkpoint, tmp_path / "pieces.pt")
    with pytest.raises(ModelDirectoryError, match=r"tokenized by Moses .* give --exact, or --moses none"):
        import_checkpoint(tmp_path / "pieces.pt", tmp_path / "new", folder / "pieces.model")


def test_the_card_names_file_checksum_and_whose_terms_hold(files, tmp_path):
    folder, checkpoint = files
    report = import_checkpoint(folder / "zip.pt", tmp_path / "p-sp", folder / "pieces.model", name="theirs")
    card = (tmp_path / "p-sp" / "README.md").read_text()
    assert report.digest == hashlib.sha256((folder / "zip.pt").read_bytes()).hexdigest()
    assert "\n# theirs\n" in card and "`zip.pt`" in card and report.digest in card
    assert "\nlicense: other\n" in card and "terms are those of the authors of the checkpoint" in card
    assert f"{report.left_out:,} of {len(checkpoint['vocab']) - 1:,} rows" in card
    assert 'SentenceTransformer("theirs")' in card and "\nlibrary_name: sentence-transformers\n" in card


def test_another_sentencepiece_model_is_refused(files, tmp_path):
    folder, _ = files
    (tmp_path / "other.model").write_bytes(train_vocabulary(["Ζευς Αθηνα Αρης Ηρα Ποσειδων Δημητρα"] * 9, 30))
    for settings in (EXACT, ImportSettings()):
        with pytest.raises(ModelDirectoryError, match=r"has rows for \d+ of the \d+ pieces of the sentencepiece model"):
            import_checkpoint(folder / "zip.pt", tmp_path / "p-sp", tmp_path / "other.model", settings)
    assert not (tmp_path / "p-sp").exists()


def test_the_tokenizers_are_made_again_from_content_and_options(model, files, tmp_path):
    folder, _ = files
    for settings, kind in ((EXACT, OriginalTokenizer), (ImportSettings(), SentencePieceTokenizer)):
        output = tmp_path / kind.kind
        import_checkpoint(folder / "zip.pt", output, folder / "pieces.model", settings)
        tokenizer = st_paragram.load(output, device="cpu")[0].tokenizer
        assert type(tokenizer) is kind
        assert load_tokenizer(tokenizer.kind, tokenizer.content, tokenizer.options) == tokenizer
        ids, offsets = tokenizer.encode(TEXTS)
        packed, _ = tokenizer.pack([ids[a:b].tolist() for a, b in itertools.pairwise(offsets)])
        np.testing.assert_array_equal(packed, ids)
        known = make_texts(60, seed=1)[1]
        assert tokenizer.decode(tokenizer.encode([known])[0].tolist()) == known
