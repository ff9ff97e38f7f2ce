"""What a killed program leaves is resumed or removed, and never believed."""

import hashlib
import json
import signal
import subprocess
import sys

import pytest
from filelock import FileLock
from support.downloads import FAST, NAME, PATH, archive, fetch, names
from support.http_server import Answer, serving

from st_paragram.errors import DownloadError

FILES = [f"{NAME}{ending}" for ending in (".part", ".part.json", ".part.lock")]


@pytest.fixture
def server():
    with serving() as running:
        running.files[PATH] = archive()
        yield running


def leave(folder, part, origin):
    """What stays of a part when the program is killed."""
    folder.mkdir(exist_ok=True)
    for name, data in zip(FILES, (part, origin, b""), strict=True):
        (folder / name).write_bytes(data)


@pytest.fixture
def origin(tmp_path, server):
    """What is noted beside a part."""
    server.script[PATH] = [Answer(cut=5000), *[Answer(status=503)] * 2]
    with pytest.raises(DownloadError, match="5,000 bytes are kept"):
        fetch(server, tmp_path / "earlier")
    server.asked.clear()
    return json.loads((tmp_path / "earlier" / f"{NAME}.part.json").read_text())


def test_a_part_is_resumed_and_its_files_go(tmp_path, server, origin):
    data = server.files[PATH]
    leave(tmp_path / "raw", data[:7000], json.dumps(origin).encode())
    assert fetch(server, tmp_path / "raw").path.read_bytes() == data
    assert server.gets() == ["bytes=6900-"] and names(tmp_path / "raw") == [NAME, "manifest.json"]


@pytest.mark.parametrize("there", [1, 2, 3])
def test_what_stays_beside_a_complete_file_goes(tmp_path, server, origin, there):
    """The program was killed between giving the file its name and removing the rest."""
    fetch(server, tmp_path / "raw")
    leave(tmp_path / "raw", b"part", json.dumps(origin).encode())
    for name in FILES[there:]:
        (tmp_path / "raw" / name).unlink()
    assert not fetch(server, tmp_path / "raw").fresh
    assert names(tmp_path / "raw") == [NAME, "manifest.json"]


def test_what_another_process_is_at_stays(tmp_path, server, origin):
    fetch(server, tmp_path / "raw")
    leave(tmp_path / "raw", b"part", json.dumps(origin).encode())
    with FileLock(tmp_path / "raw" / FILES[2]):
        assert not fetch(server, tmp_path / "raw").fresh
        assert names(tmp_path / "raw") == sorted([NAME, *FILES, "manifest.json"])


@pytest.mark.parametrize(
    "change",
    [{"etag": 5}, {"etag": None, "last_modified": None}, {"total": "many"}, {"total": 17}, {"total": -1}, {"url": "http://else"},
     {"etag": '"\u4e00"', "last_modified": None}, {"etag": 'W/"a"', "last_modified": ""}],
)  # fmt: skip
def test_a_note_that_cannot_be_relied_on(tmp_path, server, origin, change):
    leave(tmp_path / "raw", server.files[PATH][:7000], json.dumps(origin | change).encode())
    assert fetch(server, tmp_path / "raw").path.read_bytes() == server.files[PATH]
    assert server.gets() == [None] and names(tmp_path / "raw") == [NAME, "manifest.json"]


@pytest.mark.parametrize("note", [b"", b"[]", b"{}", b"null", b"\xff", b"[" * 100_000, b'{"url": 1e999}'])
def test_a_note_that_is_none(tmp_path, server, note):
    leave(tmp_path / "raw", server.files[PATH][:7000], note)
    assert fetch(server, tmp_path / "raw").path.read_bytes() == server.files[PATH]
    assert server.gets() == [None] and names(tmp_path / "raw") == [NAME, "manifest.json"]


@pytest.mark.parametrize("place", [0, 4000, 6899, 6950, 6999])
def test_a_part_that_was_damaged_meanwhile(tmp_path, server, origin, place):
    """At its end that shows at once, elsewhere when the archive is checked, or by the checksum if it is known."""
    part = bytearray(server.files[PATH][:7000])
    part[place] ^= 255
    leave(tmp_path / "raw", bytes(part), json.dumps(origin).encode())
    got = fetch(server, tmp_path / "raw", sha256=hashlib.sha256(server.files[PATH]).hexdigest())
    assert got.path.read_bytes() == server.files[PATH] and server.gets() == ["bytes=6900-", None]


def test_a_part_that_cannot_be_resumed_does_not_stay(tmp_path, server):
    server.script[PATH] = [Answer(cut=5000, validators=False)] * FAST.tries
    with pytest.raises(DownloadError) as error:
        fetch(server, tmp_path)
    assert names(tmp_path) == [] and "kept" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 1}', '{"format": 2, "files": {}}', '{"format": 1, "files": []}', "[" * 100_000,
             '{"format": 1, "files": {"a": {"url": 5}}}', '{"format": 1, "files": {"a": null}}',
             '{"format": "\\u001b"}', '{"format": 1, "files": {"a": {"url": "u", "size": "\\u001b"}}}'],
)  # fmt: skip
def test_a_manifest_that_is_none(tmp_path, server, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DownloadError, match=r"not readable as a manifest") as error:
        fetch(server, tmp_path)
    assert str(error.value).isprintable()


def test_what_a_killed_run_left_of_the_manifest_goes(tmp_path, server):
    code = "import pathlib, os, sys\nfrom st_paragram.tools.corpora.fetching.manifest import Manifest, Entry\n"
    code += "pathlib.Path.replace = lambda *args: os.kill(os.getpid(), 9)\n"
    code += "Manifest(pathlib.Path(sys.argv[1]))._set('a', Entry('u', 1, '0', 1, 'now'))"
    assert subprocess.run([sys.executable, "-c", code, tmp_path]).returncode == -signal.SIGKILL
    assert any(name.startswith(".manifest.json") for name in names(tmp_path))
    fetch(server, tmp_path)
    assert names(tmp_path) == [NAME, "manifest.json"]
