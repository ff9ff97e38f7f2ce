"""The description of a pair store, compared with plain counting."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.tools import inspection
from st_paragram.tools.inspection import SHARES, inspect


def pieces(store, side):
    ids, offsets = store.take(side, np.arange(len(store)))
    return [ids[start:end].tolist() for start, end in itertools.pairwise(offsets)]


@pytest.mark.parametrize("block", [64, 1 << 16])
def test_numbers_as_counted_plainly(store, pairs, monkeypatch, block):
    monkeypatch.setattr(inspection, "_BLOCK", block)
    found = inspect(store.path, examples=7)
    rows = [pieces(store, side) for side in "ab"]
    for side, sentences in zip(found["sides"], rows, strict=True):
        lengths = list(map(len, sentences))
        assert (side["pieces"], side["mean_length"]) == (
            sum(lengths),
            pytest.approx(np.mean(lengths)),
        )
        assert (
            list(side["lengths"].values())
            == np.quantile(lengths, SHARES, method="inverted_cdf").tolist()
        )
    counts = Counter(piece for sentences in rows for row in sentences for piece in row)
    (use,) = found["vocabularies"]
    assert (use["ids"], use["used"]) == (len(store.tokenizer()), len(counts))
    assert store.tokenizer().piece(counts.most_common(1)[0][0]) == use["most_frequent"][0]
    assert (
        len(found["examples"]) == 7
        and found["pairs_of_languages"] == {"en-xx": 700}
        and found["labels"] is None
    )
    assert all(pairs[each["row"]] == (each["first"], each["second"]) for each in found["examples"])


def test_two_tokenizers_languages_labels_and_unknown_text(tmp_path, vocabulary):
    other = SentencePieceTokenizer(
        train_vocabulary(["ba ce di fo gu ha je"] * 5, 30), lower_case=False
    )
    pairs, path = [("en", "fr"), ("en", "en")], tmp_path / "mixed.h5"
    with PairStoreWriter(
        path, ("en", "fr"), (vocabulary, other), 6, None, 3, pairs, np.int32
    ) as writer:
        sides = (
            vocabulary.encode(["ba ce", "di " * 20, "ce ce", "Ω"], 6),
            other.encode(["ba ba ba", "ha", "Ω", "je"], 6),
        )
        writer.append(*sides[0], *sides[1], np.array([0, 1, 0, 0]), np.array([2, 0, 2, 1]))
    found = inspect(path)
    assert found["pairs_of_languages"] == {"en-fr": 3, "en-en": 1}
    assert found["labels"] == {"minimum": 0, "mean": 1.25, "maximum": 2}
    assert [use["lower_case"] for use in found["vocabularies"]] == [True, False]
    assert [side["share_unknown"] for side in found["sides"]] == [0.25, 0.25]
    at_limit = [sum(len(row) == 6 for row in pieces(PairStore(path), side)) / 4 for side in "ab"]
    assert [side["share_at_limit"] for side in found["sides"]] == at_limit and at_limit[0] > 0
    assert {"row", "languages", "first", "second", "label"} == set(found["examples"][0])
