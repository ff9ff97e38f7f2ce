"""Stores from strangers, which ask HDF5 for what no store needs, and stores that change under their reader."""

from __future__ import annotations

import json
import os

import h5py
import numpy as np
import pytest
from support.data import write_store

from st_paragram.cli.main import main
from st_paragram.core.native import kernels
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.errors import StoreError
from st_paragram.tools.inspection.scan import inspect
from st_paragram.tools.inspection.text import render


@pytest.fixture
def path(tmp_path, pairs, vocabulary):
    """A store of version 2, with all that a store can have."""
    other = type(vocabulary)(vocabulary.content, lower_case=False)
    a, b = (vocabulary.encode([pair[side] for pair in pairs[:20]]) for side in (0, 1))
    languages = [("en", "fr"), ("en", "es")]
    with PairStoreWriter(
        tmp_path / "x.h5", ("en", "fr-es"), (vocabulary, other), row_languages=languages, labels="f4"
    ) as writer:
        writer.append(*a, *b, np.arange(20) % 2, np.arange(20))
    return tmp_path / "x.h5"


def _replaced(name, **options):
    """The same numbers in another form."""

    def replace(file):
        values = options.pop("convert", lambda given: given)(file[name][:])
        attributes = dict(file[name].attrs)
        del file[name]
        file.create_dataset(name, data=values, **options).attrs.update(attributes)

    return replace


def _linked(name, link):
    def replace(file):
        del file[name]
        file[name] = link(file)

    return replace


def _in_another_file(name):
    def replace(file):
        values, attributes = file[name][:], dict(file[name].attrs)
        other = file.filename + ".raw"
        values.tofile(other)
        del file[name]
        data = file.create_dataset(name, values.shape, values.dtype, external=[(other, 0, h5py.h5f.UNLIMITED)])
        data.attrs.update(attributes)

    return replace


def _virtual(name):
    def replace(file):
        values = file[name][:]
        with h5py.File(file.filename + ".other", "w") as other:
            other["x"] = values
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[:] = h5py.VirtualSource(file.filename + ".other", "x", values.shape)
        del file[name]
        file.create_virtual_dataset(name, layout)

    return replace


def _of_twelve_bits(file):
    """numpy has no such numbers: h5py tells uint16, and converts what it reads."""
    twelve = h5py.h5t.STD_U16LE.copy()
    twelve.set_precision(12)
    twelve.set_offset(4)
    del file["row_languages"]
    space = h5py.h5s.create_simple((20,))
    h5py.h5d.create(file.id, b"row_languages", twelve, space).write(space, space, np.zeros(20, np.uint16))
    file["row_languages"].attrs["pairs"] = '[["en", "fr"]]'


def _attribute(name, value):
    return lambda file: file.attrs.__setitem__(name, value)


ANOTHER_PLACE = "is a link to another place"
NOT_CONTIGUOUS = "is not contiguous: chunked, compressed, virtual or in another file"
ANOTHER_TYPE = r"the attribute \w+ is .+, not of the type (int|str)"
NOT_A_LIST = "it must be a list of"
STRANGE = {
    "external link": (_linked("a/ids", lambda _: h5py.ExternalLink("/dev/zero", "/x")), f"ids {ANOTHER_PLACE}"),
    "soft link": (_linked("labels", lambda _: h5py.SoftLink("/a/ids")), f"labels {ANOTHER_PLACE}"),
    "a link to nothing": (_linked("labels", lambda _: h5py.SoftLink("/nothing")), f"labels {ANOTHER_PLACE}"),
    "links in a circle": (_linked("b", lambda _: h5py.SoftLink("/b")), f"b {ANOTHER_PLACE}"),
    "a tokenizer elsewhere": (_linked("a/tokenizer", lambda _: h5py.ExternalLink("y.h5", "/t")), ANOTHER_PLACE),
    "a shared tokenizer elsewhere": (
        lambda file: file.__setitem__("tokenizer", h5py.SoftLink("/a/tokenizer")),
        ANOTHER_PLACE,
    ),
    "a group for a data set": (_linked("b/ids", lambda file: file["a"]), "b/ids is not a data set"),
    "a data set for a group": (_linked("b", lambda file: file["a/ids"]), "there is no group for b/ids"),
    "a type for a data set": (_linked("labels", lambda _: np.dtype("f4")), "labels is not a data set"),
    "chunks": (_replaced("a/ids", chunks=(7,)), NOT_CONTIGUOUS),
    "compression": (_replaced("row_languages", compression="gzip"), NOT_CONTIGUOUS),
    "checksums": (_replaced("b/offsets", fletcher32=True), NOT_CONTIGUOUS),
    "a compressed tokenizer": (_replaced("b/tokenizer", compression="gzip"), NOT_CONTIGUOUS),
    "another file": (_in_another_file("a/ids"), NOT_CONTIGUOUS),
    "a tokenizer in another file": (_in_another_file("a/tokenizer"), NOT_CONTIGUOUS),
    "a virtual data set": (_virtual("b/ids"), NOT_CONTIGUOUS),
    "big-endian ids": (_replaced("a/ids", convert=lambda ids: ids.astype(">u2")), NOT_A_LIST),
    "big-endian offsets": (_replaced("b/offsets", convert=lambda given: given.astype(">u8")), NOT_A_LIST),
    "ids of 64 bits": (_replaced("a/ids", convert=lambda ids: ids.astype("u8")), NOT_A_LIST),
    "signed ids": (_replaced("a/ids", convert=lambda ids: ids.astype("i2")), NOT_A_LIST),
    "twelve bits": (_of_twelve_bits, "row_languages has a type that is not plain uint16"),
    "no ids": (_replaced("a/ids", convert=lambda ids: ids[:0]), "side a has no ids"),
    "a single id": (_linked("a/ids", lambda _: np.uint8(1)), NOT_A_LIST),
    "deep JSON": (_attribute("settings", "[" * 100_000 + "]" * 100_000), "nested more than"),
    "JSON of another type": (_attribute("settings", "[1]"), "JSON of another type"),
    "a number of many digits": (_attribute("settings", f'{{"x": {"9" * 5000}}}'), "not a readable pair store"),
    "a lone surrogate": (_attribute("settings", r'{"x": "\ud800"}'), "not a readable pair store"),
    "a settings of bytes": (_attribute("settings", np.bytes_(b"{}")), ANOTHER_TYPE),
    "a list of pairs": (_attribute("pairs", [20, 20]), ANOTHER_TYPE),
    "pairs of text": (_attribute("pairs", "20"), ANOTHER_TYPE),
    "a version with a fraction": (_attribute("format_version", 2.5), ANOTHER_TYPE),
    "a negative length": (_attribute("max_length", -1), "max_length is -1"),
    "an infinite seed": (_attribute("seed", np.inf), ANOTHER_TYPE),
    "too many pairs": (_attribute("pairs", np.uint64(2**64 - 1)), "side a has 20 sentences"),
    "three languages": (_attribute("languages", ["en", "fr", "es"]), "languages named"),
    "a language that steers the terminal": (_attribute("languages", ["en", "\x1b[2J"]), "languages named"),
    "languages in one text": (_attribute("languages", "en"), "languages named"),
    "many languages": (_attribute("languages", ["en"] * 3_000), "languages named"),
    "a reference": (lambda file: file.attrs.__setitem__("seed", file["a"].ref), ANOTHER_TYPE),
    "an empty attribute": (_attribute("languages", h5py.Empty("f4")), "not a readable pair store"),
    "pairs of languages by name": (
        lambda file: file["row_languages"].attrs.__setitem__("pairs", '{"ab": 1, "cd": 2}'),
        "JSON of another type",
    ),
    "options of the tokenizer": (
        lambda file: file["a/tokenizer"].attrs.__setitem__("options", '{"lower_case": []}'),
        "damaged tokenizer",
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_no_store_has_is_refused_in_one_line(path, name):
    action, message = STRANGE[name]
    with h5py.File(path, "r+") as file:
        action(file)
    with pytest.raises(StoreError, match=message) as caught:
        PairStore(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600


def test_the_store_itself_is_read(path):
    store = PairStore(path)
    assert store.compute_digest() == store.stated_digest and len(list(store.texts("b", np.arange(20)))) == 20


@pytest.mark.parametrize("size", [0, 1000, 5000])
def test_a_store_that_is_cut_while_it_is_read(path, size):
    store = PairStore(path)
    os.truncate(path, size)
    for use in (
        lambda: store.take("a", np.array([0])),
        lambda: list(store.texts("b", np.array([0]))),
        lambda: store.row_languages(np.array([0])),
        lambda: store.labels(np.array([0])),
        store.check_rows,
        store.compute_digest,
        lambda: PairStore(path),
    ):
        with pytest.raises(StoreError, match=r"x\.h5: (changed while in use|not a readable pair store)"):
            use()


def test_a_store_that_grows_or_goes_before_it_is_mapped(path):
    store, gone = PairStore(path, check_ids=False), PairStore(path, check_ids=False)
    with path.open("ab") as file:
        file.write(b"more")
    with pytest.raises(StoreError, match="changed while in use"):
        store.take("a", np.array([0]))
    path.unlink()
    with pytest.raises(StoreError, match="cannot be mapped"):
        gone.take("a", np.array([0]))


def test_a_store_that_is_replaced_is_read_to_its_end(path, tmp_path):
    store = PairStore(path)
    before = store.take("b", np.arange(20))[0]
    (tmp_path / "new").write_bytes(b"a new store")
    (tmp_path / "new").replace(path)
    assert store.take("b", np.arange(20))[0].tolist() == before.tolist()


DAMAGED_ROWS = {
    "begins behind its end": lambda file: file["a/offsets"].__setitem__(3, 10_000),
    "wraps around": lambda file: file["a/offsets"].__setitem__(3, 2**64 - 5),
    "is empty": lambda file: file["a/offsets"].__setitem__(4, file["a/offsets"][3]),
    "has another id": lambda file: file["a/ids"].__setitem__(int(file["a/offsets"][3]), 2**16 - 1),
}


@pytest.mark.parametrize("name", DAMAGED_ROWS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_rows_are_looked_at_when_they_are_taken(path, name, dtype):
    with h5py.File(path, "r+") as file:
        ids = file["a/ids"][:].astype(np.uint16)
        del file["a/ids"]
        file["a/ids"] = ids
        DAMAGED_ROWS[name](file)
    store = PairStore(path, check_ids=False)
    assert len(store.take("a", np.array([0, 1]), dtype)[0])
    with pytest.raises(StoreError, match=r"x\.h5: side a: (offsets do not increase|id 65535 is outside)"):
        store.take("a", np.array([3]), dtype)


@pytest.mark.skipif(kernels() is None, reason="the compiled kernels are not installed")
def test_ids_beyond_31_bits_are_not_negative(path):
    with h5py.File(path, "r+") as file:
        ids = file["a/ids"][:].astype(np.uint32)
        ids[0] = 2**32 - 1
        del file["a/ids"]
        file["a/ids"] = ids
    with pytest.raises(StoreError, match="side a: id -1 is outside"):
        PairStore(path, check_ids=False).take("a", np.array([0]), np.int32)


def test_numbers_of_languages_are_looked_at(path):
    with h5py.File(path, "r+") as file:
        file["row_languages"][3] = 9
    with pytest.raises(StoreError, match=r"of the rows asked for: row 1: unknown language pair 9"):
        PairStore(path, check_ids=False).row_languages(np.array([2, 3]))


def test_texts_of_a_stranger_do_not_steer_the_terminal(tmp_path, pairs, vocabulary, capsys):
    store = write_store(tmp_path / "x.h5", pairs[:20], vocabulary, **{"\x1b[2Jnote": "\x1b]0;title\x07"})
    assert "\x1b" not in render(inspect(store))
    assert main(["info", str(store.path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(["info", str(store.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["settings"] == store.settings


def test_a_vocabulary_that_is_no_text(tmp_path, pairs, vocabulary):
    """Training and inspection decode; that must not be where it is found."""
    path = write_store(tmp_path / "x.h5", pairs[:20], vocabulary).path
    piece = next(piece for piece in map(vocabulary.piece, range(9, 300)) if piece and len(piece) > 3).encode()
    path.write_bytes(path.read_bytes().replace(piece, piece[:-1] + b"\xff"))
    with pytest.raises(StoreError, match=r"damaged tokenizer .*not UTF-8") as caught:
        PairStore(path)
    assert "\n" not in str(caught.value)
