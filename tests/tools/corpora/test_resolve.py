"""Names of corpora, the catalog, the index of OPUS, and the command that lists them."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from support.http_server import Answer, opus_zip, serving

from st_paragram.errors import DownloadError, SettingsError
from st_paragram.tools.corpora import resolve
from st_paragram.tools.corpora.catalogue import load_catalogue
from st_paragram.tools.corpora.resolve import corpora_for, language_pairs, set_files

ROOT = Path(__file__).parents[3]


def urls(files):
    return [file.url.removeprefix("https://object.pouta.csc.fi/OPUS-") for file in files]


def test_the_corpora_of_the_paper():
    files = corpora_for(("en", "es"))
    assert urls(files) == [
        "OpenSubtitles/v2018/moses/en-es.txt.zip",
        "Tanzil/v1/moses/en-es.txt.zip",
        "Europarl/v8/moses/en-es.txt.zip",
        "GlobalVoices/v2018q4/moses/en-es.txt.zip",
    ]
    assert [file.entry.cap for file in files] == [4_000_000, None, None, None]
    assert not any(file.optional for file in files) and all(file.entry.license for file in files)
    assert {file.pair for file in files} == {("en", "es")} and files[
        0
    ].filename == "OpenSubtitles-v2018.en-es.txt.zip"
    chinese = corpora_for(("en", "zh"))
    assert [file.languages[1] for file in chinese] == ["zh_cn", "zh", "zhs", "zh"]
    assert [file.name for file in chinese if file.entry.cap] == ["OpenSubtitles", "MultiUN"]
    # codes are sorted
    assert urls(corpora_for(("en", "ar")))[0] == "OpenSubtitles/v2018/moses/ar-en.txt.zip"
    assert corpora_for(("en", "ar"))[0].languages == ("en", "ar")


def test_other_languages_and_versions():
    files = corpora_for(("en", "sv"))
    assert [file.name for file in files] == list(load_catalogue().corpora) and all(
        file.optional for file in files
    )
    assert all(file.optional for file in corpora_for(("de", "fr")))
    (french,) = corpora_for(("fr", "de"), ["europarl"])
    assert urls([french]) == ["Europarl/v8/moses/de-fr.txt.zip"] and french.languages == (
        "fr",
        "de",
    )
    assert urls(corpora_for(("en", "ja"), ["GlobalVoices@v2017q3"])) == [
        "GlobalVoices/v2017q3/moses/en-jp.txt.zip"
    ]


@pytest.mark.parametrize("name", ["Nonsense", "OPUS:", "mtdata:x"])
def test_unknown_names_are_refused_with_the_known(name):
    with pytest.raises(
        SettingsError, match="OpenSubtitles, Tanzil, Europarl, GlobalVoices, MultiUN"
    ):
        corpora_for(("en", "es"), [name])


def test_pairs_of_languages():
    assert language_pairs("fr-es-de") == [("en", "fr"), ("en", "es"), ("en", "de")]
    assert language_pairs("en-zh_cn") == [("en", "zh_cn")]
    for spec in ("", "en", "es-es", "es-"):
        with pytest.raises(SettingsError, match="--lang"):
            language_pairs(spec)


def test_sets():
    assert [file.filename for file in set_files("tatoeba", ["es"])] == [
        "tatoeba.spa-eng.spa",
        "tatoeba.spa-eng.eng",
    ]
    assert len(set_files("tatoeba")) == 14 and set_files("tatoeba", ["en"]) == set_files("tatoeba")
    assert len(set_files("bucc", ["zh"])) == 2
    with pytest.raises(SettingsError, match="bucc has no es; it has de, fr, ru, zh"):
        set_files("bucc", ["es"])
    with pytest.raises(SettingsError, match="unknown test set st; choose from bucc, sts, tatoeba"):
        set_files("st")
    archives = set_files("sts")
    assert len(archives) == 8 and set_files("sts", ["es"]) == archives
    assert {file.filename for file in archives} == set(archives[0].entry.sha256)
    assert all(file.url.startswith("https://ixa2.si.ehu.eus/stswiki/images/") for file in archives)


# --- the index of OPUS


@pytest.fixture
def index(monkeypatch):
    with serving() as server:
        monkeypatch.setattr(resolve, "OPUS_INDEX", f"{server.url}/opusapi/")
        yield server


def listed(corpus, version, source, target, latest="True", url=None):
    url = (
        url
        or f"https://object.pouta.csc.fi/OPUS-{corpus}/{version}/moses/{source}-{target}.txt.zip"
    )
    row = {
        "id": 1,
        "corpus": corpus,
        "version": version,
        "source": source,
        "target": target,
        "url": url,
    }
    return row | {"size": 2, "alignment_pairs": 7, "latest": latest, "preprocessing": "moses"}


def put(server, *rows):
    server.files["/opusapi/"] = json.dumps({"corpora": rows}).encode()


def test_any_corpus_of_opus(index):
    put(
        index,
        listed("NLLB", "v0", "en", "es", "False"),
        listed("NLLB", "v1", "en", "es"),
        listed("NLLB", "v1", "en", ""),
    )
    (file,) = corpora_for(("en", "es"), ["OPUS:nllb"])
    assert (file.name, file.entry.version, file.filename) == ("NLLB", "v1", "NLLB-v1.en-es.txt.zip")
    assert (
        file.url.endswith("OPUS-NLLB/v1/moses/en-es.txt.zip")
        and "opus.nlpl.eu" in file.entry.license
    )
    query = "corpus=nllb&source=en&target=es&preprocessing=moses&version=latest"
    assert [path for path, _ in index.asked] == [f"/opusapi/?{query}"]
    assert corpora_for(("en", "es"), ["OPUS:NLLB@v0"])[0].entry.version == "v0"
    (mirrored,) = corpora_for(("es", "en"), ["OPUS:NLLB"], mirror="http://h")
    assert mirrored.url == "http://h/OPUS-NLLB/v1/moses/en-es.txt.zip" and mirrored.languages == (
        "es",
        "en",
    )


def test_codes_and_caps_of_the_catalog_hold_for_opus_too(index):
    put(index, listed("OpenSubtitles", "v2018", "en", "zh_cn"))
    (file,) = corpora_for(("en", "zh"), ["OPUS:OpenSubtitles@v2018"])
    assert (file.entry.cap, file.languages, file.pair) == (4_000_000, ("en", "zh_cn"), ("en", "zh"))
    assert "opensubtitles.org" in file.entry.license
    put(index, listed("../x", "v1/..", "en", "es", url="https://h/a.txt.zip"))
    assert "/" not in corpora_for(("en", "es"), ["OPUS:../x"])[0].filename


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Answer(body=b'{"corpora": []}'), "OPUS has no NLLB for en-es.*zh_CN"),
        (Answer(body=b"<html>"), "OPUS:NLLB: no usable answer from http.*--text"),
    ],
)
def test_an_index_that_fails_says_what_to_do(index, reply, says):
    index.always["/opusapi/?corpus=NLLB&source=en&target=es&preprocessing=moses&version=latest"] = (
        reply
    )
    with pytest.raises(DownloadError, match=says) as failed:
        corpora_for(("en", "es"), ["OPUS:NLLB"])
    assert "\n" not in str(failed.value)


# --- the command


def run_script(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["get_corpora", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "data_prep" / "get_corpora.py"), run_name="__main__")
    return ended.value.code


def test_the_command_lists_and_fetches(tmp_path, monkeypatch, capsys):
    assert run_script(monkeypatch, "--lang", "tr-es", "--list") == 0
    out = capsys.readouterr().out
    assert (
        out.count("https://object.pouta.csc.fi/") == 7
        and out.count("license: ") == 4
        and out.count("cite: ") == 4
    )
    assert "OpenSubtitles v2018, limited to 4,000,000 pairs per language" in out
    with serving() as server:
        server.files["/OPUS-Tanzil/v1/moses/en-es.txt.zip"] = opus_zip(
            "Tanzil", "en", "es", [("a", "b")]
        )
        options = (
            "--lang",
            "es",
            "--corpus",
            "Tanzil",
            "--mirror",
            server.url,
            "--folder",
            tmp_path / "raw",
        )
        for said in ("1 files downloaded, 0 already there", "0 files downloaded, 1 already there"):
            assert run_script(monkeypatch, *options) == 0
            out = capsys.readouterr().out
            assert "non-commercial" in out and said in out
    assert run_script(monkeypatch, "--corpus", "Tanzil") == 1
    assert "no languages; name them" in capsys.readouterr().err
