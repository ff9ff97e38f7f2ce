"""Whatever a server says, it is refused in one line that a terminal can show, or the file is the right one."""

import gzip
import hashlib
import json
import resource
import shutil
from types import SimpleNamespace

import pytest
from support.downloads import PATH, archive, fetch, names
from support.http_server import Answer, serving

from st_paragram.errors import DownloadError, SettingsError, one_line
from st_paragram.tools.corpora.fetching import checks, http, transfer
from st_paragram.tools.corpora.fetching.http import StartAnew, TryAgain, open_url
from st_paragram.tools.corpora.fetching.part import Origin
from st_paragram.tools.corpora.opus import find_in_opus
from st_paragram.tools.corpora.resolve import corpora_for

WHOLE = archive()
OTHER = bytes(byte ^ 1 for byte in WHOLE)


@pytest.fixture
def server():
    with serving() as running:
        running.files[PATH] = WHOLE
        yield running


def refused(server, folder, **known):
    """The message with which a download is refused; nothing is kept of it."""
    with pytest.raises(DownloadError) as error:
        fetch(server, folder, **known)
    assert str(error.value).isprintable() and "Error:" not in str(error.value)
    assert names(folder) == []
    return str(error.value)


# --- numbers


@pytest.mark.parametrize("value", ["\xb2", "9" * 5000, "-5", "1_000", "0x10", "5, 6", "ten", "\x1b[31m5", "", "1e3"])
def test_lengths_that_are_none(server, tmp_path, value):
    server.always[PATH] = Answer(headers={"Content-Length": value})
    refused(server, tmp_path)


def test_two_lengths(server, tmp_path):
    data = server.files[PATH]
    head = f"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    server.always[PATH] = Answer(raw=head + data)
    assert "given up after 3 tries (conflicting Content-Length headers)" in refused(server, tmp_path)


@pytest.mark.parametrize(
    "value",
    ["\xb2", "9" * 5000, "-1", "1e999", "nan", "soon", "Wed, 01 Jan 0001 00:00:00 -0000",
     "Fri, 31 Dec 9999 23:59:59 -9999",
     "Wed, 01 Jan 2020 99:99:99 GMT", "Wed, 01 Jan 99999999999999 00:00:00 GMT", ", , , , ,", "1 jan : : :"],
)  # fmt: skip
def test_waits_that_are_none(server, tmp_path, value):
    server.script[PATH] = [Answer(status=503, headers={"Retry-After": value})]
    assert fetch(server, tmp_path).fresh
    assert (http._seconds(value) or 0) >= 0


# --- addresses


@pytest.mark.parametrize(
    "place",
    ["http://[::1", "http://127.0.0.1:99999/", "http://127.0.0.1:" + "9" * 5000, "http://127.0.0.1:x/", "ftp://127.0.0.1/x",
     "file:///etc/passwd", "http://", "http:a", "//", "", "\x1b[2J", "http://\x1b/", "http://user:word@127.0.0.1/",
     "http://" + "a" * 300 + ".invalid/", "http://a..b/", "data:,x", "/" + "a" * 60000, "javascript:x", "http://\xff/"],
)  # fmt: skip
def test_places_that_lead_nowhere(server, tmp_path, place):
    server.always[PATH] = Answer(status=302, headers={"Location": place})
    refused(server, tmp_path)


def test_circles(server, tmp_path):
    server.always[PATH] = Answer(status=302, headers={"Location": PATH})
    assert "leads on and on" in refused(server, tmp_path)
    assert len(server.gets()) <= 12


def test_a_name_that_only_a_redirection_gave_says_nothing_of_the_server(server):
    server.always["/a"] = Answer(status=302, headers={"Location": "http://name.invalid/"})
    with pytest.raises(TryAgain) as failed:
        open_url(f"{server.url}/a", timeout=5)
    assert not isinstance(failed.value, http.NameNotFound)


@pytest.mark.parametrize("mirror", ["http://[::1", "http://h:x", "http://h:99999", "http://"])
def test_mirrors_that_are_none(mirror):
    with pytest.raises(SettingsError, match="not the address of a web server"):
        corpora_for(("en", "es"), ["Tanzil"], mirror=mirror)


# --- words


def test_what_is_quoted_is_harmless():
    assert one_line("a\r\n\x1b[31m\x9b\u202e\ud800é") == "a ?[31m???é"
    assert one_line("x" * 300, 200) == "x" * 197 + "..."


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 403 \x1b[31mred\x07\x9b\r\n\r\n",
        b"HTTP/1.1 503 \x1b]0;title\x07\r\n\r\n",
        b"\x1b]0;title\x07\r\n\r\n",
        b"HTTP/\x1b[2J 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \x1b[31mgzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \x1b[31m\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: \x1b[31m\r\n\r\n",
        b"HTTP/1.1 302 \x1b[31m\r\nLocation: gopher://\x1b[31m\r\n\r\n",
        b"HTTP/1.1 206 OK\r\nContent-Range: \x1b[31m\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 101,
        b"HTTP/1.1 200 " + b"a" * 70000,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nPK\x03\x04",
        b"HTTP/1.1 99999999 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"",
    ],
    ids=range(17),
)
def test_what_a_terminal_would_obey_does_not_reach_it(server, tmp_path, raw):
    server.always[PATH] = Answer(raw=raw)
    refused(server, tmp_path, filename="a.txt")


# --- bodies


@pytest.mark.parametrize("size", [b"-5", b"zz", b"", b"1" * 70000, b"ffffffffffffffffffff"])
def test_chunks_that_are_none(server, tmp_path, size):
    server.always[PATH] = Answer(
        raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\nPK\x03\x04 and more\r\n"
    )
    refused(server, tmp_path)


def test_a_file_that_is_packed_once_more(server, tmp_path):
    text = b"some text\n" * 100
    server.always[PATH] = Answer(body=gzip.compress(text), headers={"Content-Encoding": "gzip"})
    assert "packed once more (gzip)" in refused(server, tmp_path, filename="a.txt")
    got = fetch(server, tmp_path, filename="a.txt.gz")  # some servers say so of the file itself
    assert gzip.decompress(got.path.read_bytes()) == text


def test_a_body_without_an_end_does_not_fill_the_disk(server, tmp_path, monkeypatch):
    server.always[PATH] = Answer(length=False)
    monkeypatch.setattr(transfer, "_STRETCH", 1000)
    free = shutil._ntuple_diskusage(1, 1, checks.SPARE - 1)
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda path: free)
    with pytest.raises(DownloadError, match=r"268,435,456 bytes are to come, but only 268,435,455 are free"):
        fetch(server, tmp_path)


def test_a_disk_that_takes_only_half_of_a_block(server, tmp_path):
    """Then the system writes what it can, without an error."""
    server.files[PATH] = b"a line of a text\n" * 10_000
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limit[1]))
    try:
        with pytest.raises(DownloadError, match="cannot be stored"):
            fetch(server, tmp_path, filename="a.txt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    got = fetch(server, tmp_path, filename="a.txt")
    assert got.path.read_bytes() == server.files[PATH] and server.gets()[-1] is not None


# --- the rest of another file


def rest(data, start, **headers):
    """An answer with the rest of a file, under the validators of another one."""
    usual = {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}", "ETag": etag(WHOLE)}
    return Answer(
        status=206, body=data[start:], headers=usual | {name.replace("_", "-"): v for name, v in headers.items()}
    )


def etag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


LIES = {
    "bytes": rest(OTHER, 4900),
    "longer": rest(WHOLE + b"more", 4900),
    "shorter": rest(WHOLE[:-9], 4900),
    "elsewhere": rest(WHOLE, 4901),
    "tag": rest(WHOLE, 4900, ETag='"other"'),
    "date": rest(WHOLE, 4900, Last_Modified="Thu, 02 Jan 2020 00:00:00 GMT"),
    "no range": rest(WHOLE, 4900, Content_Range=None),
    "nonsense": rest(WHOLE, 4900, Content_Range=f"bytes 4900-{'9' * 5000}/{'9' * 5000}"),
    "backwards": rest(WHOLE, 4900, Content_Range="bytes 4900-17/99"),
    "beyond": rest(WHOLE, 4900, Content_Range=f"bytes 4900-{len(WHOLE)}/{len(WHOLE)}"),
    "another length": rest(WHOLE, 4900, Content_Range=f"bytes 4900-{len(WHOLE) - 9}/{len(WHOLE)}"),
}


@pytest.mark.parametrize("lie", LIES)
def test_the_rest_of_another_file_is_not_taken(server, tmp_path, lie):
    server.script[PATH] = [Answer(cut=5000), LIES[lie]]
    assert fetch(server, tmp_path, filename="a.txt").path.read_bytes() == WHOLE  # of which nothing else could tell
    assert server.gets() == [None, "bytes=4900-", None]
    assert names(tmp_path) == ["a.txt", "manifest.json"]


def test_a_rest_tells_the_size_that_was_not_known():
    origin = Origin("http://a", '"b"', None, None)
    answer = SimpleNamespace(length=None, header={"Content-Range": "bytes 40-99/100"}.get)
    assert origin.continued(answer, 40, 50).total == 100
    with pytest.raises(StartAnew, match="100 bytes in all after 101"):
        origin.continued(answer, 40, 101)


# --- the index of OPUS

ROW = {
    "corpus": "NLLB",
    "version": "v1",
    "source": "en",
    "target": "es",
    "url": "https://h/a.txt.zip",
    "latest": "True",
}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"corpora":' + b"[" * 50_000,
        b'{"corpora": ' + b"9" * 5000 + b"}",
        b"\xff\xfe\x00",
        b"",
        *(json.dumps({"corpora": rows}).encode() for rows in (None, 5, "x", {"a": 1}, [None], [[]], [5], [{}])),
        *(
            json.dumps({"corpora": [ROW | change]}).encode()
            for change in (
                {"url": "http://[::1.txt.zip"},
                {"url": "file:///etc/passwd.txt.zip"},
                {"url": "https://h/\x1b[31m.txt.zip"},
                {"url": "https://h:99999/a.txt.zip"},
                {"corpus": "NLLB\x1b[31m"},
                {"version": "v1\n"},
                {"version": 7},
                {"version": "v" * 300},
                {"version": "\ud800"},
                {"source": None},
                {"target": ["es"]},
                {"size": 10**400},
                {"size": -1},
                {"size": "many"},
                {"latest": {}},
            )
        ),
    ],
    ids=range(28),
)
def test_an_index_of_nonsense_is_refused_in_one_line(server, body):
    server.files["/api/"] = body
    with pytest.raises(DownloadError) as error:
        find_in_opus("NLLB", None, ("en", "es"), f"{server.url}/api/", 5)
    assert str(error.value).isprintable()


def test_an_index_that_is_too_long(server, monkeypatch):
    server.files["/api/"] = json.dumps({"corpora": [ROW]}).encode()
    assert find_in_opus("NLLB", None, ("en", "es"), f"{server.url}/api/").version == "v1"
    monkeypatch.setattr(http, "MOST_SMALL", 100)
    with pytest.raises(DownloadError, match="more than 100 bytes"):
        find_in_opus("NLLB", None, ("en", "es"), f"{server.url}/api/")
