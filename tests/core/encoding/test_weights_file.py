"""Mapped tables: shared, private, checked once."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from st_paragram import Encoder
from st_paragram.core.encoding import checksums_file, weights_file
from st_paragram.core.encoding.find import shipped_folder
from st_paragram.core.encoding.table import Table, TableType
from st_paragram.errors import ModelDirectoryError


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path, cache):
    return Encoder(shipped_folder()).save(tmp_path / "m", dtype="float32", truncate_dim=8)


@pytest.mark.parametrize("kind", list(TableType))
def test_what_was_written_is_mapped(tmp_path, rng, kind):
    table = Table(rng.standard_normal((9, 6)).astype(np.float32)).converted(kind)
    weights_file.write_table(tmp_path / "t.safetensors", table, 4)
    stored = load_file(tmp_path / "t.safetensors")
    stock = stored.get("embedding.weight", stored.get("embeddings"))
    assert not stock[4].any() or kind is TableType.INT4  # which no stock reader averages
    again = weights_file.map_table(tmp_path / "t.safetensors", (9, 6), kind, 4)
    np.testing.assert_array_equal(again.weight, table.weight)
    assert load_file(tmp_path / "t.safetensors").keys() == stored.keys()  # the mapping is private


def test_a_file_that_is_replaced_leaves_open_tables_as_they_are(folder):
    encoder = Encoder(folder)
    before = encoder.encode("station")
    Encoder(shipped_folder()).save(folder, dtype="float32", truncate_dim=8, normalize=True, overwrite=True)
    np.testing.assert_array_equal(encoder.encode("station"), before)


def _private_bytes(folder, queue):
    encoder = Encoder(folder)
    encoder.encode(["a station in the town", "x"])
    encoder.model.table.weight.sum()  # every page is touched
    seen, private = False, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if ".safetensors" in line:
            seen = True
        elif "-" in line.split(" ")[0] and ":" not in line.split(" ")[0]:
            seen = False
        elif seen and line.startswith("Private_Dirty"):
            private += int(line.split()[1]) << 10
    queue.put((encoder.model.table.weight.nbytes, private))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux counts pages in /proc")
def test_processes_share_one_copy():
    queue = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(target=_private_bytes, args=(shipped_folder(), queue))
    process.start()
    size, private = queue.get(timeout=60)
    process.join()
    assert private <= 4 * os.sysconf("SC_PAGE_SIZE") < size / 100


def test_files_are_compared_once_until_they_change(folder, monkeypatch):
    read = []
    digests = checksums_file.content_digests
    monkeypatch.setattr(checksums_file, "content_digests", lambda files: read.append(len(files)) or digests(files))
    for _ in range(3):
        Encoder(folder)
    assert len(read) == 1
    os.utime(folder / "model.safetensors")
    Encoder(folder)
    assert len(read) == 2
    (folder / "st_paragram.json").touch()
    Encoder(folder)
    assert len(read) == 3


def test_damage_after_the_first_opening_is_found(folder):
    Encoder(folder)
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelDirectoryError, match=r"model\.safetensors: not what was saved"):
        Encoder(folder)


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, -1e31])
def test_numbers_that_no_mean_has_are_found_without_checksums(tmp_path, cache, number, kind):
    folder = Encoder(shipped_folder()).save(tmp_path / "m", dtype=kind, truncate_dim=8)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["embedding.weight"][3, 2] = number
    save_file(tensors, path)
    (folder / "SHA256SUMS").unlink()
    for _ in range(2):
        with pytest.raises(ModelDirectoryError, match="NaN"):
            Encoder(folder)


def test_a_cache_that_holds_something_else_is_not_believed(folder, cache):
    Encoder(folder)
    for known in (cache / "st_paragram/models").iterdir():
        known.write_text("0" * 64)
    (folder / "SHA256SUMS").write_text("0" * 64 + "  model.safetensors\n")
    with pytest.raises(ModelDirectoryError, match="not what was saved"):
        Encoder(folder)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"embedding.weight": np.zeros((9, 5), np.float64)}, "numbers of type F64"),
        ({"embedding.weight": np.zeros((9, 5), np.float32)}, "no tensor 'unknown_embedding'"),
        (
            {"embedding.weight": np.zeros((9, 4), np.float32), "unknown_embedding": np.zeros(4, np.float32)},
            r"shape \(9, 4\), expected \(9, 5\)",
        ),
        (
            {"embedding.weight": np.zeros((9, 5), np.float16), "unknown_embedding": np.zeros(5, np.float32)},
            "a table of float16, expected float32",
        ),
        (
            {"embedding.weight": np.zeros((9, 5), np.float32), "unknown_embedding": np.zeros(4, np.float32)},
            "parts of different sizes",
        ),
    ],
)
def test_other_tables_are_named(tmp_path, tensors, message):
    save_file(tensors, tmp_path / "t.safetensors")
    with pytest.raises(ModelDirectoryError, match=message):
        weights_file.map_table(tmp_path / "t.safetensors", (9, 5), TableType.FLOAT32, 0)
