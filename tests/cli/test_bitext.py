"""`st-paragram bitext` against a server of archives in OPUS's layout: from the address to a store
one can train on.
"""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from support.http_server import Answer, opus_zip, serving

from st_paragram.cli.main import main
from st_paragram.core.pair_store import PairStore
from st_paragram.tools.corpora import download

VERSIONS = {
    "OpenSubtitles": "v2018",
    "Tanzil": "v1",
    "Europarl": "v8",
    "GlobalVoices": "v2018q4",
    "MultiUN": "v1",
}
ENGLISH = "red blue green white black small large old new round".split()  # noqa: SIM905
TURKISH = "kırmızı mavi yeşil beyaz siyah küçük büyük eski yeni yuvarlak".split()  # noqa: SIM905
CHINESE = "红色 蓝色 绿色 白色 黑色 小的 大的 旧的 新的 圆形".split()  # noqa: SIM905


def path(corpus, codes):
    return f"/OPUS-{corpus}/{VERSIONS[corpus]}/moses/{'-'.join(sorted(codes))}.txt.zip"


def rows(words, count, seed, joint=" "):
    rng = random.Random(seed)
    chosen = [rng.choices(range(10), k=6) for _ in range(count)]
    return [
        (" ".join(ENGLISH[i] for i in row), joint.join(words[i] for i in row)) for row in chosen
    ]


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download, "TRIES", 3)
    monkeypatch.setattr(download, "FIRST_WAIT", 0.01)
    with serving() as running:
        for seed, corpus in enumerate(("OpenSubtitles", "Tanzil", "GlobalVoices")):
            running.files[path(corpus, ("en", "tr"))] = opus_zip(
                corpus, "en", "tr", rows(TURKISH, 200, seed)
            )
        for seed, (corpus, code) in enumerate(
            [
                ("OpenSubtitles", "zh_cn"),
                ("Tanzil", "zh"),
                ("GlobalVoices", "zhs"),
                ("MultiUN", "zh"),
            ]
        ):
            archive = opus_zip(corpus, "en", code, rows(CHINESE, 100, 7 + seed, ""))
            running.files[path(corpus, ("en", code))] = archive
        yield running


def command(server, folder, *more):
    where = [
        "--mirror",
        server.url,
        "--folder",
        folder / "raw",
        "--vocab-size",
        60,
        "--character-coverage",
        1,
    ]
    return main(["bitext", *map(str, [*where, *more])])


def test_two_languages_in_one_command(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert command(server, tmp_path, "--lang", "tr-zh", "--temperature", 2) == 0
    store = PairStore("data/en-tr-zh.h5")
    assert store.languages == ("en", "tr-zh")
    sources = store.settings["report"]["sources"]
    assert [source["languages"] for source in sources] == ["en-tr"] * 3 + ["en-zh"] * 4
    assert [source["rows"] for source in sources] == [200] * 3 + [100] * 4
    assert len(store) == store.settings["report"]["all"]["kept"] > 900
    assert {
        "too short",
        "length ratio",
        "mostly copied",
        "markup",
        "test sentence",
        "duplicate",
    } <= {*sources[0]["dropped"]}
    first, second = (list(store.texts(side, np.arange(len(store)))) for side in "ab")
    assert all(text.split()[0] in ENGLISH for text in first)
    assert any("红色" in text for text in second) and any("mavi" in text for text in second)

    asked = len(server.asked)
    assert command(server, tmp_path, "--lang", "tr-zh", "--temperature", 2, "--overwrite") == 0
    assert len(server.asked) == asked


def test_what_is_not_fetched_is_named_and_the_next_run_completes(server, tmp_path, capsys):
    server.script[path("Tanzil", ("en", "tr"))] = [
        Answer(cut=1000),
        Answer(status=503),
        Answer(status=503),
    ]
    asked = ["--lang", "tr", "--output", tmp_path / "s.h5"]
    assert command(server, tmp_path, *asked) == 1
    error = capsys.readouterr().err.strip().split("\n")[-1]
    assert error.startswith("st-paragram bitext: 1 of 3 files not downloaded: Tanzil v1 en-tr")
    assert (
        "1,000 bytes are kept, and the next run resumes" in error
        and not (tmp_path / "s.h5").exists()
    )
    assert command(server, tmp_path, *asked) == 0
    assert [
        source["rows"] for source in PairStore(tmp_path / "s.h5").settings["report"]["sources"]
    ] == [200] * 3
    manifest = json.loads((tmp_path / "raw" / "manifest.json").read_text(encoding="utf-8"))["files"]
    assert len(manifest) == 3 and all(
        entry["license"] and entry["citation"] for entry in manifest.values()
    )
