import base64
import hashlib
import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
import zipfile

import httpcore
import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st
from support.downloads import FAST, NAME, PATH, fetch, names, rows, wanted
from support.http_server import Answer, opus_zip, serving

from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.errors import DownloadError, SettingsError, TextError
from st_paragram.tools.corpora.fetching import connection, http
from st_paragram.tools.corpora.fetching import download as engine
from st_paragram.tools.corpora.fetching.corpus_file import CorpusFile
from st_paragram.tools.corpora.fetching.download import download
from st_paragram.tools.corpora.fetching.transfer import HostNotFound, TransferSettings
from st_paragram.tools.corpora.resolve import corpora_for


@pytest.fixture
def server():
    with serving() as running:
        running.files[PATH] = opus_zip("Tanzil", "en", "es", rows(300))
        yield running


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]


# --- what should go well


def test_two_languages_in_full_and_then_nothing_again(tmp_path, server):
    texts = {}
    for language, seed in (("es", 0), ("zh", 9)):
        for file in corpora_for(("en", language), mirror=server.url):
            text = rows(20, seed := seed + 1)
            path = file.url.removeprefix(server.url)
            server.files[path] = opus_zip(file.name, *file.languages, text)
            texts[file.filename] = text
    files = [file for code in ("es", "zh") for file in corpora_for(("en", code), mirror=server.url)]
    got = download(files, tmp_path, parallel=3, settings=FAST)
    assert [fetched.file for fetched in got] == files and all(fetched.fresh for fetched in got) and len(got) == 8
    for fetched in got:
        assert list(read_pairs(TextSource((str(fetched.path),), fetched.file.languages))) == texts[fetched.path.name]
    noted = manifest(tmp_path)
    assert names(tmp_path) == sorted([*texts, "manifest.json"]) and noted.keys() == texts.keys()
    entry = noted["OpenSubtitles-v2018.en-zh_cn.txt.zip"]
    data = server.files["/OPUS-OpenSubtitles/v2018/moses/en-zh_cn.txt.zip"]
    assert (entry["size"], entry["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert entry["etag"] and entry["last_modified"] and entry["url"].startswith(server.url)
    assert "opensubtitles.org" in entry["licence"] and "Lison" in entry["citation"]
    server.asked.clear()
    again = download(files, tmp_path, settings=FAST)
    assert not server.asked and not any(fetched.fresh for fetched in again)
    assert [fetched.sha256 for fetched in again] == [fetched.sha256 for fetched in got]


@pytest.mark.parametrize("known", [{}, {"size": True, "sha256": True}])
def test_a_cut_connection_is_resumed(tmp_path, server, known):
    data = server.files[PATH]
    server.script[PATH] = [Answer(cut=5000), Answer(cut=700)]
    facts = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} if known else {}
    got = fetch(server, tmp_path, **facts)
    assert got.path.read_bytes() == data and got.sha256 == hashlib.sha256(data).hexdigest()
    assert server.gets() == [None, "bytes=4900-", "bytes=5500-"]
    assert names(tmp_path) == [NAME, "manifest.json"]


def test_a_second_run_resumes_where_the_first_gave_up(tmp_path, server):
    server.script[PATH] = [Answer(cut=5000), Answer(status=503), Answer(status=503)]
    with pytest.raises(DownloadError, match=r"Tanzil v1 en-es \(http.*given up after 3 tries.*5,000 bytes are kept"):
        fetch(server, tmp_path)
    assert names(tmp_path) == [f"{NAME}.part", f"{NAME}.part.json"]
    server.asked.clear()
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.gets() == ["bytes=4900-"] and names(tmp_path) == [NAME, "manifest.json"]


def test_a_part_that_had_all_but_its_name_needs_no_server(tmp_path, server):
    data = server.files[PATH]
    server.script[PATH] = [Answer(cut=len(data) - 1)] + [Answer(status=500)] * 2
    with pytest.raises(DownloadError):
        fetch(server, tmp_path)
    (tmp_path / f"{NAME}.part").write_bytes(data)
    server.asked.clear()
    assert fetch(server, tmp_path).path.read_bytes() == data and server.gets() == []


@pytest.mark.parametrize("answer", [Answer(ranges=False), Answer(ranges=False, length=False)])
def test_a_server_that_knows_no_ranges_begins_anew(tmp_path, server, answer):
    server.script[PATH] = [Answer(cut=5000, ranges=False)]
    server.always[PATH] = answer
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.gets() == [None, "bytes=4900-"]


def test_without_validators_a_part_is_not_trusted(tmp_path, server):
    server.script[PATH] = [Answer(cut=5000, validators=False)]
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.gets() == [None, None]


def test_a_file_that_changes_between_its_halves_is_fetched_whole(tmp_path, server):
    server.script[PATH] = [Answer(cut=5000)] + [Answer(status=503)] * 2
    with pytest.raises(DownloadError):
        fetch(server, tmp_path)
    server.files[PATH] = opus_zip("Tanzil", "en", "es", rows(310, seed=1))
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.gets()[-1] == "bytes=4900-"  # asked with If-Range, answered 200


def test_a_server_that_mixes_versions_up_is_caught(tmp_path, server):
    """It answers 206 with another ETag: If-Range was not looked at."""
    old, new = server.files[PATH], opus_zip("Tanzil", "en", "es", rows(300, seed=1))
    bad = Answer(status=206, body=new[4900:], headers={"Content-Range": f"bytes 4900-{len(new) - 1}/{len(new)}"})
    server.files[PATH] = old
    server.script[PATH] = [Answer(cut=5000), bad]
    assert fetch(server, tmp_path).path.read_bytes() == old
    assert server.gets() == [None, "bytes=4900-", None]


def test_416_throws_the_part_away_and_begins_once_more(tmp_path, server):
    server.script[PATH] = [Answer(cut=5000), Answer(status=416)]
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.gets() == [None, "bytes=4900-", None]
    shutil.rmtree(tmp_path)
    server.script[PATH] = [Answer(status=416)] * 2
    with pytest.raises(DownloadError, match="does not give this file from its beginning"):
        fetch(server, tmp_path)
    assert names(tmp_path) == []


def test_redirects_are_followed_with_the_range(tmp_path, server):
    server.files["/moved.zip"] = server.files[PATH]
    server.always[PATH] = Answer(status=302, headers={"Location": "/moved.zip"})
    server.script["/moved.zip"] = [Answer(cut=5000)]
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.gets("/moved.zip") == [None, "bytes=4900-"]


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_an_overloaded_server_is_asked_again(tmp_path, server, status):
    server.script[PATH] = [Answer(status=status), Answer(status=status)]
    assert fetch(server, tmp_path).fresh and len(server.gets()) == 3


def test_what_retry_after_asks_is_heeded_within_limits(tmp_path, server):
    server.script[PATH] = [Answer(status=429, headers={"Retry-After": "3600"})]
    start = time.monotonic()
    settings = TransferSettings(timeout=1, first_wait=0.001, longest_wait=0.2)
    fetch(server, tmp_path, settings)
    assert 0.2 <= time.monotonic() - start < 5
    assert settings.wait(1, 0.5, 0.1) == 0.1 and settings.wait(1, 0.5, None) == 0.001
    assert http._seconds("7") == 7 and http._seconds("soon") is None
    assert http._seconds("Wed, 01 Jan 2020 00:00:00 GMT") == 0


def test_an_unknown_length_is_no_obstacle(tmp_path, server):
    server.always[PATH] = Answer(length=False)
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]


def test_a_slow_server_is_given_up_but_its_part_kept(tmp_path, server):
    server.always[PATH] = Answer(pause=0.02, piece=600)
    slow = TransferSettings(timeout=5, tries=2, first_wait=0.001, least_rate=1e9, rate_window=0.1, overlap=100)
    with pytest.raises(DownloadError, match=r"2 tries \(only .* bytes/s over 0 s, at least 1,000,000,000 are expected"):
        fetch(server, tmp_path, slow)
    kept = (tmp_path / f"{NAME}.part").stat().st_size
    assert kept > 600 and server.gets()[1] is not None
    server.always.clear()
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.gets()[-1] == f"bytes={kept - 100}-"


def test_a_silent_server_has_failed(tmp_path, server):
    server.always[PATH] = Answer(pause=0.6)
    with pytest.raises(DownloadError, match=r"given up after 2 tries \(no byte for 0\.1 s\)"):
        fetch(server, tmp_path, TransferSettings(timeout=0.1, tries=2, first_wait=0.001))
    assert names(tmp_path) == []


def test_getting_on_is_not_counted_as_failing(tmp_path, server):
    server.script[PATH] = [Answer(cut=3100)] * 6
    settings = TransferSettings(timeout=1, tries=2, first_wait=0.001, progress=3000, overlap=100)
    assert fetch(server, tmp_path, settings).path.read_bytes() == server.files[PATH]


# --- what must be refused


@pytest.mark.parametrize("known", [{"sha256": "0" * 64}, {"size": 77}])
def test_what_does_not_agree_with_the_catalogue_is_not_kept(tmp_path, server, known):
    says = "SHA-256 is .*, where 0000" if "sha256" in known else "bytes, where 77 are known"
    with pytest.raises(DownloadError, match=f"^Tanzil v1 en-es .*{says}.*nothing is kept"):
        fetch(server, tmp_path, **known)
    assert names(tmp_path) == [] and len(server.gets()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer(body=b"<html>log in</html>" * 99, headers={"Content-Type": "text/html; charset=utf-8"}),
        Answer(body=b"\n <!DOCTYPE html>" + b" " * 999),
        Answer(body=b"<html>"),
    ],
)
def test_a_web_page_instead_of_an_archive_is_refused(tmp_path, server, answer):
    server.always[PATH] = answer
    with pytest.raises(DownloadError, match=r"web page \(HTML\).*instead of Tanzil-v1\.en-es\.txt\.zip.*--mirror"):
        fetch(server, tmp_path)
    assert names(tmp_path) == [] and len(server.gets()) == 1


def test_what_is_no_archive_is_refused(tmp_path, server):
    server.files[PATH] = b"plain text " * 100
    with pytest.raises(DownloadError, match=r"not a zip file, it begins with b'plain text p'"):
        fetch(server, tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize(("status", "says"), [(404, "not there"), (410, "not there"), (403, "HTTP 403")])
def test_what_will_not_pass_is_not_tried_again(tmp_path, server, status, says):
    server.always[PATH] = Answer(status=status)
    with pytest.raises(DownloadError, match=says) as refused:
        fetch(server, tmp_path)
    assert server.url + PATH in str(refused.value) and "\n" not in str(refused.value)
    assert names(tmp_path) == [] and len(server.gets()) == 1


def test_a_truncated_archive_is_refused_though_the_server_calls_it_whole(tmp_path, server):
    whole = server.files[PATH]
    server.files[PATH] = whole[: len(whole) // 2]
    with pytest.raises(DownloadError, match=r"truncated or damaged zip archive.*--mirror"):
        fetch(server, tmp_path)
    assert names(tmp_path) == []
    server.files[PATH] = whole
    assert fetch(server, tmp_path).fresh


@pytest.mark.parametrize(
    ("place", "leads_to", "says"),
    [("https://a/b.zip", "http://c", "leads to http://c, which is not https"), ("https://a/b", "//c/d", "https://c/d"),
     ("http://a", "file:///etc/passwd", "not a web address"), ("https://a/b/c", "../d", "https://a/d")],
)  # fmt: skip
def test_https_is_not_left(monkeypatch, place, leads_to, says):
    """Addresses are asked until one says that it leads nowhere else."""
    asked = []

    def send(method, url, headers, deadline):
        asked.append(url)
        headers = [(b"Location", leads_to.encode())] if url == place else []
        return httpcore.ConnectionPool(), httpcore.Response(302 if headers else 200, headers=headers)

    monkeypatch.setattr(connection, "send", send)
    if says.startswith("https:"):
        http.open_url(place)
        assert asked == [place, says]
    else:
        with pytest.raises(DownloadError, match=says):
            http.open_url(place)
        assert asked == [place]


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """The port of a server over TLS, and its certificate, for the name localhost, which nobody has signed."""
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    subprocess.run([*command.split(), "-addext", "subjectAltName=DNS:localhost"], cwd=folder, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    with serving() as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        running.files["/a"] = b"here"
        yield running.server_port, folder / "cert.pem"


def test_a_certificate_must_be_trusted_and_the_hosts(secure, monkeypatch):
    port, certificate = secure
    with pytest.raises(DownloadError, match=r"certificate cannot be trusted \(self.signed certificate\)"):
        http.open_url(f"https://localhost:{port}/a", timeout=5)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert http.fetch_small(f"https://localhost:{port}/a", timeout=5) == b"here"
    with pytest.raises(DownloadError, match=r"certificate cannot be trusted .*127\.0\.0\.1"):
        http.open_url(f"https://127.0.0.1:{port}/a", timeout=5)


def test_a_proxy_of_the_environment_is_asked(server, monkeypatch):
    """The proxy gets the whole address, and its password, which no message shows."""
    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.url.replace("//", "//user:pass%20word@"))
    server.files["http://name.invalid/a"] = b"through the proxy"
    assert http.fetch_small("http://name.invalid/a") == b"through the proxy"
    assert server.headers["Proxy-Authorization"] == f"Basic {base64.b64encode(b'user:pass word').decode()}"
    server.always["http://name.invalid/b"] = Answer(status=407)
    for proxy in (server.url.replace("//", "//user:secret@"), "socks5://user:secret@127.0.0.1"):
        monkeypatch.setenv("http_proxy", proxy)
        with pytest.raises(DownloadError) as refused:
            http.open_url("http://name.invalid/b")
        assert "secret" not in str(refused.value)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server.files["/a"] = b"directly"
    assert http.fetch_small(f"{server.url}/a") == b"directly"


def test_an_outage_is_named(tmp_path, server):
    server.shutdown()
    server.server_close()
    with pytest.raises(DownloadError, match=r"given up after 3 tries \(.*refused\); try again later, .*--mirror"):
        fetch(server, tmp_path)
    assert names(tmp_path) == []


def test_more_than_may_be_is_refused(tmp_path, server):
    for length in (True, False):
        server.always[PATH] = Answer(length=length)
        with pytest.raises(DownloadError, match="more than 9,000 bytes"):
            fetch(server, tmp_path, TransferSettings(most_bytes=9000))
        assert names(tmp_path) == []


def test_room_is_looked_for_first(tmp_path, server, monkeypatch):
    free = shutil._ntuple_diskusage(1, 1, 1000)
    monkeypatch.setattr(engine.shutil, "disk_usage", lambda path: free)
    with pytest.raises(DownloadError, match=r"1 files of 0\.00 GiB are to come, but only 0\.00 GiB are free; free"):
        fetch(server, tmp_path)
    assert server.gets() == [] and [method for method, *_ in server.asked] == ["HEAD"]
    server.always[PATH] = Answer(length=False)  # HEAD tells nothing
    monkeypatch.setattr(engine.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9e9, 0, 9e9))
    assert fetch(server, tmp_path).fresh


def test_a_full_disk_is_named_and_the_part_kept(tmp_path, server, monkeypatch):
    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("st_paragram.tools.corpora.fetching.transfer.TransferRate.add", full)
    with pytest.raises(DownloadError, match=r"cannot be stored \(No space left on device\); its part is kept"):
        fetch(server, tmp_path)
    assert (tmp_path / f"{NAME}.part").exists() and len(server.gets()) == 1


# --- several files


def test_one_failure_does_not_keep_the_others_from_coming(tmp_path, server):
    files = corpora_for(("en", "de"), mirror=server.url)
    for file in files[:2]:
        server.files[file.url.removeprefix(server.url)] = opus_zip(file.name, "en", "de", rows(5))
    with pytest.raises(DownloadError, match=r"2 of 4 files not fetched: Europarl v8 en-de .*; GlobalVoices v2018q4"):
        download(files, tmp_path, settings=FAST)
    assert names(tmp_path) == sorted([files[0].filename, files[1].filename, "manifest.json"])


def test_what_may_be_missing_is_left_out_with_a_warning(tmp_path, server, caplog):
    files = corpora_for(("en", "sv"), mirror=server.url)
    assert all(file.optional for file in files) and len(files) == 5
    server.files[files[1].url.removeprefix(server.url)] = opus_zip("Tanzil", "en", "sv", rows(5))
    got = download(files, tmp_path, settings=FAST)
    assert [fetched.file.name for fetched in got] == ["Tanzil"]
    assert sum("does not have these languages; left out" in text for text in caplog.messages) == 4
    server.files.clear()
    with pytest.raises(DownloadError, match="5 of 5 files not fetched"):
        download(files, tmp_path / "other", settings=FAST)


def test_two_files_of_one_name_are_refused(tmp_path, server):
    file = wanted(server)
    for other, says in ((CorpusFile(**{**vars(file), "url": "http://x/y"}), "separate folder"), (file, "twice")):
        with pytest.raises(SettingsError, match=says):
            download([file, other], tmp_path)
    with pytest.raises(SettingsError, match="cannot be stored"):
        download([CorpusFile(**{**vars(file), "filename": "../x"})], tmp_path)
    with pytest.raises(SettingsError, match="at least 1"):
        download([file], tmp_path, parallel=0)


def test_ctrl_c_ends_it_soon_and_keeps_the_parts(tmp_path, server, monkeypatch):
    server.always[PATH] = Answer(pause=0.05, piece=600)
    sleep = threading.Thread.join

    def interrupted(self, timeout=None):
        part = tmp_path / f"{NAME}.part"
        if self.name.startswith("download") and part.exists() and part.stat().st_size > 1000:
            monkeypatch.setattr(threading.Thread, "join", sleep)
            raise KeyboardInterrupt
        return sleep(self, timeout)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch(server, tmp_path)
    assert time.monotonic() - start < 3 and names(tmp_path) == [f"{NAME}.part", f"{NAME}.part.json"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("download-")]
    server.always.clear()
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH] and server.gets()[-1] is not None


def test_a_part_is_of_one_process_at_a_time(tmp_path, server):
    with FileLock(tmp_path / f"{NAME}.part.lock"):
        with pytest.raises(DownloadError, match="another process is fetching this file"):
            fetch(server, tmp_path)
        assert server.gets() == []
    assert fetch(server, tmp_path).fresh
    assert names(tmp_path) == [NAME, "manifest.json"]  # the lock goes with the transfer


def test_a_name_that_is_not_known_is_final(tmp_path, server, monkeypatch):
    asked = []

    def unknown(host, *args, **kwargs):
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    files = corpora_for(("en", "de"), mirror="http://name.invalid")
    with pytest.raises(HostNotFound) as failed:
        download(files, tmp_path, parallel=1, settings=FAST)
    assert asked == ["name.invalid"] * 2  # for the sizes, and for the first file; the others are not tried
    message = str(failed.value)
    assert message.startswith(f"{len(files)} of {len(files)} files not fetched: ") and "\n" not in message
    assert message.count("no address is known for name.invalid (Name or service not known)") == len(files)
    assert "tries" not in message and "--mirror" in message
    assert names(tmp_path) == []


def test_one_unknown_name_does_not_speak_for_other_servers(tmp_path, server):
    files = [corpora_for(("en", "es"), [name], mirror=url)[0] for name, url in (("Tanzil", server.url),
             ("GlobalVoices", "http://name.invalid"))]  # fmt: skip
    server.always[PATH] = Answer(status=404)
    with pytest.raises(DownloadError) as failed:
        download(files, tmp_path, settings=FAST)
    assert type(failed.value) is DownloadError
    server.always.clear()
    with pytest.raises(HostNotFound, match="1 of 2 files not fetched"):
        download(files, tmp_path, settings=FAST)
    assert (tmp_path / NAME).is_file()


# --- the manifest


def test_a_file_that_was_altered_is_fetched_again(tmp_path, server, caplog):
    path = fetch(server, tmp_path).path
    path.write_bytes(b"PK\x03\x04 mine")
    assert fetch(server, tmp_path).fresh and path.read_bytes() == server.files[PATH]
    assert any("no longer what was fetched" in text for text in caplog.messages)


def test_a_file_that_was_only_touched_is_hashed_once(tmp_path, server, monkeypatch):
    path = fetch(server, tmp_path).path
    os.utime(path, (1, 1))
    assert not fetch(server, tmp_path).fresh
    monkeypatch.setattr("st_paragram.tools.corpora.fetching.manifest.content_digest", None)
    assert not fetch(server, tmp_path).fresh and len(server.gets()) == 1


def test_a_file_put_there_by_hand_is_taken_if_it_fits(tmp_path, server, caplog):
    caplog.set_level(logging.INFO)
    (tmp_path / NAME).write_bytes(server.files[PATH])
    assert not fetch(server, tmp_path).fresh and not server.asked
    assert manifest(tmp_path)[NAME]["etag"] is None and "taken as it is" in caplog.text
    (tmp_path / "manifest.json").unlink()
    (tmp_path / NAME).write_bytes(b"<html>moved</html>")
    assert fetch(server, tmp_path).fresh
    assert not fetch(server, tmp_path, size=len(server.files[PATH])).fresh
    with pytest.raises(DownloadError, match="SHA-256"):  # the catalogue has another file in mind
        fetch(server, tmp_path, sha256="0" * 64)
    assert (tmp_path / NAME).read_bytes() == server.files[PATH]


def test_a_manifest_that_is_none_is_refused(tmp_path, server):
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(DownloadError, match=r"manifest\.json: not readable as a manifest"):
        fetch(server, tmp_path)


def test_a_mistake_in_a_thread_does_not_look_like_success(tmp_path, server, monkeypatch):
    monkeypatch.setattr(engine.Manifest, "record", lambda *args: 1 / 0)
    with pytest.raises(DownloadError, match="ZeroDivisionError"):
        fetch(server, tmp_path)


# --- archives


def zipped(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("name", ["../x.en", "/etc/x.en", "a/../../x.en", "C:/x.en", "C:x.en", "a\\..\\x.en"])
def test_members_that_lead_out_are_refused(tmp_path, server, name):
    server.files[PATH] = zipped(tmp_path / "a.zip", {"ok.es": "a", name: "a"}).read_bytes()
    with pytest.raises(DownloadError, match=r"Tanzil v1 .*points outside the archive.*nothing is kept"):
        fetch(server, tmp_path / "raw")
    assert names(tmp_path / "raw") == []


def test_damage_inside_shows_when_it_is_read(tmp_path):
    path = zipped(tmp_path / "a.zip", {"t.tsv": "some text\tand more\n" * 9}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"and more", b"and less", 1))
    with pytest.raises(TextError, match=r"a\.zip:t\.tsv: cannot be read \(Bad CRC-32"):
        list(read_pairs(TextSource((str(path),), ("en", "es"))))


WHOLE = opus_zip("C", "en", "es", rows(30))


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4))
def test_no_damage_gets_anything_but_our_error_out_of_reading(tmp_path_factory, place, junk):
    path = tmp_path_factory.getbasetemp() / "damaged.zip"
    for data in (WHOLE[:place], WHOLE[:place] + junk + WHOLE[place + len(junk) :]):
        path.write_bytes(data)
        try:
            list(read_pairs(TextSource((str(path),), ("en", "es")), drop_invalid=True))
        except TextError as error:
            assert "\n" not in str(error)
