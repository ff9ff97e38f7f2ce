"""The sets of STS from archives in the layout of the originals, served by a server of this test."""

import hashlib
import io
import json
import tarfile
import zipfile

import pytest
from support.http_server import Answer, serving

from st_paragram.cli.main import main
from st_paragram.errors import DownloadError
from st_paragram.tools.corpora import download
from st_paragram.tools.corpora.catalogue import load_catalogue
from st_paragram.tools.evaluation.files import GradedPairs
from st_paragram.tools.evaluation.known_sets import graded_digest, known_digests
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.sts_archives import write_sets
from st_paragram.tools.evaluation.sts_sets import INFOS, SMT, read

FOLDERS = {
    "2012": "test-gold/STS",
    "2013": "test-gs/STS",
    "2014": "sts-en-test-gs-2014/STS",
    "2015": "test_evaluation_task2a/STS",
    "2016": "sts2016-english-with-gs-v1.0/STS2016",
}


def pairs_of(info):
    """The grades and sentences of a made-up set."""
    return [
        (f"{number}.500", f"{info.key} first {number}", f"second {number}") for number in range(3)
    ]


def zipped(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return file.getvalue()


def year_archives():
    """The archives of 2012-2017: name -> bytes."""
    members = {}
    for info in INFOS.values():
        if info.benchmark == "stsb" or info.key == SMT:
            continue
        rows = pairs_of(info)
        # the last row has no grade; the Turkish ones have fewer grades than rows
        grades = [grade for grade, _, _ in rows]
        if info.key != "2017/tr-en":
            grades.append("")
        sentences = [f" {first}\t{second} " for _, first, second in rows] + ["not\tgraded"]
        stem = f"surprise.{info.stem}" if info.key in ("2012/OnWN", "2012/SMTnews") else info.stem
        if info.benchmark == "2017":
            inputs = members.setdefault("Sts2017.eval.v1.1.zip", {})
            golds = members.setdefault("Sts2017.gs.zip", {})
            prefixes = ("STS2017.eval.v1.1/STS", "STS2017.gs/STS")
        else:
            inputs = golds = members.setdefault(f"STS{info.benchmark}-en-test.zip", {})
            prefixes = (FOLDERS[info.benchmark], FOLDERS[info.benchmark])
        if info.benchmark == "2016":
            sentences = [f"{line}\tsource\tsource" for line in sentences]
        inputs[f"{prefixes[0]}.input.{stem}.txt"] = "\n".join(sentences) + "\n"
        golds[f"{prefixes[1]}.gs.{stem}.txt"] = "\n".join(grades) + "\n"
    members["STS2013-en-test.zip"]["test-gs/STS.gs.SMT.txt"] = "4.5\n"
    members["STS2012-en-test.zip"]["../../escaped.txt"] = "not extracted"
    return {name: zipped(content) for name, content in members.items()}


def benchmark_archive(link=False):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for part in ("train", "dev", "test"):
            rows = pairs_of(INFOS[f"stsb/{part}"])
            text = "".join(f"news\tf\t2012\t1\t{g}\t{a}\t{b}\tlicense\n" for g, a, b in rows)
            entry = tarfile.TarInfo(f"stsbenchmark/sts-{part}.csv")
            entry.size = len(text)
            if link:
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry, io.BytesIO(text.encode()))
    return file.getvalue()


@pytest.fixture
def archives(monkeypatch):
    """Name -> bytes of all archives, with which the digests agree."""
    for info in INFOS.values():
        grades, first, second = map(list, zip(*pairs_of(info), strict=True))
        pairs = GradedPairs(info.key, first, second, [float(grade) for grade in grades])
        monkeypatch.setitem(known_digests()["sts"], info.key, graded_digest(pairs))
    return year_archives() | {"Stsbenchmark.tar.gz": benchmark_archive()}


@pytest.fixture
def folder(archives, tmp_path):
    for name, content in archives.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_one_command_writes_all_sets(archives, tmp_path, monkeypatch, capsys):
    entry = load_catalogue().sets["sts"]
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in archives.items()}
    monkeypatch.setitem(load_catalogue().sets, "sts", entry.model_copy(update={"sha256": digests}))
    monkeypatch.setattr(download, "FIRST_WAIT", 0.001)
    output = tmp_path / "eval"
    with serving() as server:
        for url in entry.urls:
            path = url.removeprefix("https://ixa2.si.ehu.eus")
            server.files[path] = archives[path.rpartition("/")[2]]
        resumed = "/stswiki/images/8/8c/STS2014-en-test.zip"
        server.script[resumed] = [Answer(cut=900)]
        words = ["download", "--sets", "sts", "--folder", str(output), "--mirror", server.url]
        assert main(words) == 0
        printed = capsys.readouterr().out
        assert server.ranges(resumed) == [None, "bytes=900-"]
        assert printed.index("license: each set") < printed.index("8 files downloaded")
        assert "34 sets of STS written" in printed and "LDC2013T18" in printed
        server.asked.clear()
        assert main(words) == 0 and not server.asked
        assert "0 sets of STS written" in capsys.readouterr().out
    data = read(
        Request([], data=output, sets=("stsb/train", *{i.benchmark for i in INFOS.values()}))
    )
    assert data.sets.keys() == INFOS.keys() - {SMT} and not data.altered
    turkish = (output / "sts2017" / "track6.tr-en.tsv").read_text()
    assert turkish == "".join("\t".join(row) + "\n" for row in pairs_of(INFOS["2017/tr-en"]))
    assert (
        "license" in json.loads((output / "manifest.json").read_text())["files"]["Sts2017.gs.zip"]
    )
    assert not list(tmp_path.parent.glob("escaped.txt")) and not (tmp_path / "escaped.txt").exists()


def test_files_of_the_user_are_kept(folder):
    own = folder / "sts2012" / "MSRpar.tsv"
    own.parent.mkdir()
    own.write_text("3\tmy own\tpair\n")
    with pytest.raises(
        DownloadError, match=r"MSRpar.tsv exists and is not the published set 2012/M"
    ):
        write_sets(folder, folder)
    assert own.read_text() == "3\tmy own\tpair\n"


@pytest.mark.parametrize(
    ("archive", "content", "message"),
    [
        (
            "STS2012-en-test.zip",
            zipped({"../test-gold/STS.input.MSRpar.txt": "a\tb\n"}),
            "cannot read",
        ),
        ("STS2012-en-test.zip", b"PK damaged", "cannot read test-gold/STS.input.MSRpar.txt"),
        ("Stsbenchmark.tar.gz", b"\x1f\x8b damaged", "cannot read stsbenchmark/sts-train.csv"),
        ("Stsbenchmark.tar.gz", benchmark_archive(link=True), "not a regular file"),
    ],
)
def test_damaged_and_hostile_archives_are_refused(folder, archive, content, message):
    (folder / archive).write_bytes(content)
    with pytest.raises(DownloadError, match=f"{archive}: .*{message}.*; remove the archive"):
        write_sets(folder, folder)


def test_other_pairs_than_the_published_are_not_written(folder, monkeypatch):
    monkeypatch.setitem(known_digests()["sts"], "2012/MSRpar", "0" * 16)
    with pytest.raises(DownloadError, match="have other pairs than the published set 2012/MSRpar"):
        write_sets(folder, folder / "out")
    assert not (folder / "out").exists()
