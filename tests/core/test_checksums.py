"""SHA-256 of many files at once."""

import hashlib

import pytest

from st_paragram.core import checksums
from st_paragram.core.checksums import content_digests


@pytest.mark.parametrize("threads", ["few bytes", "many bytes", "no thread can be started"])
def test_digests_are_in_the_order_of_the_files(tmp_path, monkeypatch, threads):
    def fail(*args):
        raise RuntimeError("can't start new thread")

    if threads != "few bytes":
        monkeypatch.setattr(checksums, "_FEW_BYTES", 0)
    if threads == "no thread can be started":
        monkeypatch.setattr("threading.Thread.start", fail)
    paths = [tmp_path / name for name in "cab"]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 3_000_000 * number)
    assert content_digests(paths) == [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert content_digests([]) == []
