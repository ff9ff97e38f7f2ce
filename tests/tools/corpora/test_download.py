"""Downloads from a server that misbehaves: resumed, tried again, checked, recorded."""

import hashlib
import io
import json
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
import requests
from support.http_server import Answer, opus_zip, raw_serving, serving

from st_paragram.core.text.parallel import read_pairs
from st_paragram.errors import DownloadError, SettingsError
from st_paragram.tools.corpora import download as module
from st_paragram.tools.corpora import transfer
from st_paragram.tools.corpora.download import download
from st_paragram.tools.corpora.resolve import corpora_for, text_source

PATH = "/OPUS-Tanzil/v1/moses/en-es.txt.zip"
NAME = "Tanzil-v1.en-es.txt.zip"


def rows(count, seed=0):
    """Text that does not pack well, so that archives have a size to cut."""
    return [
        tuple(hashlib.sha256(f"{seed} {i} {side}".encode()).hexdigest() for side in "ab")
        for i in range(count)
    ]


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "TRIES", 3)
    monkeypatch.setattr(module, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(module, "LONGEST_WAIT", 0.3)
    with serving() as running:
        running.files[PATH] = opus_zip("Tanzil", "en", "es", rows(300))
        yield running


def wanted(server, **known):
    file = corpora_for(("en", "es"), ["Tanzil"], mirror=server.url)[0]
    return replace(file, entry=file.entry.model_copy(update=known))


def fetch(server, folder, **known):
    return download([wanted(server, **known)], folder)[0]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_two_languages_in_full_and_then_nothing_again(tmp_path, server):
    texts = {}
    files = [file for code in ("es", "zh") for file in corpora_for(("en", code), mirror=server.url)]
    for seed, file in enumerate(files):
        texts[file.filename] = rows(20, seed + 1)
        server.files[file.url.removeprefix(server.url)] = opus_zip(
            file.name, *file.languages, texts[file.filename]
        )
    got = download(files, tmp_path, parallel=3)
    assert (
        [each.file for each in got] == files and all(each.fresh for each in got) and len(got) == 8
    )
    for each in got:
        assert list(read_pairs(text_source(each))) == texts[each.path.name]
    noted = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["files"]
    assert names(tmp_path) == sorted([*texts, "manifest.json"]) and noted.keys() == texts.keys()
    entry = noted["OpenSubtitles-v2018.en-zh_cn.txt.zip"]
    data = server.files["/OPUS-OpenSubtitles/v2018/moses/en-zh_cn.txt.zip"]
    assert (entry["size"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert entry["corpus"] == "OpenSubtitles v2018" and entry["url"].startswith(server.url)
    assert "opensubtitles.org" in entry["license"] and "Lison" in entry["citation"]
    server.asked.clear()
    again = download(files, tmp_path)
    assert not server.asked and not any(each.fresh for each in again)


def test_a_broken_connection_is_resumed(tmp_path, server):
    data = server.files[PATH]
    server.script[PATH] = [Answer(cut=5000), Answer(cut=700)]
    assert (
        fetch(server, tmp_path, sha256={NAME: hashlib.sha256(data).hexdigest()}).path.read_bytes()
        == data
    )
    assert server.ranges() == [None, "bytes=5000-", "bytes=5700-"]
    assert names(tmp_path) == [NAME, "manifest.json"]


@pytest.mark.parametrize("changed", [False, True])
def test_the_next_run_resumes_a_file_unless_it_has_changed(tmp_path, server, changed):
    server.script[PATH] = [Answer(cut=5000), Answer(status=503), Answer(status=503)]
    with pytest.raises(
        DownloadError, match=r"Tanzil v1 en-es \(http.*gave up after 3 tries.*5,000 bytes are kept"
    ):
        fetch(server, tmp_path)
    if changed:
        server.files[PATH] = opus_zip("Tanzil", "en", "es", rows(310, seed=1))
    server.asked.clear()
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    # asked with If-Range
    assert server.ranges() == ["bytes=5000-"] and names(tmp_path) == [NAME, "manifest.json"]


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        (Answer(cut=5000), Answer(ranges=False), [None, "bytes=5000-"]),  # no ranges: it sends all
        # nothing to tell versions by
        (Answer(cut=5000, headers={"ETag": None}), Answer(), [None, None]),
        (Answer(cut=5000), Answer(status=416), [None, "bytes=5000-", None]),
        (
            Answer(cut=5000),
            Answer(
                status=206,
                body=b"of another version",
                headers={"Content-Range": "bytes 5000-5017/9000"},
            ),
            [None, "bytes=5000-", None],
        ),
        (  # the whole file is larger than announced before
            Answer(cut=5000),
            Answer(
                status=206,
                body=bytes(9000),
                headers={"Content-Range": "bytes 5000-13999/999999", "ETag": None},
            ),
            [None, "bytes=5000-", None],
        ),
        (
            Answer(cut=5000),
            Answer(status=416, headers={"Content-Range": "bytes */5000", "ETag": None}),
            [None, "bytes=5000-", None],
        ),
        (
            Answer(status=302, headers={"Location": PATH}),
            Answer(cut=5000),
            [None, None, "bytes=5000-"],
        ),
    ],
)
def test_whatever_the_server_does_the_file_comes_whole(tmp_path, server, first, second, asked):
    server.script[PATH] = [first, second]
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.ranges() == asked and names(tmp_path) == [NAME, "manifest.json"]


@pytest.mark.parametrize(
    ("answer", "known", "says"),
    [
        (
            Answer(),
            {"sha256": {NAME: "0" * 64}},
            "SHA-256 .*, but 0000.* is expected; the download was discarded",
        ),
        (
            Answer(body=b"<p>log in</p>", headers={"Content-Type": "text/html; charset=utf-8"}),
            {},
            r"web page \(HTML\)",
        ),
        (Answer(body=opus_zip("Tanzil", "en", "es", rows(2))[:-60]), {}, "not a complete zip file"),
        (Answer(status=403), {}, r"HTTP 403 \(Forbidden\)"),
    ],
)
def test_what_is_not_the_file_is_refused_at_once(tmp_path, server, answer, known, says):
    server.always[PATH] = answer
    with pytest.raises(
        DownloadError, match=rf"^Tanzil v1 en-es \({re.escape(server.url + PATH)}\): .*{says}"
    ) as refused:
        fetch(server, tmp_path, **known)
    assert "--mirror" in str(refused.value) and "\n" not in str(refused.value)
    assert names(tmp_path) in (["manifest.json"], []) and len(server.ranges()) == 1
    server.always.clear()
    assert fetch(server, tmp_path).fresh


def test_a_file_put_there_by_hand_is_checked_and_recorded(tmp_path, server):
    (tmp_path / NAME).write_bytes(server.files[PATH])
    assert not fetch(server, tmp_path).fresh and not server.asked
    assert NAME in json.loads((tmp_path / "manifest.json").read_text())["files"]
    (tmp_path / NAME).write_bytes(b"<html>moved</html>")
    with pytest.raises(
        DownloadError, match=rf"{NAME}: not a complete zip file; remove it to fetch it again"
    ):
        fetch(server, tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    (tmp_path / NAME).unlink()
    with pytest.raises(DownloadError, match=r"manifest\.json: not readable as a manifest"):
        fetch(server, tmp_path)


def test_one_failure_does_not_keep_the_others_from_coming(tmp_path, server):
    files = corpora_for(("en", "de"), mirror=server.url)
    for file in files[:2]:
        server.files[file.url.removeprefix(server.url)] = opus_zip(file.name, "en", "de", rows(5))
    with pytest.raises(
        DownloadError,
        match=r"2 of 4 files not downloaded: Europarl v8 en-de .*; GlobalVoices v2018q4",
    ):
        download(files, tmp_path)
    assert names(tmp_path) == sorted([files[0].filename, files[1].filename, "manifest.json"])


def test_what_may_be_missing_is_left_out_with_a_warning(tmp_path, server, caplog):
    files = corpora_for(("en", "sv"), mirror=server.url)
    server.files[files[1].url.removeprefix(server.url)] = opus_zip("Tanzil", "en", "sv", rows(5))
    assert [each.file.name for each in download([*files, *files], tmp_path)] == ["Tanzil"]
    assert sum("does not have these languages; left out" in text for text in caplog.messages) == 4
    server.files.clear()
    with pytest.raises(SettingsError, match="--parallel is 0; give at least 1"):
        download(files, tmp_path, parallel=0)
    with pytest.raises(DownloadError, match="5 of 5 files not downloaded"):
        download(files, tmp_path / "other")


def test_a_part_of_the_rest_is_not_taken_for_the_rest(tmp_path, server):
    data = server.files[PATH]
    etag = f'"{hashlib.md5(data).hexdigest()}"'
    headers = {"Content-Range": f"bytes 5000-5999/{len(data)}", "ETag": etag}
    server.script[PATH] = [
        Answer(cut=5000),
        Answer(status=206, body=data[5000:6000], headers=headers),
    ]
    assert fetch(server, tmp_path).path.read_bytes() == data
    assert server.ranges() == [None, "bytes=5000-", "bytes=6000-"]


NOT_RESUMED = {"Content-Range": "bytes 0-4/5"}
ENDLESS = {
    "every second answer is empty": [
        Answer(cut=5000, headers={"ETag": None}),
        Answer(cut=0, headers={"ETag": None}),
    ],
    "no answer resumes": [Answer(cut=5000), Answer(status=206, body=b"hello", headers=NOT_RESUMED)],
    "each start is longer": [
        Answer(cut=2000 * number, headers={"ETag": None}) for number in range(1, 9)
    ],
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_only_new_bytes_are_progress(tmp_path, server, monkeypatch, kind):
    monkeypatch.setattr(module, "_PROGRESS", 1000)
    server.script[PATH] = ENDLESS[kind] * 6
    with pytest.raises(DownloadError, match="gave up after 3 tries"):
        fetch(server, tmp_path)
    assert len(server.ranges()) == 3


def test_new_bytes_are_progress(tmp_path, server, monkeypatch):
    monkeypatch.setattr(module, "_PROGRESS", 1000)
    server.script[PATH] = [Answer(cut=1500)] * 8
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert len(server.ranges()) == 9


def test_no_more_than_the_rest_is_stored(tmp_path, server):
    size = len(server.files[PATH])
    headers = {"Content-Range": f"bytes 5000-{size - 1}/{size}", "ETag": None}
    server.script[PATH] = [Answer(cut=5000), Answer(status=206, body=bytes(size), headers=headers)]
    with pytest.raises(DownloadError, match=f"more than the announced {size - 5000:,} bytes"):
        fetch(server, tmp_path)
    assert names(tmp_path) == ["manifest.json"]


def test_a_complete_part_is_not_downloaded_again(tmp_path, server):
    data = server.files[PATH]
    etag = f'"{hashlib.md5(data).hexdigest()}"'
    (tmp_path / f".{NAME}.part").write_bytes(data)
    (tmp_path / f".{NAME}.part.origin").write_text(f"{server.url}{PATH}\n{etag}")
    assert fetch(server, tmp_path).path.read_bytes() == data
    assert server.ranges() == [f"bytes={len(data)}-"] and names(tmp_path) == [NAME, "manifest.json"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            Answer(status=206, body=b"hello"),
            r"HTTP 206 \(Partial Content\), although no part of the file was requested",
        ),
        (Answer(status=416), r"HTTP 416 \(.*\), although no part of the file was requested"),
        (
            Answer(headers={"Content-Encoding": "gzip"}),
            r"compressed the file \(Content-Encoding: gzip\)",
        ),
        (Answer(headers={"Content-Type": "application/xhtml+xml"}), r"web page \(HTML\)"),
        (Answer(headers={"Content-Length": "9" * 17}), "the disk has .* free; free disk space"),
        (
            Answer(status=302, headers={"Location": PATH}),
            "redirected more than 10 times, last to http",
        ),
        (
            Answer(status=302, headers={"Location": "file:///etc/passwd"}),
            "file:///etc/passwd, which is not http or https",
        ),
        (
            Answer(status=302, headers={"Location": "//[::1"}),
            r"//\[::1, which is not a web address",
        ),
        (
            Answer(status=302, headers={"Location": "http://\xff\x1b[31m/"}),
            r"\?\[31m/, which is not a web address",
        ),
    ],
)
def test_what_another_try_would_not_help_is_tried_once(tmp_path, server, answer, says):
    server.always[PATH] = answer
    with pytest.raises(DownloadError, match=says) as refused:
        fetch(server, tmp_path)
    assert len(server.ranges()) == (11 if "redirected more" in says else 1)
    assert ("disk" in str(refused.value)) == ("disk" in says)


def test_only_a_full_disk_is_called_full(tmp_path, server):
    (tmp_path / f".{NAME}.part.origin").mkdir()
    with pytest.raises(DownloadError, match=r"cannot be stored \(.*\);") as refused:
        fetch(server, tmp_path)
    assert "free disk space" not in str(refused.value)


def raw_fetch(url, folder):
    return download(corpora_for(("en", "es"), ["Tanzil"], mirror=url), folder)[0]


@pytest.mark.parametrize(
    ("size", "says"),
    [
        ("Content-Length: 100\r\n", "more than the announced 100 bytes"),
        ("", "more than the allowed 3,000 bytes"),
    ],
)
def test_no_more_is_stored_than_announced(tmp_path, monkeypatch, size, says):
    monkeypatch.setattr(module, "UNANNOUNCED", 3000)

    def send(connection):
        connection.sendall(f"HTTP/1.1 200 OK\r\n{size}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(100):
            connection.sendall(b"3e8\r\n" + bytes(1000) + b"\r\n")

    with raw_serving(send) as (url, requests), pytest.raises(DownloadError, match=says):
        raw_fetch(url, tmp_path)
    assert len(requests) == 1
    assert names(tmp_path) == ["manifest.json"]


def dripping(head, piece):
    """Answer with a head, and then a piece every 10 ms."""

    def send(connection):
        connection.sendall(head)
        while True:
            connection.sendall(piece)
            time.sleep(0.01)

    return send


STATUS = b"HTTP/1.1 200 OK\r\n"
SLOW = {
    "body": dripping(STATUS + b"Content-Length: 9000\r\n\r\n", b"x"),
    "body of unknown size": dripping(STATUS + b"Connection: close\r\n\r\n", b"x"),
    "chunks": dripping(STATUS + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "trailers": dripping(STATUS + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
    "continue": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "header": dripping(STATUS + b"A: ", b"x"),
}


@pytest.mark.parametrize("kind", SLOW)
def test_a_server_that_is_too_slow_is_given_up(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(transfer, "PERIOD", 0.3)
    with raw_serving(SLOW[kind]) as (url, requests):
        with pytest.raises(DownloadError, match=r"sent fewer than 1,000 bytes/s over 0\.3 seconds"):
            raw_fetch(url, tmp_path)
        with pytest.raises(DownloadError, match="sent fewer than"):
            transfer.read_limited(url, 10**6)
    assert len(requests) == 2


def test_a_slow_server_is_fast_enough(tmp_path, server, monkeypatch):
    monkeypatch.setattr(transfer, "PERIOD", 0.1)
    server.always[PATH] = Answer(pause=0.02, piece=500)
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]


def test_the_bodies_of_redirects_are_not_read(tmp_path, server):
    def send(connection):
        connection.sendall(f"HTTP/1.1 302 F\r\nLocation: {server.url}{PATH}\r\n".encode())
        connection.sendall(b"Content-Length: 99999999999\r\n\r\n")
        while True:
            connection.sendall(bytes(1 << 16))

    with raw_serving(send) as (url, _):
        assert raw_fetch(url, tmp_path).path.read_bytes() == server.files[PATH]


def test_https_does_not_become_http(monkeypatch):
    def get(self, url, **_):
        answer = requests.Response()
        answer.status_code, answer.url, answer.raw = 302, url, io.BytesIO()
        answer.headers["Location"] = "http://h/x"
        assert self.verify is True
        return answer

    monkeypatch.setattr(requests.Session, "get", get)
    with pytest.raises(DownloadError, match="redirected to http://h/x, which is not https"):
        transfer.read_limited("https://h/x", 10)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_unknown_certificates_are_refused(tmp_path):
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj"
        " /CN=127.0.0.1"
    )
    subprocess.run(command.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with serving() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with pytest.raises(DownloadError, match=r"(?i)certificate verify failed"):
            transfer.read_limited(server.url.replace("http:", "https:"), 10)


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize("kind", ["body", "continue", "silence"])
def test_ctrl_c_ends_it_at_once(tmp_path, kind):
    code = (
        "import sys; from st_paragram.tools.corpora.download import download;"
        "from st_paragram.tools.corpora.resolve import corpora_for;"
        "download(corpora_for(('en', 'es'), mirror=sys.argv[1]), sys.argv[2])"
    )
    with raw_serving(SLOW.get(kind, lambda connection: connection.recv(1))) as (url, requests):
        child = subprocess.Popen(
            [sys.executable, "-c", code, url, str(tmp_path)], stderr=subprocess.PIPE
        )
        try:
            while not requests:
                assert child.poll() is None
                time.sleep(0.01)
            time.sleep(0.2)
            begin = time.monotonic()
            child.send_signal(signal.SIGINT)
            errors = child.communicate(timeout=20)[1]
        finally:
            child.kill()
            child.communicate()
    assert time.monotonic() - begin < 5 and b"KeyboardInterrupt" in errors and child.returncode


def interrupted_when(condition, monkeypatch):
    """Ctrl-C in the first wait, when a condition is true."""
    wait = module.wait

    def interrupt(jobs, timeout):
        monkeypatch.setattr(module, "wait", wait)
        while not condition():
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", interrupt)


def test_ctrl_c_does_not_wait_for_a_connection(tmp_path, monkeypatch):
    connecting, release = threading.Event(), threading.Event()

    def attempt(*_, **__):
        connecting.set()
        release.wait(60)

    monkeypatch.setattr(module, "_attempt", attempt)
    monkeypatch.setattr(module, "_GRACE", 0.01)
    interrupted_when(connecting.is_set, monkeypatch)
    begin = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            raw_fetch("http://h", tmp_path)
        assert time.monotonic() - begin < 30
    finally:
        release.set()


def test_what_came_before_ctrl_c_is_kept(tmp_path, server, monkeypatch):
    server.always[PATH] = Answer(pause=0.02, piece=600)
    part = tmp_path / f".{NAME}.part"
    monkeypatch.setattr(transfer, "_BLOCK", 600)
    interrupted_when(lambda: part.exists() and part.stat().st_size, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fetch(server, tmp_path)
    kept = part.stat().st_size
    assert 0 < kept < len(server.files[PATH])
    server.always.clear()
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.ranges()[-1] == f"bytes={kept}-"
