import hashlib
import json
import os
import pickle
from contextlib import suppress

import h5py
import numpy as np
import pytest
from support.data import write_store

from st_paragram.cli.main import main
from st_paragram.core import pair_store
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import SettingsError, StoreError
from st_paragram.tools.inspection import inspect

LANGUAGES = [("en", "fr"), ("en", "es"), ("en", "en")]


@pytest.fixture
def path(tmp_path, pairs, vocabulary):
    return write_store(
        tmp_path / "x.h5", pairs[:20], vocabulary, note="é", parts=(1, 2.5, None)
    ).path


@pytest.fixture(scope="module")
def other() -> SentencePieceTokenizer:
    return SentencePieceTokenizer(
        train_vocabulary(["ba ce di fo gu ha je"] * 5, 30), lower_case=False
    )


@pytest.fixture
def full(tmp_path, pairs, vocabulary, other) -> PairStore:
    """A store with all that there may be: languages and labels of 50 rows, and a tokenizer for each
    side.
    """
    sides = [
        tokenizer.encode([pair[side] for pair in pairs[:50]])
        for side, tokenizer in enumerate((vocabulary, other))
    ]
    with PairStoreWriter(
        tmp_path / "full.h5",
        ("en", "fr-es"),
        (vocabulary, other),
        None,
        {"note": 1},
        3,
        LANGUAGES,
        np.float32,
    ) as writer:
        writer.append(*sides[0], *sides[1], np.arange(50) % 3, np.arange(50) / 4)
        assert len(writer) == 50
    return PairStore(tmp_path / "full.h5")


def equal(store, again):
    rows = np.arange(len(store))
    for name in (
        "languages",
        "language_pairs",
        "settings",
        "max_length",
        "seed",
        "pairs",
        "digest",
    ):
        assert getattr(store, name) == getattr(again, name)
    assert store.tokenizers == again.tokenizers and store.row_languages(
        rows
    ) == again.row_languages(rows)
    for side in "ab":
        for one, two in zip(store.take(side, rows), again.take(side, rows), strict=True):
            np.testing.assert_array_equal(one, two)


def test_round_trip(store, pairs, vocabulary):
    assert (len(store), store.languages, store.settings) == (
        len(pairs),
        ("en", "xx"),
        {"note": "made for tests"},
    )
    assert (store.language_pairs, store.max_length) == ((("en", "xx"),), 100)
    rows = np.array([5, 0, 699, 5])
    for side, index in (("a", 0), ("b", 1)):
        assert list(store.texts(side, rows)) == [pairs[row][index] for row in rows]
    assert store.row_languages(rows) == [("en", "xx")] * 4 and store.labels(rows) is None
    assert store.language_numbers().tolist() == [0] * len(pairs)
    assert (
        store.shared_tokenizer
        and store.tokenizer("a") is store.tokenizer("b")
        and store.tokenizer() == vocabulary
    )
    store.check()


def test_languages_labels_and_tokenizers_of_their_own(full, pairs, vocabulary, other):
    rows = np.array([49, 0, 7, 7])
    assert (full.languages, full.language_pairs) == (("en", "fr-es"), tuple(LANGUAGES))
    assert full.row_languages(rows) == [LANGUAGES[row % 3] for row in rows]
    assert full.language_numbers().tolist() == [row % 3 for row in range(50)]
    assert (
        full.labels(rows).tolist() == [12.25, 0, 1.75, 1.75]
        and full.labels(rows).dtype == np.float32
    )
    assert (
        full.tokenizers == (vocabulary, other)
        and not full.shared_tokenizer
        and full.tokenizer("b") == other
    )
    for got, expected in zip(
        full.take("b", np.arange(2)), other.encode([pairs[0][1], pairs[1][1]]), strict=True
    ):
        np.testing.assert_array_equal(got, expected)
    full.check()


def test_limited_and_pickled(full):
    limited = PairStore(full.path, limit=3)
    assert (len(limited), limited.language_numbers().tolist(), limited.digest) == (
        3,
        [0, 1, 2],
        full.digest,
    )
    limited.check()
    assert len(PairStore(full.path, limit=99)) == 50
    for each in (full, limited):
        pickled = pickle.dumps(each)
        equal(each, pickle.loads(pickled))
        assert len(pickled) < 300
    with pytest.raises(SettingsError, match="limit is 0; give at least 1"):
        PairStore(full.path, limit=0)


def test_the_digest_is_what_the_module_says(full, vocabulary, other):
    with h5py.File(full.path) as file:
        names = ["a/ids", "a/offsets", "b/ids", "b/offsets", "row_languages", "labels"]
        sha256 = {name: hashlib.sha256(file[name][:].tobytes()).hexdigest() for name in names}
        whole = {
            "arrays": {
                name: [file[name].dtype.str, len(file[name]), sha256[name]] for name in names
            }
        }
        whole |= {name: int(file.attrs[name]) for name in ("max_length", "pairs", "seed")}
        assert [file[name].dtype for name in names[:4]] == [np.uint8, np.uint64] * 2
        assert (
            list(file.attrs["languages"]) == ["en", "fr-es"] and file.attrs["format_version"] == 2
        )
    tokenizers = [
        ["sentencepiece", each.options, hashlib.sha256(each.content).hexdigest()]
        for each in (vocabulary, other)
    ]
    whole |= {"languages": ["en", "fr-es"], "language_pairs": LANGUAGES, "settings": {"note": 1}}
    text = json.dumps(
        whole | {"tokenizers": tokenizers},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    assert full.digest == hashlib.sha256(text.encode()).hexdigest()


def test_parts_give_the_same_file_as_the_whole(tmp_path, path, pairs, vocabulary):
    with PairStoreWriter(
        tmp_path / "parts.h5", ("en", "xx"), vocabulary, 100, PairStore(path).settings
    ) as writer:
        for part in (pairs[:7], [], pairs[7:20]):
            writer.append(
                *(
                    array
                    for side in (0, 1)
                    for array in vocabulary.encode([pair[side] for pair in part])
                )
            )
    assert (tmp_path / "parts.h5").read_bytes() == path.read_bytes()
    assert (
        write_store(tmp_path / "y.h5", pairs[19::-1], vocabulary).digest != PairStore(path).digest
    )


def test_an_edited_store_is_told(path, capsys):
    assert (
        main(["info", str(path), "--check"]) == 0
        and "the content matches its checksum" in capsys.readouterr().out
    )
    with h5py.File(path, "r+") as file:
        file["a/ids"][:2] = file["a/ids"][:2][::-1]
    with pytest.raises(
        StoreError,
        match=r"x\.h5: damaged or edited: the SHA-256 of its content is \w+, but \w+ was recorded",
    ):
        PairStore(path).check()
    assert main(["info", str(path)]) == 0
    assert (
        main(["info", str(path), "--check"]) == 1 and "damaged or edited" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "no such file; check the path, or make a pair store"),
        (lambda path: os.truncate(path, path.stat().st_size - 100), "not a readable pair store"),
        (lambda path: h5py.File(path, "w").close(), "HDF5, but not a pair store of version 2"),
        (
            lambda path: h5py.File(path, "r+")["tokenizer"].__setitem__(slice(None), 0),
            "its tokenizer cannot be used",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(path, damage, message):
    damage(path)
    with pytest.raises(StoreError) as caught:
        _ = PairStore(path).tokenizers
    assert str(caught.value).startswith(f"{path}: ") and message in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def values(name, place, value):
    return lambda file: file[name].__setitem__(place, value)


def attribute(name, value, where="/"):
    return lambda file: file[where].attrs.__setitem__(name, value)


def dataset(name, change):
    """Replace an array by a changed array."""

    def damage(file):
        array = change(file[name][:])
        attributes = dict(file[name].attrs)
        del file[name]
        file.create_dataset(name, data=array).attrs.update(attributes)

    return damage


def without(name, where="/"):
    return lambda file: file[where].attrs.__delitem__(name)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (values("a/offsets", 7, 2**60), "side a: sentence 8 ends where it begins, or before"),
        (values("a/offsets", -1, 2**62), "a/ids has "),
        (values("a/offsets", 7, 0), "side a: sentence 7 ends where it begins, or before"),
        (values("b/offsets", 0, 1), "side b: the first sentence begins at 1, not at 0"),
        (values("b/ids", 5, 255), "side b: id 255 in a vocabulary of "),
        (values("row_languages", 4, 3), "a row has language pair 3, but there are 3"),
        (values("labels", 4, np.nan), "a label is not a finite number"),
        (
            dataset("a/offsets", lambda array: array.astype(np.int64)),
            "a/offsets has the type int64, not uint64",
        ),
        (
            dataset("a/ids", lambda array: array.astype(np.float32)),
            "a/ids has the type float32, not unsigned",
        ),
        (
            dataset("a/ids", lambda array: array.astype(">u2")),
            "a/ids has the type >u2, not unsigned integers",
        ),
        (dataset("a/ids", lambda array: array[:, None]), "/a/ids is not an array in one dimension"),
        (dataset("b/ids", lambda array: array[:-1]), "b/ids has "),
        (
            dataset("b/offsets", lambda array: array[:0]),
            "b/offsets has 0 entries, but 51 are expected",
        ),
        (
            dataset("row_languages", lambda array: array[:7]),
            "row_languages has 7 entries, but 50 are expected",
        ),
        (
            dataset("labels", lambda array: array.astype(np.complex64)),
            "labels has the type complex64, not numbers",
        ),
        (attribute("pairs", 10**7), "a/offsets has 51 entries, but 10,000,001 are expected"),
        (attribute("pairs", -3), "pairs is -3; it must be at least 0"),
        (attribute("pairs", np.nan), "not a readable pair store"),
        (attribute("pairs", 1e300), "not a readable pair store"),
        (attribute("pairs", [50, 50]), "not a readable pair store"),
        (attribute("max_length", -5), "max_length is -5; it must be at least 0"),
        (attribute("seed", "x"), "not a readable pair store"),
        (attribute("languages", "en"), "languages are 'en', not two texts"),
        (attribute("languages", [1, 2]), "languages are "),
        (attribute("languages", ["en", "es", "fr"]), "languages are "),
        (attribute("settings", "[1]"), r"settings are [1], not a JSON object"),
        (attribute("settings", "{"), "not a readable pair store"),
        (attribute("settings", 3), "not a readable pair store"),
        (attribute("settings", "[" * 100_000), "not a readable pair store"),
        (
            attribute("pairs", "[]", "row_languages"),
            "the language pairs of rows are [], not a list",
        ),
        (
            attribute("pairs", '[["en"]]', "row_languages"),
            "the languages of a row are ['en'], not two texts",
        ),
        (
            attribute("pairs", '{"a": 1}', "row_languages"),
            "the language pairs of rows are {'a': 1}, not a list",
        ),
        (
            attribute("options", "[]", "a/tokenizer"),
            "a tokenizer of kind 'sentencepiece' with options []",
        ),
        (
            attribute("options", '{"lower_case": "x"}', "a/tokenizer"),
            "lower_case is 'x', not true or false",
        ),
        (
            attribute("options", '{"dropped": [10000000]}', "a/tokenizer"),
            "its tokenizer cannot be used",
        ),
        (attribute("options", '{"unheard": 1}', "a/tokenizer"), "its tokenizer cannot be used"),
        (attribute("kind", "../word", "b/tokenizer"), "no tokenizer of kind '../word'"),
        (attribute("kind", 4, "b/tokenizer"), "a tokenizer of kind "),
        (attribute("format_version", [2, 2]), "not a readable pair store"),
        (without("pairs"), "not a readable pair store"),
        (without("settings"), "not a readable pair store"),
        (without("kind", "a/tokenizer"), "not a readable pair store"),
        (without("content_sha256"), "not a readable pair store"),
        (
            lambda file: file.__delitem__("a/tokenizer"),
            "it needs one tokenizer for both sides, or one for each side",
        ),
        (lambda file: file.__delitem__("b/ids"), "not a readable pair store"),
    ],
)
def test_a_forged_store_with_a_valid_digest_is_refused_in_one_line(full, damage, message):
    with h5py.File(full.path, "r+") as file:
        damage(file)
        file.flush()
        if "content_sha256" in file.attrs:
            with suppress(Exception):  # then the digest does not matter
                file.attrs["content_sha256"] = pair_store._content_sha256(file)
    with pytest.raises(StoreError) as caught:
        PairStore(full.path).check()
    said = str(caught.value)
    assert (
        said.startswith(f"{full.path}: ")
        and message in said
        and "\n" not in said
        and len(said) < 600
    )
    with pytest.raises(StoreError):
        inspect(full.path)


def test_settings_of_any_form_can_be_trained_on(tmp_path, pairs, vocabulary):
    for report in (
        "x",
        {"all": 3},
        {"all": {"dropped": ["a"]}},
        {"all": {"dropped": {"blank": 2}}},
    ):
        store = write_store(tmp_path / "r.h5", pairs[:20], vocabulary, report=report)
        assert store.dropped == ({"blank": 2} if "blank" in str(report) else {})
        (tmp_path / "r.h5").unlink()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give the index of the language pair, below 3, for each of 2 rows"),
        ({"pairs": [0, 1], "labels": [0, 1, 2]}, "give a label for each of 2 rows"),
        (
            {"pairs": [0, 1], "labels": [0, 1.5]},
            r"labels 0\.0\.\.1\.5: not all are finite numbers of int8",
        ),
        ({"pairs": [0, 1], "b_ids": [1, 70_000, 1, 1]}, r"side b: ids in 1\.\.70000, not in 0\.\."),
        ({"pairs": [0, 1], "b_offsets": [0, 4]}, "2 sentences on side a, 1 on side b"),
    ],
)
def test_a_writer_refuses_rows_and_goes_on(tmp_path, vocabulary, arguments, message):
    good = {
        "a_ids": [1, 2, 3],
        "a_offsets": [0, 1, 3],
        "b_ids": [1, 1, 1, 1],
        "b_offsets": [0, 1, 4],
        "labels": [0, 1],
    }
    with PairStoreWriter(
        tmp_path / "s.h5", ("en", "fr-es"), vocabulary, row_languages=LANGUAGES, labels="i1"
    ) as writer:
        values = {name: value and np.array(value) for name, value in (good | arguments).items()}
        with pytest.raises(ValueError, match=message):
            writer.append(**values)
        assert len(writer) == 0
        writer.append(
            **{name: np.array(value) for name, value in (good | {"pairs": [2, 1]}).items()}
        )
    assert PairStore(tmp_path / "s.h5").row_languages(np.arange(2)) == [("en", "en"), ("en", "es")]


def test_an_error_leaves_nothing_and_the_old_file_as_it_was(path, vocabulary):
    before = path.read_bytes()
    with pytest.raises(RuntimeError), PairStoreWriter(path, ("en", "xx"), vocabulary) as writer:
        writer.append(*vocabulary.encode(["ba"]), *vocabulary.encode(["ce"]))
        raise RuntimeError
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]
