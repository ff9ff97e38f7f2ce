import gzip
import io
import logging
import runpy
import socket
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from support.http_server import Answer, serving

from st_paragram.core.files import locked
from st_paragram.errors import EvaluationError
from st_paragram.tools.corpora.fetching.transfer import TransferSettings
from st_paragram.tools.evaluation.graded_pairs import read_graded_pairs
from st_paragram.tools.evaluation.sts import archives as sts_archives
from st_paragram.tools.evaluation.sts import download as sts_download
from st_paragram.tools.evaluation.sts.archives import graded_rows, read_members
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS, SMT, YEARS
from st_paragram.tools.evaluation.sts.download import ARCHIVES, download_sts

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
FAST = TransferSettings(timeout=1, tries=2, first_wait=0.001, least_rate=0, most_bytes=sts_download.MOST_BYTES)


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
    """A server of all archives, on this machine."""
    with serving() as running:
        for archives in ARCHIVES:
            for path, data in zip(archives.paths, release(archives.benchmark), strict=True):
                running.files[f"/images/{path}"] = data
        running.base = f"{running.url}/images/"
        yield running


def fetch(folder, server, **options):
    return download_sts(folder, base=server.base, settings=FAST, **options)


def test_every_set_gets_its_file(tmp_path, server, caplog):
    got = fetch(tmp_path, server, accept_msr_terms=True)
    assert len(got.written) == len(NAMES) == 34 and not got.kept and not got.refused
    pairs = read_graded_pairs(tmp_path / "sts2014" / "deft-forum.tsv")
    assert (pairs.first, pairs.second) == (["deft-forum, one\u2028sentence", "third"], ["its other", "the other"])
    assert pairs.grades == [4.5, 0.0]
    for name in ("sts2012/OnWN", "sts2016/headlines", "sts2017/track4b.es-en", "stsb/en-dev"):
        assert len(read_graded_pairs(tmp_path / f"{name}.tsv")) == 2
    assert read_graded_pairs(tmp_path / "stsb" / "en-test.tsv").first == ["first 1", "first 2"]
    assert any("2012/MSRpar has 2 pairs, but officially 750" in text for text in caplog.messages)
    assert not list(tmp_path.rglob("*.part"))


def test_what_is_there_is_not_fetched_again(tmp_path, server):
    fetch(tmp_path, server, accept_msr_terms=True)
    (tmp_path / "sts2015" / "belief.tsv").unlink()
    (tmp_path / "sts2015" / "images.tsv").write_text("mine")
    server.asked.clear()
    got = fetch(tmp_path, server, accept_msr_terms=True)
    assert {path for _, path, _ in server.asked} == {"/images/d/da/STS2015-en-test.zip"}
    assert [path.name for path in got.written] == ["belief.tsv"]
    assert len(got.kept) == len(NAMES) - 1 and (tmp_path / "sts2015" / "images.tsv").read_text() == "mine"
    assert fetch(tmp_path, server).refused == ()  # all there: nothing to accept


def test_nothing_of_microsoft_is_fetched_without_consent(tmp_path, server):
    got = fetch(tmp_path, server)
    assert got.refused == ("2012", "stsb")
    assert not any("2012" in path or "Stsbench" in path for _, path, _ in server.asked)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"sts{year}" for year in (*YEARS[1:], "2017")]


def test_failures_name_the_address_and_keep_nothing_else_from_coming(tmp_path, server):
    server.always["/images/2/2f/STS2013-en-test.zip"] = Answer(status=404)
    server.always["/images/8/8c/STS2014-en-test.zip"] = Answer(body=b"<html>moved</html>")
    server.always["/images/7/70/Sts2017.gs.zip"] = Answer(status=503)
    server.always["/images/d/da/STS2015-en-test.zip"] = Answer(cut=100, ranges=False)
    with pytest.raises(EvaluationError) as failed:
        fetch(tmp_path, server)
    message = str(failed.value)
    assert "\n" not in message and "4 of 5 benchmarks" in message and "--hub" in message
    for path, says in (
        ("2/2f/STS2013-en-test.zip", "not there"),
        ("8/8c/STS2014-en-test.zip", "a web page"),
        ("7/70/Sts2017.gs.zip", "given up after 2 tries (HTTP 503"),
        ("d/da/STS2015-en-test.zip", "given up after 2 tries (connection broke (peer closed connection"),
    ):
        assert f"({server.base}{path}): {says}" in message
    assert [path.name for path in tmp_path.iterdir()] == ["sts2016"]


@pytest.mark.parametrize("all_there", [False, True])
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path, server, all_there):
    """It was killed while it wrote a set, or before it had removed the archives of the last one."""
    if all_there:
        fetch(tmp_path, server)
        (tmp_path / ".archives").mkdir()
        (tmp_path / ".archives" / "STS2013-en-test.zip").touch()
    else:
        (tmp_path / "sts2013").mkdir()
        (tmp_path / "sts2013" / ".FNWN.tsv.0123456789ab.part").touch()
    fetch(tmp_path, server)
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_no_server_no_name_and_no_patience(tmp_path, server):
    server.shutdown()
    server.server_close()
    for base in (server.base, "http://name.invalid/"):
        with pytest.raises(EvaluationError, match=r"5 of 5"):
            download_sts(tmp_path, base=base, settings=FAST)


def test_a_name_that_is_not_known_is_asked_for_once_and_the_advice_exists(tmp_path, monkeypatch):
    asked = []

    def unknown(host, *args, **kwargs):
        asked.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(EvaluationError) as failed:
        download_sts(tmp_path)
    message = str(failed.value)
    assert set(asked) == {"ixa2.si.ehu.eus"} and len(asked) <= 2  # for its size, and for itself
    assert message.startswith("5 of 5 benchmarks of STS could not be fetched: STS 2013") and "\n" not in message
    assert message.count("no address is known for ixa2.si.ehu.eus") == 1
    assert "`st-paragram evaluate --hub`" in message and "`st-paragram download --sets sts`" in message
    assert "--mirror" not in message and "--corpus" not in message and ".py" not in message


def test_too_much_is_refused(tmp_path, server):
    with pytest.raises(EvaluationError, match="more than 300 bytes"):
        download_sts(tmp_path, base=server.base, settings=replace(FAST, most_bytes=300))


def test_members_that_lead_out_or_swell_are_refused(monkeypatch):
    for name in ("../../evil.txt", "/etc/evil.txt", "a\\..\\..\\evil.txt"):
        with pytest.raises(EvaluationError, match=r"x\.zip: member .* points outside"):
            read_members(zipped(**{name: "x"}), "x.zip")
        with pytest.raises(EvaluationError, match="points outside"):
            read_members(tarred({name: "x"}), "x.tar.gz")
    monkeypatch.setattr(sts_archives, "MOST_BYTES", 1000)
    for name, pack in (("x.zip", lambda files: zipped(**files)), ("x.tar.gz", tarred)):
        with pytest.raises(EvaluationError, match="more than 1,000 bytes"):
            read_members(pack({"a.txt": "a" * 600, "b.pdf": "b" * 600}), name)
        files = {"a.txt": "a" * 300, "b/a.txt": "b" * 300, "c.pdf": "c" * 300}
        assert read_members(pack(files), name) == {"a.txt": b"a" * 300}


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
    server.files["/images/2/2f/STS2013-en-test.zip"] = zipped(**files)
    with pytest.raises(EvaluationError, match=r"2013-en-test\.zip: 2013/FNWN is not what was published: .*row 2"):
        fetch(tmp_path, server)
    assert not list((tmp_path / "sts2013").iterdir())


def test_archives_are_fetched_over_https():
    assert sts_download.BASE.startswith("https://")


def test_the_script_says_what_licences_forbid(tmp_path, server, monkeypatch, capsys, caplog):
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(sts_download.download_sts, "__defaults__", (False, server.base, FAST))
    script = Path(__file__).parents[3] / "data_prep" / "get_sts.py"

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


def test_archives_that_a_killed_run_left_go(tmp_path, server):
    left = tmp_path / ".archives"
    left.mkdir()
    (left / "STS2013-en-test.zip.part").write_bytes(b"PK")
    fetch(tmp_path, server)
    assert not left.exists()


def test_two_runs_do_not_take_each_others_archives(tmp_path, server):
    with locked(tmp_path / ".archives"), pytest.raises(EvaluationError, match="another run is using it"):
        fetch(tmp_path, server)
    assert (tmp_path / ".archives").exists()


def header(name, size, kind=tarfile.REGTYPE):
    """The header of a tar archive's member, of a size that may be negative."""
    member = tarfile.TarInfo(name)
    member.type = kind
    data = bytearray(member.tobuf())
    data[124:136] = (size % (1 << 96)).to_bytes(12, "big") if size < 0 else b"%011o\0" % size
    data[148:156] = b"%06o\0 " % tarfile.calc_chksums(data)[0]
    return bytes(data)


def test_headers_that_swell_are_refused(monkeypatch):
    monkeypatch.setattr(sts_archives, "MOST_BYTES", 1000)
    monkeypatch.setattr(sts_archives, "_HEADERS", 100_000)
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        bomb = header("x", 1 << 20, kind) + bytes(1 << 20) + header("a.txt", 0)
        with pytest.raises(EvaluationError, match="unpacks to more than 101,000 bytes"):
            read_members(gzip.compress(bomb), "x.tar.gz")


def test_a_member_that_leads_back_is_refused():
    """Without this, the second member would be read for ever; newer versions of tarfile would end there instead."""
    back = header("a.txt", 0) + header("b.txt", -512) + bytes(1024)
    with pytest.raises(EvaluationError, match="no archive that can be read"):
        read_members(gzip.compress(back), "x.tar.gz")


@pytest.mark.parametrize("damage", [b"not a header" * 50, header("b.txt", 0)[:100] + b"\1" * 412])
def test_a_damaged_header_is_not_the_end(damage):
    with pytest.raises(EvaluationError, match="the header of a member is damaged"):
        read_members(gzip.compress(header("a.txt", 0) + damage + bytes(1024)), "x.tar.gz")


def test_an_archive_may_end_without_zeros():
    assert read_members(gzip.compress(header("a.txt", 0)), "x.tar.gz") == {"a.txt": b""}
