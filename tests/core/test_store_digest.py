"""The digest of what a store holds: what it is made of, and what it finds."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.data import write_store

from st_paragram.cli.main import main
from st_paragram.core.pair_store import PairStore, PairStoreWriter, reader
from st_paragram.errors import StoreError

LANGUAGES = [("en", "fr"), ("en", "es")]


@pytest.fixture
def path(tmp_path, pairs, vocabulary):
    return write_store(tmp_path / "x.h5", pairs[:20], vocabulary, note="é", parts=(1, 2.5, None)).path


@pytest.fixture
def old(tmp_path):
    """A store that was written when there were no digests."""
    (tmp_path / "old.h5").write_bytes(lzma.decompress(Path(__file__).with_name("version-1.h5.xz").read_bytes()))
    return tmp_path / "old.h5"


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


def _digest_by_the_book(path, tokenizers, language_pairs):
    """What `format` says, from what h5py reads."""
    with h5py.File(path) as file:
        names = ["a/ids", "a/offsets", "b/ids", "b/offsets", *({"row_languages", "labels"} & set(file))]
        arrays = {name: [file[name].dtype.str, len(file[name]), _sha256(file[name][:].tobytes())] for name in names}
        whole = {"arrays": arrays, "language_pairs": language_pairs, "languages": list(file.attrs["languages"])}
        whole |= {name: int(file.attrs[name]) for name in ("max_length", "pairs", "seed")}
        whole |= {"settings": json.loads(file.attrs["settings"]), "tokenizers": tokenizers}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _sha256(text.encode())


def test_it_is_what_the_format_says(path, vocabulary):
    store, described = PairStore(path), ["sentencepiece", vocabulary.options, _sha256(vocabulary.content)]
    expected = _digest_by_the_book(path, [described], [["en", "xx"]])
    assert store.stated_digest == store.compute_digest() == store.digest == expected
    with h5py.File(path) as file:
        assert file.attrs["content_sha256"] == expected


def test_it_holds_tokenizers_languages_and_labels_of_rows(tmp_path, vocabulary):
    other = type(vocabulary)(vocabulary.content, lower_case=False)
    path, side = tmp_path / "s.h5", vocabulary.encode(["ba ce"] * 4)
    with PairStoreWriter(
        path, ("en", "fr-es"), (vocabulary, other), row_languages=LANGUAGES, labels=np.float32
    ) as writer:
        for rows in (np.arange(1), np.arange(1, 4)):
            part = side[0][: 2 * len(rows)], side[1][: len(rows) + 1]
            writer.append(*part, *part, rows % 2, rows / 2)
    described = [["sentencepiece", each.options, _sha256(each.content)] for each in (vocabulary, other)]
    expected = _digest_by_the_book(path, described, [list(pair) for pair in LANGUAGES])
    assert PairStore(path).stated_digest == PairStore(path).compute_digest() == expected


def test_it_is_the_same_however_rows_were_appended_and_tells_other_rows_apart(tmp_path, pairs, vocabulary):
    whole = write_store(tmp_path / "whole.h5", pairs[:20], vocabulary)
    with PairStoreWriter(tmp_path / "parts.h5", ("en", "xx"), vocabulary, 100) as writer:
        for part in (pairs[:7], pairs[7:20]):
            writer.append(*(array for side in (0, 1) for array in vocabulary.encode([pair[side] for pair in part])))
    shuffled = write_store(tmp_path / "shuffled.h5", pairs[19::-1], vocabulary)
    assert PairStore(tmp_path / "parts.h5").digest == whole.digest != shuffled.digest
    assert shuffled.path.stat().st_size == whole.path.stat().st_size


@pytest.mark.parametrize(
    "edit",
    [
        lambda file: file["a/ids"].__setitem__(slice(0, 2), file["a/ids"][:2][::-1]),
        lambda file: file["b/offsets"].__setitem__(1, file["b/offsets"][1] + 1),
        lambda file: file.attrs.__setitem__("seed", 1),
        lambda file: file.attrs.__setitem__("max_length", 99),
        lambda file: file.attrs.__setitem__("lower_case", False),
        lambda file: file.attrs.__setitem__("languages", ["en", "xy"]),
        lambda file: file.attrs.__setitem__("settings", '{"note": "e"}'),
        lambda file: file.attrs.__setitem__("content_sha256", "0" * 64),
    ],
)
def test_an_edited_store_is_told(path, edit):
    with h5py.File(path, "r+") as file:
        edit(file)
    store = PairStore(path)
    for compute in (store.compute_digest, lambda: store.digest):
        with pytest.raises(StoreError, match=r"x\.h5: damaged or edited: the SHA-256 of its content is \w+") as caught:
            compute()
        assert "\n" not in str(caught.value)


def test_a_digest_that_is_none_is_refused(path):
    with h5py.File(path, "r+") as file:
        file.attrs["content_sha256"] = "x"
    with pytest.raises(StoreError, match="content_sha256 is 'x'"):
        PairStore(path)


def test_an_old_store_gets_one_once_and_is_not_written_to(old, monkeypatch):
    before, digest = old.read_bytes(), PairStore(old).digest
    assert PairStore(old).stated_digest is None and old.read_bytes() == before
    monkeypatch.setattr(reader, "digest_of", lambda *_: "of another reading")
    assert PairStore(old).digest == digest == PairStore(old, limit=3).digest
    os.utime(old, ns=(0, 1))
    assert PairStore(old).digest == "of another reading"


@pytest.mark.parametrize("content", [b"", b"\xff", b"0" * 63])
def test_a_damaged_cache_is_done_without(old, tmp_path, monkeypatch, content):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    digest = PairStore(old).digest
    (known,) = (tmp_path / "cache/st_paragram/store-digests").iterdir()
    known.write_bytes(content)
    assert PairStore(old).digest == digest
    assert known.read_text() == f"{digest}\n"
    monkeypatch.setenv("XDG_CACHE_HOME", str(known))
    assert PairStore(old).digest == digest


def test_names_of_files_in_other_codes(tmp_path, pairs, vocabulary):
    """The report of a preparation names its texts, as Python names files that are not in UTF-8."""
    store = write_store(tmp_path / "x.h5", pairs[:3], vocabulary, source="na\udcefve.tsv")
    assert store.settings == {"source": "na?ve.tsv"} and store.compute_digest() == store.stated_digest


def test_info_checks_the_content_where_it_is_asked_to(path, old, capsys):
    assert main(["info", str(path), str(old), "--check", "--json"]) == 0
    new, without = json.loads(capsys.readouterr().out)
    assert new["content_sha256"] == PairStore(path).digest and without["content_sha256"] is None
    assert new["checked"] == "20 rows are sound, and the content is what was written"
    assert without["checked"].startswith("61 rows are sound; the store has no digest to compare")
    with h5py.File(path, "r+") as file:
        file["a/ids"][0:2] = file["a/ids"][:2][::-1]
    assert main(["info", str(path)]) == 0
    assert main(["info", str(path), "--check"]) == 1
    assert "damaged or edited" in capsys.readouterr().err
