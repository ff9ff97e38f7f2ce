"""One deadline for every phase: a server that sends a byte now and then holds nobody for ever."""

import socket
import time
from contextlib import contextmanager

import pytest
from support.downloads import FAST, PATH, archive, fetch, wanted
from support.http_server import Answer, dripping, serving

from st_paragram.errors import DownloadError
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.download import check_disk_space, download
from st_paragram.tools.corpora.fetching.http import TryAgain, fetch_small, open_url
from st_paragram.tools.corpora.fetching.transfer import TransferSettings
from st_paragram.tools.corpora.opus import find_in_opus

SHORT, SOON = 0.3, 2.0  # a deadline, and by when it must surely have passed; seconds
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@contextmanager
def soon(limit=SOON):
    start = time.monotonic()
    yield
    assert time.monotonic() - start < limit


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (b"", b""),
        (b"", b"H"),
        (OK + b"X: ", b"a"),
        (OK, b"X: a\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 503 ", b"a"),
    ],
    ids=["silence", "status", "header", "headers", "continue", "reason"],
)
def test_an_answer_must_begin_by_the_deadline(first, drop):
    with dripping(first, drop, 0.02) as port, soon(), pytest.raises(TryAgain, match=r"no answer within 0\.3 s"):
        open_url(f"http://127.0.0.1:{port}/a", timeout=SHORT)


def test_tls_must_be_agreed_on_by_the_deadline():
    record = dripping(b"\x16\x03\x03\x40\x00", b"\0", 0.02)  # of 16 KiB, byte by byte
    with record as port, soon(), pytest.raises(TryAgain, match=r"no answer within 0\.3 s"):
        open_url(f"https://127.0.0.1:{port}/a", timeout=SHORT)


def test_a_proxy_must_answer_by_the_deadline(monkeypatch):
    for name in ("no_proxy", "NO_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with dripping(b"HTTP/1.1 200 OK\r\n", b"X: a\r\n", 0.02) as port, soon():
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        with pytest.raises(TryAgain, match=r"no answer within 0\.3 s"):
            open_url("https://name.invalid/a", timeout=SHORT)


@pytest.mark.parametrize(
    ("first", "drop"),
    [
        (OK + b"Content-Length: 1000000\r\n\r\n", b" "),
        (OK + b"\r\n", b" "),
        (CHUNKED, b"0"),
        (CHUNKED, b"1\r\n \r\n"),
        (CHUNKED + b"0\r\n", b"X: a\r\n"),
    ],
    ids=["length", "no length", "size of a chunk", "chunks", "trailer"],
)
def test_a_small_document_must_be_complete_by_the_deadline(first, drop):
    with dripping(first, drop, 0.02) as port, soon(), pytest.raises(TryAgain, match=r"not complete within 0\.3 s"):
        fetch_small(f"http://127.0.0.1:{port}/a", timeout=SHORT)


@pytest.mark.parametrize("drop", [b"0", b"X: a\r\n"], ids=["size of a chunk", "trailer"])
def test_bytes_that_are_none_of_the_file_are_no_progress(tmp_path, drop):
    first = CHUNKED if drop == b"0" else CHUNKED + b"4\r\nPK\x03\x04\r\n0\r\n"
    with dripping(first, drop, 0.02) as port, soon():
        file = CorpusFile("A", "1", f"http://127.0.0.1:{port}/a.zip", "a.zip", size=4)
        with pytest.raises(DownloadError, match=r"given up after 2 tries \(no byte for 0\.2 s\)"):
            download([file], tmp_path, settings=TransferSettings(timeout=0.2, tries=2, first_wait=0.001))


def test_the_index_of_opus_must_answer_by_the_deadline():
    says = r"the index of OPUS does not answer .*not complete within 0\.3 s"
    with dripping(OK + b"\r\n", b" ", 0.02) as port, soon(), pytest.raises(DownloadError, match=says):
        find_in_opus("NLLB", None, ("en", "es"), f"http://127.0.0.1:{port}/", SHORT)


def test_redirections_have_no_deadline_of_their_own():
    with serving() as server, soon():
        for number in range(9):
            place = f"HTTP/1.1 302 Found\r\nLocation: /{number + 1}\r\n\r\n".encode()
            server.always[f"/{number}"] = Answer(raw=place, pause=0.1)
        with pytest.raises(TryAgain, match=r"no answer within 0\.3 s"):
            open_url(f"{server.url}/0", timeout=SHORT)


def test_what_comes_with_a_redirection_is_not_read(tmp_path):
    with serving() as server, soon():
        server.files["/moved.zip"] = archive()
        server.always[PATH] = Answer(
            raw=b"HTTP/1.1 302 Found\r\nLocation: /moved.zip\r\n\r\n" + b"x" * 999, pause=0.1, piece=60
        )
        assert fetch(server, tmp_path, FAST).path.read_bytes() == server.files["/moved.zip"]


def test_questions_for_sizes_share_one_deadline(tmp_path):
    with serving() as server, soon():
        server.always[PATH] = Answer(raw=OK + b"Content-Length: 5\r\n\r\n", pause=0.1)
        check_disk_space([wanted(server)] * 30, tmp_path, SHORT)
        assert len(server.asked) < 5


def test_one_dead_address_of_a_host_leaves_time_for_the_next(monkeypatch):
    connect, resolve = socket.create_connection, socket.getaddrinfo

    def two(host, port, *args, **options):
        (family, *kind, place), *_ = resolve("127.0.0.1", port, *args, **options)
        return [(family, *kind, ("192.0.2.1", port)), (family, *kind, place)]

    def dead_or_alive(address, timeout, **options):
        if address[0] != "127.0.0.1":
            time.sleep(timeout)
            raise TimeoutError("timed out")
        return connect(address, timeout, **options)

    with serving() as server:
        server.files["/a"] = b"here"
        monkeypatch.setattr(socket, "getaddrinfo", two)
        monkeypatch.setattr(socket, "create_connection", dead_or_alive)
        with soon():
            assert fetch_small(f"http://name.invalid:{server.server_port}/a", timeout=0.6) == b"here"
