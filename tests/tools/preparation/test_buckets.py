"""Rows in files by their keys, sorted file by file."""

from __future__ import annotations

import pytest

from st_paragram.tools.preparation import buckets
from st_paragram.tools.preparation.buckets import Buckets, key_of, pack_rows, read_buckets

PAIRS = [(f"row {number}", f"fila {number}") for number in range(600)]


@pytest.mark.parametrize("most_bytes", [500, 1 << 20])
def test_large_files_are_divided_and_the_order_stays(tmp_path, monkeypatch, most_bytes):
    monkeypatch.setattr(buckets, "_MOST_BYTES", most_bytes)
    rows = pack_rows([*PAIRS, *PAIRS[:1] * 30], source=0, by="pair", seed=1)
    folder = tmp_path / "rows"
    with Buckets(folder) as files:
        files.add(rows)
    parts = list(read_buckets(folder))
    assert [row for part in parts for row in part] == sorted(rows)
    assert len(list(folder.iterdir())) == buckets.BUCKETS  # nothing else is left
    large = [part for part in parts if len(b"".join(part)) > most_bytes]
    assert all(len(set(part)) == 1 for part in large)  # only equal rows cannot be divided
    keys = [{key_of(row) for row in part} for part in parts if part]
    assert sum(map(len, keys)) == len(PAIRS)  # equal rows are in one part
