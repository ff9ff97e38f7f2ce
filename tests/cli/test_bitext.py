"""`st-paragram bitext` against a server of archives in OPUS's layout: from the address to a store one can train on."""

from __future__ import annotations

import argparse
import random

import numpy as np
import pytest
from support.http_server import Answer, opus_zip, serving

from st_paragram.cli import bitext
from st_paragram.cli.main import main
from st_paragram.core.pair_store import PairStore
from st_paragram.errors import DownloadError, SettingsError
from st_paragram.tools.corpora.fetching.transfer import TransferSettings

VERSIONS = {"OpenSubtitles": "v2018", "Tanzil": "v1", "GlobalVoices": "v2018q4", "MultiUN": "v1"}
ENGLISH = "red blue green white black small large old new round".split()  # noqa: SIM905
TURKISH = "kırmızı mavi yeşil beyaz siyah küçük büyük eski yeni yuvarlak".split()  # noqa: SIM905
CHINESE = "红色 蓝色 绿色 白色 黑色 小的 大的 旧的 新的 圆形".split()  # noqa: SIM905


def path(corpus, codes):
    return f"/OPUS-{corpus}/{VERSIONS[corpus]}/moses/{'-'.join(sorted(codes))}.txt.zip"


def rows(words, count, seed, joint=" "):
    rng = random.Random(seed)
    chosen = [rng.choices(range(10), k=6) for _ in range(count)]
    return [(" ".join(ENGLISH[i] for i in row), joint.join(words[i] for i in row)) for row in chosen]


@pytest.fixture
def server(monkeypatch):
    patient = TransferSettings(timeout=2, tries=3, first_wait=0.01, longest_wait=0.02, overlap=100)
    monkeypatch.setattr("st_paragram.tools.corpora.fetching.download.TransferSettings", lambda: patient)
    with serving() as running:
        for seed, corpus in enumerate(("OpenSubtitles", "Tanzil", "GlobalVoices")):
            running.files[path(corpus, ("en", "tr"))] = opus_zip(corpus, "en", "tr", rows(TURKISH, 200, seed))
        for seed, (corpus, code) in enumerate(
            [("OpenSubtitles", "zh_cn"), ("Tanzil", "zh"), ("GlobalVoices", "zhs"), ("MultiUN", "zh")]
        ):
            archive = opus_zip(corpus, "en", code, rows(CHINESE, 100, 7 + seed, ""))
            running.files[path(corpus, ("en", code))] = archive
        yield running


def command(server, folder, *more):
    parser = argparse.ArgumentParser()
    bitext.add_options(parser)
    where = ["--mirror", server.url, "--folder", folder / "raw", "--vocab-size", 60, "--character-coverage", 1]
    return bitext.run(parser.parse_args(list(map(str, [*where, *more]))))


def test_two_languages_in_one_command(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(server, tmp_path, "--lang", "tr-zh", "--temperature", 2) == 0
    store = PairStore("data/en-tr-zh.h5")
    assert store.languages == ("en", "tr-zh")
    sources = store.settings["report"]["sources"]
    assert [source["languages"] for source in sources] == ["en-tr"] * 3 + ["en-zh"] * 4
    assert [source["rows"] for source in sources] == [200] * 3 + [100] * 4
    assert len(store) == store.settings["report"]["all"]["kept"] > 900
    assert {"too short", "length ratio", "mostly copied", "markup", "test sentence", "duplicate"} <= {
        *sources[0]["dropped"]
    }
    first, second = (list(store.texts(side, np.arange(len(store)))) for side in "ab")
    assert all(text.split()[0] in ENGLISH for text in first)
    assert any("红色" in text for text in second) and any("mavi" in text for text in second)

    asked = len(server.asked)
    assert command(server, tmp_path, "--lang", "tr-zh", "--temperature", 2, "--overwrite") == 0
    assert len(server.asked) == asked


def test_a_cut_connection_is_gone_on_with(server, tmp_path):
    file = path("OpenSubtitles", ("en", "tr"))
    server.script[file] = [Answer(cut=1000)]
    command(server, tmp_path, "--lang", "tr", "--output", tmp_path / "s.h5")
    assert server.gets(file) == [None, "bytes=900-"]
    assert PairStore(tmp_path / "s.h5").settings["report"]["sources"][0]["rows"] == 200


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(status=404), "404"),
        (Answer(body=b"<!DOCTYPE html><html>moved</html>", headers={"Content-Type": "text/html"}), "HTML"),
        (Answer(body=opus_zip("Tanzil", "en", "tr", rows(TURKISH, 50, 0))[:-40]), "zip"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_the_second_run_completes(server, tmp_path, answer, message):
    file = path("Tanzil", ("en", "tr"))
    server.always[file] = answer
    arguments = ["--lang", "tr", "--output", tmp_path / "s.h5"]
    with pytest.raises(DownloadError, match=f"Tanzil v1 en-tr .*{message}"):
        command(server, tmp_path, *arguments)
    assert not (tmp_path / "s.h5").exists()
    assert sum(1 for each in (tmp_path / "raw").glob("*.zip")) == 2  # the others
    del server.always[file]
    asked = len(server.gets())
    command(server, tmp_path, *arguments)
    assert len(server.gets()) == asked + 1  # the others were there
    assert len(PairStore(tmp_path / "s.h5")) > 500


def test_own_text_beside_and_instead(server, tmp_path):
    own = tmp_path / "own.tsv"
    own.write_text("".join(f"{a}\t{b}\n" for a, b in rows(TURKISH, 80, 99)), encoding="utf-8")
    more = ["--lang", "tr", "--text", own, "--cap", 50, "--output"]
    command(server, tmp_path, *more, tmp_path / "beside.h5", "--corpus", "Tanzil")
    names = [source["name"] for source in PairStore(tmp_path / "beside.h5").settings["report"]["sources"]]
    assert len(names) == 2 and names[1] == str(own)
    asked = len(server.asked)
    command(server, tmp_path, *more, tmp_path / "alone.h5", "--no-download")
    assert len(server.asked) == asked
    assert len(PairStore(tmp_path / "alone.h5")) == 50
    with pytest.raises(SettingsError, match="no text: --no-download"):
        command(server, tmp_path, "--lang", "tr", "--no-download", "--output", tmp_path / "x.h5")


def test_errors_are_one_line(server, tmp_path, capsys):
    server.always[path("Tanzil", ("en", "tr"))] = Answer(status=404)
    arguments = ["bitext", "--lang", "tr", "--mirror", server.url, "--folder", str(tmp_path / "raw")]
    assert main([*arguments, "--output", str(tmp_path / "s.h5")]) == 1
    error = capsys.readouterr().err.strip().split("\n")[-1]
    assert error.startswith("st-paragram bitext: 1 of 3 files not fetched: Tanzil v1 en-tr")
