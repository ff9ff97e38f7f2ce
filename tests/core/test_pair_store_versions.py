"""Version 1 as it was written before there was another, and what only version 2 can hold."""

from __future__ import annotations

import hashlib
import itertools
import lzma
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.data import make_pairs

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers import base
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import SettingsError, StoreError

VERSION_1 = Path(__file__).with_name("version-1.h5.xz")
LANGUAGES = [("en", "fr"), ("en", "es"), ("en", "en")]


class Letters(base.Tokenizer):
    """The letters of `content` are ids from 1; every other character is unknown, 0."""

    kind = "letters"
    unknown_id = 0

    def __init__(self, content: bytes, step: int = 1) -> None:
        self._letters, self._step = content.decode(), step

    def __len__(self):
        return len(self._letters) + 1

    def encode(self, texts, max_length=None, num_threads=1):
        return self.pack([[self._letters.find(c) + 1 for c in text[:: self._step]][:max_length] for text in texts])

    def decode(self, ids):
        return "".join(map(self.piece, ids))

    def piece(self, piece_id):
        return self._letters[piece_id - 1] if piece_id else None

    @property
    def content(self):
        return self._letters.encode()

    @property
    def options(self):
        return {"step": self._step}


@pytest.fixture(autouse=True)
def _letters(monkeypatch):
    monkeypatch.setitem(base.KINDS, "letters", f"{__name__}:Letters")


@pytest.fixture
def other() -> SentencePieceTokenizer:
    return SentencePieceTokenizer(train_vocabulary(["ba ce di fo gu ha je"] * 5, 30), lower_case=False)


@pytest.fixture
def version_1(tmp_path) -> PairStore:
    (tmp_path / "old.h5").write_bytes(lzma.decompress(VERSION_1.read_bytes()))
    return PairStore(tmp_path / "old.h5")


def version(path) -> int:
    with h5py.File(path) as file:
        return int(file.attrs["format_version"])


def test_version_1_is_read(version_1):
    """Written by st_paragram 0.1.0 when there was no version 2: `make_pairs(60)` and ("Ω", "ba"), 12 pieces at most.

    The model is sentencepiece's, of 120 pieces, normalization_rule_name="identity", trained on the 60 pairs.
    """
    pairs = make_pairs(60)
    tokenizer = version_1.tokenizer()
    assert (version(version_1.path), len(version_1), version_1.languages) == (1, 61, ("en", "xx"))
    assert (version_1.max_length, version_1.seed) == (12, 7)
    assert version_1.settings == {"note": "made by version 0.1.0", "report": {"kept": 61}}
    assert (len(tokenizer), tokenizer.options) == (120, {"lower_case": False, "segmentation": "none"})
    assert version_1.shared_tokenizer and version_1.language_pairs == (("en", "xx"),)
    rows = np.arange(61)
    for side, index, words, digest in (("a", 0, "Ω", "08a31e16f9e2ddfb"), ("b", 1, "ba", "dfe138afa5749516")):
        ids, offsets = version_1.take(side, rows)
        assert hashlib.sha256(ids.tobytes()).hexdigest().startswith(digest)
        for got, expected in zip(
            (ids, offsets), tokenizer.encode([p[index] for p in pairs] + [words], 12), strict=True
        ):
            np.testing.assert_array_equal(got, expected)
        for text, pair in zip(version_1.texts(side, rows), pairs, strict=False):
            assert pair[index].startswith(text)
    assert version_1.row_languages(rows) == [("en", "xx")] * 61 and version_1.labels(rows) is None


def _everything(path) -> dict[str, str]:
    """All attributes and arrays of a file, by their names."""
    with h5py.File(path) as file:
        found = {f"/ {name}": repr(value) for name, value in file.attrs.items()}
        file.visititems(lambda name, item: found.update({name: repr(item), f"{name} =": repr(_numbers(item))}))
    return found


def _numbers(item):
    return item[:].tolist() if isinstance(item, h5py.Dataset) else sorted(item)


def test_version_1_is_written_as_it_was_but_for_the_digest(version_1, tmp_path):
    store, rows = version_1, np.arange(61)
    again = tmp_path / "again.h5"
    with PairStoreWriter(
        again, store.languages, store.tokenizers, store.max_length, store.settings, store.seed, [store.languages]
    ) as writer:
        for part in np.split(rows, [1, 7]):
            writer.append(*store.take("a", part), *store.take("b", part), np.zeros(len(part), np.int64))
    new, old = _everything(again), _everything(store.path)
    assert new.pop("/ content_sha256") == repr(store.compute_digest())
    assert new == old
    assert (
        hashlib.sha256(again.read_bytes()).hexdigest()
        == "824c40de0c6d4b082ca5a0eba64656e5a6e2814b17ad68b5f10c8572ad01cd84"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.h5", "old.h5"]


def test_a_tokenizer_of_each_side(tmp_path, vocabulary, other):
    texts = ["ba ce", "di", ""], ["Ba ha je", "", "gu"]
    with PairStoreWriter(tmp_path / "s.h5", ("en", "xx"), (vocabulary, other)) as writer:
        writer.append(*vocabulary.encode(texts[0]), *other.encode(texts[1]))
    store = PairStore(tmp_path / "s.h5")
    assert (version(store.path), store.shared_tokenizer, store.languages) == (2, False, ("en", "xx"))
    assert store.tokenizers == (vocabulary, other) and store.tokenizer("b") == other != store.tokenizer("a")
    for side, tokenizer, expected in zip("ab", (vocabulary, other), texts, strict=True):
        for got, wanted in zip(store.take(side, np.arange(3)), tokenizer.encode(expected), strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert list(store.texts("b", np.array([2, 0]))) == [other.decode(other.encode([t])[0]) for t in ("gu", "Ba ha je")]
    with h5py.File(store.path) as file:
        assert "tokenizer" not in file and "sentencepiece_model" not in file


def test_a_tokenizer_of_another_kind(tmp_path):
    letters = Letters("abcdefé".encode(), 2)
    with PairStoreWriter(tmp_path / "s.h5", ("en", "xx"), (letters, Letters("abcdefé".encode(), 2))) as writer:
        writer.append(*letters.encode(["axbxé", "?"]), *letters.encode(["fe", "cbabc"]))
    store = PairStore(tmp_path / "s.h5")
    assert version(store.path) == 2 and store.shared_tokenizer
    assert store.tokenizer() == letters and store.tokenizer().options == {"step": 2}
    assert [ids.tolist() for ids in store.take("a", np.arange(2))] == [[1, 2, 7, 0], [0, 3, 4]]
    assert list(store.texts("b", np.arange(2))) == ["f", "cac"]


def test_a_tokenizer_without_content(tmp_path):
    nothing = Letters(b"")
    with PairStoreWriter(tmp_path / "s.h5", ("en", "xx"), nothing) as writer:
        writer.append(*nothing.encode(["a", "bc"]), *nothing.encode(["", "b"]))
    store = PairStore(tmp_path / "s.h5")
    assert store.tokenizer() == nothing and store.take("a", np.arange(2))[0].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.float32, np.float64])
def test_languages_and_labels_of_rows(tmp_path, vocabulary, pairs, dtype, rng):
    count = 50
    numbers, labels = rng.integers(0, 3, count), rng.integers(0, 100, count).astype(dtype)
    path = tmp_path / "s.h5"
    with PairStoreWriter(path, ("en", "fr-es"), vocabulary, None, None, 0, LANGUAGES, dtype) as writer:
        for part in np.split(np.arange(count), [20, 21]):
            chosen = [pairs[row] for row in part]
            sides = (vocabulary.encode([pair[side] for pair in chosen]) for side in (0, 1))
            writer.append(*itertools.chain.from_iterable(sides), numbers[part], labels[part])
        assert len(writer) == count
    store = PairStore(path)
    assert (version(path), store.languages, store.language_pairs) == (2, ("en", "fr-es"), tuple(LANGUAGES))
    rows = np.array([49, 0, 7, 7])
    assert store.row_languages(rows) == [LANGUAGES[numbers[row]] for row in rows]
    got = store.labels(rows)
    assert got.dtype == dtype and not isinstance(got, np.memmap)
    np.testing.assert_array_equal(got, labels[rows])
    copy = pickle.loads(pickle.dumps(store))
    assert copy.row_languages(rows) == store.row_languages(rows) and copy.labels(rows).tolist() == got.tolist()
    assert len(pickle.dumps(store)) < len(vocabulary.content) + 2000  # no maps, no second tokenizer
    assert len(PairStore(path, limit=3)) == 3


@settings(max_examples=20)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(-5, 5)), max_size=4), max_size=4).filter(any))
def test_parts_of_any_size(tmp_path_factory, vocabulary, parts):
    path = tmp_path_factory.mktemp("parts") / "s.h5"
    with PairStoreWriter(path, ("en", "fr-es"), vocabulary, row_languages=LANGUAGES, labels="i2") as writer:
        for part in parts:
            texts = [f"ba {number}" for number, _ in part]
            side = vocabulary.encode(texts)
            writer.append(
                *side, *side, np.array([n for n, _ in part], np.int64), np.array([m for _, m in part], np.int64)
            )
    rows = [row for part in parts for row in part]
    store = PairStore(path)
    assert store.row_languages(np.arange(len(rows))) == [LANGUAGES[number] for number, _ in rows]
    assert store.labels(np.arange(len(rows))).tolist() == [label for _, label in rows]


def test_one_pair_of_languages_that_is_not_the_stores(tmp_path, vocabulary):
    side = vocabulary.encode(["ba", "ce"])
    with PairStoreWriter(tmp_path / "s.h5", ("en", "fr-es"), vocabulary, row_languages=[("en", "es")]) as writer:
        writer.append(*side, *side)
    store = PairStore(tmp_path / "s.h5")
    assert version(store.path) == 2 and store.row_languages(np.array([1])) == [("en", "es")]


@pytest.mark.parametrize(
    ("numbers", "labels", "message"),
    [
        (None, [0, 1], "rows may be of 3 pairs of languages"),
        ([0], [0, 1], "1 numbers of pairs of languages for 2 rows"),
        ([0, 3], [0, 1], "row 1: unknown language pair 3; there are 3"),
        ([-1, 0], [0, 1], "row 0: unknown language pair -1"),
        ([0, 1], None, "0 labels for 2 rows"),
        ([0, 1], [0, 1, 2], "3 labels for 2 rows"),
        ([0, 1], [0, 1.5], r"row 1: the label 1\.5 is not a finite number of the type int8"),
        ([0, 1], [300, 1], "row 0: the label 300 "),
        ([0, 1], [0, np.nan], "row 1: the label nan "),
    ],
)
def test_wrong_rows_are_refused_and_leave_nothing(tmp_path, vocabulary, numbers, labels, message):
    side = vocabulary.encode(["ba", "ce"])
    writer = PairStoreWriter(tmp_path / "s.h5", ("en", "fr-es"), vocabulary, row_languages=LANGUAGES, labels="i1")
    with writer, pytest.raises(ValueError, match=message):
        writer.append(*side, *side, *(None if values is None else np.array(values) for values in (numbers, labels)))
    assert len(writer) == 0


def test_what_a_plain_store_cannot_take(tmp_path, vocabulary):
    side = vocabulary.encode(["ba", "ce"])
    with (
        pytest.raises(ValueError, match=r"row 1: the label 1e\+300 is not a finite number"),
        PairStoreWriter(tmp_path / "s.h5", ("en", "xx"), vocabulary, labels=np.float32) as writer,
    ):
        writer.append(*side, *side, labels=np.array([0.0, 1e300]))
    assert not list(tmp_path.iterdir())
    with PairStoreWriter(tmp_path / "s.h5", ("en", "xx"), vocabulary) as writer:
        for arguments, message in (
            ({"labels": np.zeros(2)}, "a store without labels"),
            ({"pairs": np.array([0, 1])}, "row 1: unknown language pair 1; there are 1"),
        ):
            with pytest.raises(ValueError, match=message):
                writer.append(*side, *side, **arguments)
        with pytest.raises(ValueError, match=r"side b: id 70000 is not in 0\.\.255"):
            writer.append(*side, np.array([1, 70_000]), np.array([0, 1, 2]))
        with pytest.raises(ValueError, match="2 sentences on side a, 1 on side b"):
            writer.append(*side, *vocabulary.encode(["ba"]))
        writer.append(*side, *side)
    assert len(PairStore(tmp_path / "s.h5")) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"row_languages": [("en", "fr"), ("en", "fr")]}, "name each pair once"),
        ({"labels": "U3"}, "labels of the type <U3"),
        ({"labels": bool}, "labels of the type bool"),
    ],
)
def test_refused_before_anything_is_written(tmp_path, vocabulary, options, message):
    with pytest.raises(SettingsError, match=message):
        PairStoreWriter(tmp_path / "s.h5", ("en", "fr"), vocabulary, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda f: f["row_languages"].__setitem__(4, 3), "row 4: unknown language pair 3; there are 3"),
        (lambda f: f["labels"].__setitem__(3, np.inf), "row 3: the label inf is not a finite number"),
        (lambda f: f["row_languages"].attrs.__setitem__("pairs", "["), "not a readable pair store"),
        (lambda f: f["row_languages"].attrs.__setitem__("pairs", '[["en"]]'), "not a readable pair store"),
        (lambda f: (f.__delitem__("labels"), f.create_dataset("labels", data=np.zeros(4))), "4 labels for 6 rows"),
        (
            lambda f: (f.__delitem__("labels"), f.create_dataset("labels", data=np.zeros((6, 1)))),
            "labels has the type <f8 and shape \\(6, 1\\)",
        ),
        (
            lambda f: (f.__delitem__("row_languages"), f.create_dataset("row_languages", data=np.zeros(6))),
            "row_languages has the type <f8",
        ),
        (lambda f: f["b/tokenizer"].__setitem__(slice(None), 0), "damaged tokenizer"),
        (lambda f: f["b/tokenizer"].attrs.__setitem__("options", '{"stemming": 1}'), "damaged tokenizer .*'stemming'"),
        (lambda f: f["b/tokenizer"].attrs.__setitem__("options", "7"), "not a readable pair store"),
        (lambda f: f["b/tokenizer"].attrs.__setitem__("kind", "runes"), "of the kind 'runes'; .*; update st_paragram"),
        (lambda f: f["a"].__delitem__("tokenizer"), "not a readable pair store"),
        (lambda f: f["b/ids"].__setitem__(0, 250), r"side b, row 0: id 250 is outside the vocabulary of \d\d"),
    ],
)
def test_broken_stores_are_refused_by_name(tmp_path, vocabulary, other, action, message):
    path = tmp_path / "s.h5"
    texts = ["ba ce di"] * 6
    with PairStoreWriter(
        path, ("en", "fr-es"), (vocabulary, other), row_languages=LANGUAGES, labels=np.float32
    ) as writer:
        writer.append(*vocabulary.encode(texts), *other.encode(texts), np.arange(6) % 3, np.arange(6))
    PairStore(path)
    with h5py.File(path, "r+") as file:
        action(file)
    with pytest.raises(StoreError, match=message) as caught:
        PairStore(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_labels_are_mapped_not_read(tmp_path, vocabulary):
    side = vocabulary.encode(["ba"] * 3)
    with PairStoreWriter(tmp_path / "s.h5", ("en", "fr"), vocabulary, row_languages=LANGUAGES, labels="f4") as writer:
        writer.append(*side, *side, np.array([0, 1, 2]), np.array([1.0, 2.0, 3.0]))
    store = PairStore(tmp_path / "s.h5", check_ids=False)
    store.labels(np.array([0])), store.row_languages(np.array([0]))
    assert all(isinstance(store._maps[name], np.memmap) for name in ("labels", "row_languages"))
