"""Downloads from a server that misbehaves: resumed, tried again, checked, recorded."""

import hashlib
import json
import re
import time
from dataclasses import replace

import pytest
from support.http_server import Answer, opus_zip, serving

from st_paragram.core.text.parallel import read_pairs
from st_paragram.errors import DownloadError, SettingsError
from st_paragram.tools.corpora import download as module
from st_paragram.tools.corpora.download import download
from st_paragram.tools.corpora.resolve import corpora_for, text_source

PATH = "/OPUS-Tanzil/v1/moses/en-es.txt.zip"
NAME = "Tanzil-v1.en-es.txt.zip"


def rows(count, seed=0):
    """Text that does not pack well, so that archives have a size to cut."""
    return [tuple(hashlib.sha256(f"{seed} {i} {side}".encode()).hexdigest() for side in "ab") for i in range(count)]


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
        server.files[file.url.removeprefix(server.url)] = opus_zip(file.name, *file.languages, texts[file.filename])
    got = download(files, tmp_path, parallel=3)
    assert [each.file for each in got] == files and all(each.fresh for each in got) and len(got) == 8
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
    assert fetch(server, tmp_path, sha256={NAME: hashlib.sha256(data).hexdigest()}).path.read_bytes() == data
    assert server.ranges() == [None, "bytes=5000-", "bytes=5700-"]
    assert names(tmp_path) == [NAME, "manifest.json"]


@pytest.mark.parametrize("changed", [False, True])
def test_the_next_run_resumes_a_file_unless_it_has_changed(tmp_path, server, changed):
    server.script[PATH] = [Answer(cut=5000), Answer(status=503), Answer(status=503)]
    with pytest.raises(DownloadError, match=r"Tanzil v1 en-es \(http.*gave up after 3 tries.*5,000 bytes are kept"):
        fetch(server, tmp_path)
    if changed:
        server.files[PATH] = opus_zip("Tanzil", "en", "es", rows(310, seed=1))
    server.asked.clear()
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.ranges() == ["bytes=5000-"] and names(tmp_path) == [NAME, "manifest.json"]  # asked with If-Range


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        (Answer(cut=5000), Answer(ranges=False), [None, "bytes=5000-"]),  # no ranges: it sends all
        (Answer(cut=5000, headers={"ETag": None}), Answer(), [None, None]),  # nothing to tell versions by
        (Answer(cut=5000), Answer(status=416), [None, "bytes=5000-", None]),
        (
            Answer(cut=5000),
            Answer(status=206, body=b"of another version", headers={"Content-Range": "bytes 5000-5017/9000"}),
            [None, "bytes=5000-", None],
        ),
        (Answer(status=302, headers={"Location": PATH}), Answer(cut=5000), [None, None, "bytes=5000-"]),
    ],
)
def test_whatever_the_server_does_the_file_comes_whole(tmp_path, server, first, second, asked):
    server.script[PATH] = [first, second]
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.ranges() == asked and names(tmp_path) == [NAME, "manifest.json"]


@pytest.mark.parametrize(
    ("answer", "known", "says"),
    [
        (Answer(), {"sha256": {NAME: "0" * 64}}, "SHA-256 .*, but 0000.* is expected; the download was discarded"),
        (Answer(body=b"<p>log in</p>", headers={"Content-Type": "text/html; charset=utf-8"}), {}, r"web page \(HTML\)"),
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
    with pytest.raises(DownloadError, match=rf"{NAME}: not a complete zip file; remove it to fetch it again"):
        fetch(server, tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    (tmp_path / NAME).unlink()
    with pytest.raises(DownloadError, match=r"manifest\.json: not readable as a manifest"):
        fetch(server, tmp_path)


def test_one_failure_does_not_keep_the_others_from_coming(tmp_path, server):
    files = corpora_for(("en", "de"), mirror=server.url)
    for file in files[:2]:
        server.files[file.url.removeprefix(server.url)] = opus_zip(file.name, "en", "de", rows(5))
    with pytest.raises(DownloadError, match=r"2 of 4 files not downloaded: Europarl v8 en-de .*; GlobalVoices v2018q4"):
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


def test_ctrl_c_ends_it_soon_and_keeps_the_parts(tmp_path, server, monkeypatch):
    server.always[PATH] = Answer(pause=0.02, piece=600)
    part = tmp_path / f"{NAME}.part"

    def interrupted(jobs, timeout):
        while not part.exists() or not part.stat().st_size:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_BLOCK", 600)
    monkeypatch.setattr(module, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch(server, tmp_path)
    kept = part.stat().st_size
    assert 0 < kept < len(server.files[PATH]) / 2
    monkeypatch.undo()
    server.always.clear()
    assert fetch(server, tmp_path).path.read_bytes() == server.files[PATH]
    assert server.ranges()[-1] == f"bytes={kept}-"
