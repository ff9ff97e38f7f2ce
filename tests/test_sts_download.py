import io
import logging
import runpy
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from st_paragram.data import sts_archives, sts_download
from st_paragram.data.sts_archives import graded_rows, read_members
from st_paragram.data.sts_download import ARCHIVES, download_sts
from st_paragram.errors import EvaluationError
from st_paragram.evaluation.graded_pairs import read_graded_pairs
from st_paragram.evaluation.sts_catalogue import BENCHMARKS, SMT, YEARS

NAMES = [info for benchmark in BENCHMARKS.values() for info in benchmark.sets if info.key != SMT]


def zipped(**files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def tarred(files):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def sentences(info):
    return f"{info.name}, one\u2028sentence\tits other\tsource 1\r\nnever graded\tat all\nthird\tthe other\n"


GOLD = "4.5\n\n0\n"


def release(benchmark):
    """Archives as the tasks published them, with two graded pairs a set."""
    sets = [info for info in BENCHMARKS[benchmark].sets if info.key != SMT]
    if benchmark == "stsb":
        row = "news\tfile\t2012\t{}\t{}\tfirst {}\tsecond\textra\n"
        files = {f"stsbenchmark/{info.stems[-1]}.csv": row.format(1, "2.0", 1) + row.format(2, "5", 2) for info in sets}
        return [tarred({"stsbenchmark/LICENSE.txt": "x", **files})]
    task = "STS2016" if benchmark == "2016" else "STS"
    inputs = {f"test/{task}.input.{info.stems[-1]}.txt": sentences(info) for info in sets}
    golds = {f"test/{task}.gs.{info.stems[-1]}.txt": GOLD for info in sets}
    if benchmark == "2017":
        return [zipped(**inputs), zipped(**golds)]
    return [zipped(**inputs, **golds, **{"__MACOSX/test/._STS.input.x.txt": "x", "test/correlation.pl": "x"})]


@pytest.fixture
def server():
    """A server of all archives, on this machine; `answers` may be changed, `asked` tells what was fetched."""
    answers = {}
    for archives in ARCHIVES:
        answers |= dict(zip(archives.paths, release(archives.benchmark), strict=True))
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.removeprefix("/images/")
            asked.append(path)
            answer = answers.get(path, 404)
            if isinstance(answer, int):
                return self.send_error(answer)
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer) + (100 if path in cut else 0)))
            self.end_headers()
            return self.wfile.write(answer)

        def log_message(self, *args):
            pass

    cut = set()
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    serving.answers, serving.asked, serving.cut = answers, asked, cut
    serving.base = f"http://127.0.0.1:{serving.server_port}/images/"
    yield serving
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_every_set_gets_its_file(tmp_path, server, caplog):
    got = download_sts(tmp_path, accept_msr_terms=True, base=server.base)
    assert len(got.written) == len(NAMES) == 34 and not got.kept and not got.refused
    pairs = read_graded_pairs(tmp_path / "sts2014" / "deft-forum.tsv")
    assert (pairs.first, pairs.second) == (["deft-forum, one\u2028sentence", "third"], ["its other", "the other"])
    assert pairs.grades == [4.5, 0.0]
    for name in ("sts2012/OnWN", "sts2016/headlines", "sts2017/track4b.es-en", "stsb/en-dev"):
        assert len(read_graded_pairs(tmp_path / f"{name}.tsv")) == 2
    assert read_graded_pairs(tmp_path / "stsb" / "en-test.tsv").first == ["first 1", "first 2"]
    assert any("2012/MSRpar has 2 pairs, where officially there are 750" in text for text in caplog.messages)
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_there_is_not_fetched_again(tmp_path, server):
    download_sts(tmp_path, accept_msr_terms=True, base=server.base)
    (tmp_path / "sts2015" / "belief.tsv").unlink()
    (tmp_path / "sts2015" / "images.tsv").write_text("mine")
    server.asked.clear()
    got = download_sts(tmp_path, accept_msr_terms=True, base=server.base)
    assert server.asked == ["d/da/STS2015-en-test.zip"] and [path.name for path in got.written] == ["belief.tsv"]
    assert len(got.kept) == len(NAMES) - 1 and (tmp_path / "sts2015" / "images.tsv").read_text() == "mine"
    assert download_sts(tmp_path, base=server.base).refused == ()  # all there: nothing to accept


def test_nothing_of_microsoft_is_fetched_without_consent(tmp_path, server):
    got = download_sts(tmp_path, base=server.base)
    assert got.refused == ("2012", "stsb")
    assert not any("2012" in path or "Stsbench" in path for path in server.asked)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"sts{year}" for year in (*YEARS[1:], "2017")]


def test_failures_name_the_address_and_keep_nothing_else_from_coming(tmp_path, server):
    server.answers["2/2f/STS2013-en-test.zip"] = 404
    server.answers["8/8c/STS2014-en-test.zip"] = b"<html>moved</html>"
    server.answers["7/70/Sts2017.gs.zip"] = 503
    server.cut.add("d/da/STS2015-en-test.zip")
    with pytest.raises(EvaluationError) as failed:
        download_sts(tmp_path, base=server.base)
    message = str(failed.value)
    assert "\n" not in message and "4 of 7 benchmarks" in message and "--hub" in message
    assert f"{server.base}2/2f/STS2013-en-test.zip: HTTP 404" in message
    assert "STS2014-en-test.zip: no archive that can be read" in message
    assert "Sts2017.gs.zip: HTTP 503" in message and "STS2015-en-test.zip: " in message
    assert [path.name for path in tmp_path.iterdir()] == ["sts2016"]


def test_no_server_no_name_and_no_patience(tmp_path, server):
    server.shutdown()
    for base in (server.base, "http://name.invalid/"):
        with pytest.raises(EvaluationError, match=r"7 of 7|5 of 7"):
            download_sts(tmp_path, base=base, timeout=0.2)


def test_too_much_is_refused(tmp_path, server, monkeypatch):
    monkeypatch.setattr(sts_download, "MOST_BYTES", 300)
    with pytest.raises(EvaluationError, match="more than 300 bytes"):
        download_sts(tmp_path, base=server.base)


def test_members_that_lead_out_or_swell_are_refused(monkeypatch):
    for name in ("../../evil.txt", "/etc/evil.txt", "a\\..\\..\\evil.txt"):
        with pytest.raises(EvaluationError, match=r"x\.zip: member .* leads out"):
            read_members(zipped(**{name: "x"}), "x.zip")
        with pytest.raises(EvaluationError, match="leads out"):
            read_members(tarred({name: "x"}), "x.tar.gz")
    monkeypatch.setattr(sts_archives, "MOST_BYTES", 1000)
    with pytest.raises(EvaluationError, match="more than 1,000 bytes"):
        read_members(zipped(**{"a.txt": "a" * 600, "b.txt": "b" * 600}), "x.zip")
    assert read_members(zipped(**{"a.txt": "a" * 600, "b/a.txt": "b" * 600, "c.pdf": "c" * 9000}), "x.zip").keys() == {
        "a.txt"
    }


@pytest.mark.parametrize("url", ["x.zip", "x.tar.gz"])
def test_damaged_archives_are_refused(url):
    whole = release("stsb" if url.endswith("gz") else "2013")[0]
    middle = len(whole) // 2
    for data in (b"", b"text", whole[:middle], whole[:60] + bytes(30) + whole[90:]):
        with pytest.raises(EvaluationError, match="no archive that can be read"):
            read_members(data, url)


def test_sets_that_do_not_fit_together_are_refused():
    info = BENCHMARKS["2013"].sets[0]
    names = ("STS.input.FNWN.txt", "STS.gs.FNWN.txt")
    with pytest.raises(EvaluationError, match=r"u: 2013/FNWN: 1 pairs, but 2 grades"):
        graded_rows(info, dict(zip(names, (b"a\tb\n", b"1\n2\n"), strict=True)), "u")
    with pytest.raises(EvaluationError, match=r"u: has no 2013/FNWN"):
        graded_rows(info, {names[0]: b"a\tb\n"}, "u")
    with pytest.raises(EvaluationError, match="not UTF-8"):
        graded_rows(info, dict(zip(names, (b"\xff\tb\n", b"1\n"), strict=True)), "u")


def test_pairs_that_cannot_be_right_are_not_kept(tmp_path, server):
    files = {f"STS.input.{name}.txt": "a\tb\nc\td\n" for name in ("FNWN", "headlines", "OnWN")}
    files |= {f"STS.gs.{name}.txt": "1\n7\n" for name in ("FNWN", "headlines", "OnWN")}
    server.answers["2/2f/STS2013-en-test.zip"] = zipped(**files)
    with pytest.raises(EvaluationError, match=r"2013-en-test\.zip: 2013/FNWN is not what was published: .*row 2"):
        download_sts(tmp_path, base=server.base)
    assert not list((tmp_path / "sts2013").iterdir())


def test_https_is_not_left():
    handler = sts_download._HttpsStays()
    request = sts_download.urllib.request.Request("https://a/b.zip")
    with pytest.raises(EvaluationError, match="leads to http://c, which is not https"):
        handler.redirect_request(request, None, 302, "", {}, "http://c")
    assert handler.redirect_request(request, None, 302, "", {}, "https://c").full_url == "https://c"
    assert sts_download.BASE.startswith("https://")


def test_the_script_says_what_licences_forbid(tmp_path, server, monkeypatch, capsys, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(sts_download.download_sts, "__defaults__", (False, server.base, 60.0))
    script = Path(__file__).parent.parent / "data_prep" / "get_sts.py"

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["get_sts", str(tmp_path), *arguments])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(script), run_name="__main__")
        return ended.value.code, capsys.readouterr().out

    status, out = run()
    assert status == 1 and "STS 2013 SMT (750 pairs) cannot be fetched" in out and "Linguistic Data Consortium" in out
    assert "Not fetched: 2012, stsb." in out and "give --accept-msr-terms" in out
    status, out = run("--accept-msr-terms")
    assert status == 0 and "8 sets fetched, 26 were there" in out and "Microsoft" not in out
