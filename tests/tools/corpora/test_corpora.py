import importlib.util
import json
import logging
import runpy
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from support.http_server import Answer, opus_zip, serving

from st_paragram.errors import DownloadError, MissingExtraError, SettingsError
from st_paragram.tools.corpora import catalogue as catalogue_module
from st_paragram.tools.corpora.catalogue import load_catalogue
from st_paragram.tools.corpora.opus import find_in_opus
from st_paragram.tools.corpora.resolve import corpora_for, language_pairs, set_files

ROOT = Path(__file__).parents[3]


@pytest.fixture
def server():
    with serving() as running:
        yield running


def urls(files):
    return [file.url.removeprefix("https://object.pouta.csc.fi/OPUS-") for file in files]


# --- the catalogue


def test_the_corpora_of_the_paper():
    files = corpora_for(("en", "es"))
    assert urls(files) == [
        "OpenSubtitles/v2018/moses/en-es.txt.zip",
        "Tanzil/v1/moses/en-es.txt.zip",
        "Europarl/v8/moses/en-es.txt.zip",
        "GlobalVoices/v2018q4/moses/en-es.txt.zip",
    ]
    assert [file.cap for file in files] == [4_000_000, None, None, None]
    assert not any(file.optional for file in files) and all(file.licence and file.citation for file in files)
    assert {file.pair for file in files} == {("en", "es")} and files[0].filename == "OpenSubtitles-v2018.en-es.txt.zip"
    chinese = corpora_for(("en", "zh"))
    assert [file.languages[1] for file in chinese] == ["zh_cn", "zh", "zhs", "zh"]
    assert [file.name for file in chinese if file.cap] == ["OpenSubtitles", "MultiUN"]
    assert urls(corpora_for(("en", "ar")))[0] == "OpenSubtitles/v2018/moses/ar-en.txt.zip"  # codes are sorted
    assert corpora_for(("en", "ar"))[0].languages == ("en", "ar")
    assert len(corpora_for(("en", "tr"))) == 3


def test_what_the_catalogue_names_is_in_the_list_of_opus():
    """Against the list that mtdata carries, where mtdata is installed."""
    spec = importlib.util.find_spec("mtdata")
    if spec is None:
        pytest.skip("mtdata is not installed")
    text = (Path(spec.origin).parent / "resource" / "opus_index.tsv").read_text(encoding="utf-8")
    listed = {tuple(row.split("\t")) for row in text.split("\n")}
    for language in load_catalogue().languages:
        for file in corpora_for(("en", language)):
            assert (file.name, file.version, *sorted(file.languages)) in listed
    old = corpora_for(("en", "es"), ["GlobalVoices@v2017q3"])[0]
    assert (old.name, old.version, "en", "es") in listed and "/v2017q3/" in old.url
    assert ("GlobalVoices", "v2018q4", "en", "jp") in listed
    assert urls(corpora_for(("en", "ja"), ["GlobalVoices"])) == ["GlobalVoices/v2018q4/moses/en-jp.txt.zip"]


def test_other_languages_get_all_there_is_if_it_is():
    files = corpora_for(("en", "sv"))
    assert [file.name for file in files] == list(load_catalogue().corpora) and all(file.optional for file in files)
    assert all(file.optional for file in corpora_for(("de", "fr")))
    assert urls(corpora_for(("fr", "de"), ["Europarl"])) == ["Europarl/v8/moses/de-fr.txt.zip"]
    assert corpora_for(("fr", "de"), ["europarl"])[0].languages == ("fr", "de")


def test_a_mirror_keeps_the_path():
    (file,) = corpora_for(("en", "es"), ["Tanzil"], mirror="http://localhost:1/copies/")
    assert file.url == "http://localhost:1/copies/OPUS-Tanzil/v1/moses/en-es.txt.zip"
    for mirror in ("localhost", "ftp://x/y", "file:///tmp", "https://"):
        with pytest.raises(SettingsError, match=f"--mirror {mirror}"):
            corpora_for(("en", "es"), ["Tanzil"], mirror=mirror)


@pytest.mark.parametrize("name", ["Nonsense", "OPUS:", "zip:Europarl", "", "@v1"])
def test_unknown_names_are_refused_with_those_there_are(name):
    with pytest.raises(SettingsError, match="OpenSubtitles, Tanzil, Europarl, GlobalVoices, MultiUN"):
        corpora_for(("en", "es"), [name])


def test_pairs_of_languages():
    assert language_pairs("es") == [("en", "es")]
    assert language_pairs("fr-es-de") == [("en", "fr"), ("en", "es"), ("en", "de")]
    assert language_pairs("en-zh_cn") == [("en", "zh_cn")] and language_pairs("en", "de") == [("de", "en")]
    for spec in ("", "en", "es-es", "es-", "-"):
        with pytest.raises(SettingsError, match="--lang"):
            language_pairs(spec)


def test_other_sets():
    spanish = set_files("tatoeba", ["es"])
    assert [file.filename for file in spanish] == ["tatoeba.spa-eng.spa", "tatoeba.spa-eng.eng"]
    assert len(set_files("tatoeba")) == 14 and set_files("tatoeba", ["en"]) == set_files("tatoeba")
    small = set_files("lid")[0]
    assert (small.filename, small.size) == ("lid.176.ftz", 938013) and small.sha256.startswith("8f3472cf")
    assert set_files("lid")[1].sha256 is None
    assert set_files("paranmt", ["es"], mirror="http://h/x")[0].url == "http://h/x/data/para-nmt-50m.zip"
    assert len(set_files("bucc", ["zh"])) == 2 and set_files("sts") == []
    with pytest.raises(SettingsError, match="bucc has no es; it has de, fr, ru, zh"):
        set_files("bucc", ["es"])
    with pytest.raises(SettingsError, match="unknown set x; there are bucc, lid"):
        set_files("x")


def test_the_catalogue_lies_beside_the_scripts_too():
    beside = ROOT / "data_prep" / "corpora.yaml"
    assert beside.read_bytes() == catalogue_module.PATH.read_bytes()  # a link, in archives a copy
    assert not beside.is_symlink() or not beside.readlink().is_absolute()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tree: tree["corpora"]["Tanzil"].update(verison="v1"), "Tanzil: unknown verison; known are cap"),
        (lambda tree: tree["corpora"]["Tanzil"].pop("licence"), "Tanzil: licence missing"),
        (lambda tree: tree["corpora"]["Tanzil"].update(cap="many"), "Tanzil: cap is 'many'; it must be a whole number"),
        (lambda tree: tree["corpora"].update(Tanzil=["v1"]), "Tanzil is not a mapping of keys to values"),
        (lambda tree: tree["languages"].update(xx=["Tanzil", "Ghost"]), "language xx names Ghost"),
        (lambda tree: tree.update(more=1), "the file: unknown more"),
        (lambda tree: tree["sets"]["lid"].update(urls="one"), "lid: urls is 'one'; it must be a list"),
    ],
)
def test_mistakes_in_a_catalogue_are_named(tmp_path, change, says):
    tree = yaml.safe_load(catalogue_module.PATH.read_text(encoding="utf-8"))
    change(tree)
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"c\.yaml: .*{says}|c\.yaml: {says}"):
        load_catalogue(path)


@pytest.mark.parametrize("text", ["- a\n", "a: [", "", "\x00"])
def test_what_is_no_catalogue_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_catalogue(path)
    assert "\n" not in str(refused.value) and "c.yaml" in str(refused.value)


def test_a_catalogue_of_ones_own():
    own = replace(load_catalogue(), opus="https://example.org/{corpus}-{version}-{pair}.zip", languages={})
    assert corpora_for(("en", "es"), ["Tanzil"], catalogue=own)[0].url == "https://example.org/Tanzil-v1-en-es.zip"


# --- the listing of OPUS


def listed(corpus, version, source, target, latest="True", url=None, size=2):
    url = url or f"https://object.pouta.csc.fi/OPUS-{corpus}/{version}/moses/{source}-{target}.txt.zip"
    row = {"id": 1, "corpus": corpus, "version": version, "source": source, "target": target, "url": url}
    return row | {"size": size, "alignment_pairs": 7, "latest": latest, "preprocessing": "moses"}


def answer(server, rows):
    server.files["/opusapi/"] = json.dumps({"corpora": rows}).encode()


def test_any_corpus_of_opus(server):
    rows = [listed("NLLB", "v0", "en", "es", "False"), listed("NLLB", "v1", "en", "es"), listed("NLLB", "v1", "en", "")]
    answer(server, rows)
    api = f"{server.url}/opusapi/"
    (file,) = corpora_for(("en", "es"), ["OPUS:nllb"], api=api)
    assert (file.name, file.version, file.about, file.size) == ("NLLB", "v1", 2048, None)
    assert file.url.endswith("OPUS-NLLB/v1/moses/en-es.txt.zip") and file.filename == "NLLB-v1.en-es.txt.zip"
    assert "https://opus.nlpl.eu/NLLB" in file.licence
    query = "corpus=nllb&source=en&target=es&preprocessing=moses&version=latest"
    assert [path for _, path, _ in server.asked] == [f"/opusapi/?{query}"]
    assert corpora_for(("en", "es"), ["OPUS:NLLB@v0"], api=api)[0].version == "v0"
    mirrored = corpora_for(("es", "en"), ["OPUS:NLLB"], mirror="http://h", api=api)[0]
    assert mirrored.url == "http://h/OPUS-NLLB/v1/moses/en-es.txt.zip" and mirrored.languages == ("es", "en")


def test_codes_and_caps_of_the_catalogue_hold_for_opus_too(server):
    answer(server, [listed("OpenSubtitles", "v2018", "en", "zh_cn")])
    (file,) = corpora_for(("en", "zh"), ["OPUS:OpenSubtitles@v2018"], api=f"{server.url}/opusapi/")
    assert (file.cap, file.languages, file.pair) == (4_000_000, ("en", "zh_cn"), ("en", "zh"))
    assert "opensubtitles.org" in file.licence


def test_names_that_opus_sends_make_no_paths(server):
    answer(server, [listed("../x", "v1/..", "en", "es", url="https://h/a.txt.zip")])
    file = find_in_opus("../x", None, ("en", "es"), api=f"{server.url}/opusapi/")
    assert "/" not in file.filename


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Answer(body=b'{"corpora": []}'), "OPUS has no NLLB for en-es .*zh_CN"),
        (Answer(body=b"<html>"), "the answer is not JSON"),
        (Answer(body=b"[]"), "the index of OPUS has changed"),
        (Answer(body=b'{"corpora": [{"corpus": "NLLB"}]}'), "the index of OPUS has changed"),
        (Answer(status=503), "the index of OPUS does not answer .*HTTP 503.*mtdata:OPUS-nllb-VERSION"),
        (Answer(status=404), "HTTP 404"),
    ],
)
def test_an_index_that_fails_says_what_to_do(server, reply, says):
    server.files["/opusapi/"] = b""
    server.script["/opusapi/?corpus=NLLB&source=en&target=es&preprocessing=moses&version=latest"] = [reply]
    with pytest.raises(DownloadError, match=says) as failed:
        corpora_for(("en", "es"), ["OPUS:NLLB"], api=f"{server.url}/opusapi/")
    assert "\n" not in str(failed.value)


# --- mtdata


def fake_mtdata(monkeypatch, entries):
    """Stands in for mtdata, whose index takes a minute to build."""

    class Tag(str):
        def is_compatible(self, other):
            return self[:2] == other[:2]

    class DatasetId(types.SimpleNamespace):
        @classmethod
        def parse(cls, text):
            group, name, version, *langs = text.split("-")
            return cls(group=group, name=name, version=version, langs=tuple(map(Tag, langs)), lang_str="-".join(langs))

        def __hash__(self):
            return hash(str(self))

        def __str__(self):
            return f"{self.group}-{self.name}-{self.version}-{self.lang_str}"

    def entry(did, **facts):
        did = DatasetId.parse(did)
        facts = {"ext": "zip", "cite": ("someone2020",), "in_paths": None, **facts}
        compatible = lambda pair: {str(code)[:2] for code in pair} == {code[:2] for code in did.langs}  # noqa: E731
        return did, types.SimpleNamespace(did=did, is_compatible=compatible, **facts)

    index = dict(entry(did, **facts) for did, facts in entries.items())
    modules = {
        "mtdata": types.ModuleType("mtdata"),
        "mtdata.entry": types.SimpleNamespace(DatasetId=DatasetId),
        "mtdata.index": types.SimpleNamespace(INDEX=index),
        "mtdata.iso": types.ModuleType("mtdata.iso"),
        "mtdata.iso.bcp47": types.SimpleNamespace(bcp47=Tag),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_names_of_mtdata(monkeypatch):
    url = "https://object.pouta.csc.fi/OPUS-NLLB/v1/moses/en-es.txt.zip"
    fake_mtdata(
        monkeypatch,
        {
            "OPUS-nllb-v1-eng-esp": {"url": url, "in_paths": ["*.en", "*.es_MX"]},
            "Statmt-x-1-eng-esp": {"url": ("https://a", "https://b")},
            "Statmt-t-1-eng-esp": {"url": "https://a/t.tsv.gz", "ext": "tsv.gz"},
        },
    )
    (file,) = corpora_for(("es", "en"), ["mtdata:OPUS-nllb-v1-eng-esp"], mirror="http://h")
    assert file.url == "http://h/OPUS-NLLB/v1/moses/en-es.txt.zip" and file.citation == "someone2020"
    assert (file.languages, file.pair) == (("es_MX", "en"), ("es", "en"))
    assert file.filename == "OPUS-nllb-v1-eng-esp.zip"
    (table,) = corpora_for(("es", "en"), ["mtdata:Statmt-t-1-eng-esp"])
    assert (table.languages, table.pair) == (("en", "es"), ("es", "en"))  # the order of its columns
    for name, error, says in (
        ("OPUS-nllb-v2-eng-esp", DownloadError, "not in its index"),
        ("Statmt-x-1-eng-esp", DownloadError, "it consists of several files"),
        ("junk", SettingsError, "no id of mtdata"),
    ):
        with pytest.raises(error, match=f"mtdata:{name}: .*{says}"):
            corpora_for(("en", "es"), [f"mtdata:{name}"])
    with pytest.raises(SettingsError, match="a corpus of eng-esp, but en-fr is wanted"):
        corpora_for(("en", "fr"), ["mtdata:OPUS-nllb-v1-eng-esp"])


def test_mtdata_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mtdata.entry", None)
    with pytest.raises(MissingExtraError, match=r'pip install "st_paragram\[mtdata\]"'):
        corpora_for(("en", "es"), ["mtdata:OPUS-nllb-v1-eng-spa"])


# --- the command


def run_script(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["get_corpora", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "data_prep" / "get_corpora.py"), run_name="__main__")
    return ended.value.code


def test_the_command_lists_and_fetches(tmp_path, server, monkeypatch, capsys, caplog):
    caplog.set_level(logging.INFO)
    assert run_script(monkeypatch, "--lang", "tr-es", "--list") == 0
    out = capsys.readouterr().out
    assert out.count("https://object.pouta.csc.fi/") == 7 and out.count("licence: ") == 4 and out.count("cite: ") == 4
    assert "OpenSubtitles v2018, at most 4,000,000 pairs used" in out
    server.files["/OPUS-Tanzil/v1/moses/en-es.txt.zip"] = opus_zip("Tanzil", "en", "es", [("a", "b")])
    options = ("--lang", "es", "--corpus", "Tanzil", "--mirror", server.url, "--folder", tmp_path / "raw")
    assert run_script(monkeypatch, *options) == 0
    out = capsys.readouterr().out
    assert "non-commercial" in out and "1 files fetched, 0 already downloaded" in out
    assert "Licence: translations of the Quran for non-commercial use" in caplog.text
    assert run_script(monkeypatch, *options) == 0
    assert "0 files fetched, 1 already downloaded" in capsys.readouterr().out
    server.files["/fasttext/supervised-models/lid.176.ftz"] = b"not the model"
    assert run_script(monkeypatch, "--sets", "lid", "--mirror", server.url, "--folder", tmp_path / "lid") == 1
    error = capsys.readouterr().err
    assert "2 of 2 files not fetched: lid 176 (" in error and "938,013 are known" in error and error.count("\n") < 3


def test_the_command_refuses_what_makes_no_sense(monkeypatch, capsys):
    for arguments, says in (
        ((), "nothing to fetch"),
        (("--corpus", "Tanzil"), "--corpus needs --lang"),
        (("--lang", "es-es"), "each once"),
        (("--sets", "x"), "unknown set x"),
    ):
        assert run_script(monkeypatch, *arguments) == 1
        assert says in capsys.readouterr().err


def test_sts_goes_its_own_way(monkeypatch, capsys, tmp_path):
    got = types.SimpleNamespace(written=(1,), kept=(), refused=("2012",))
    monkeypatch.setattr("st_paragram.tools.evaluation.sts.download.download_sts", lambda folder, accept: got)
    assert run_script(monkeypatch, "--sets", "sts", "--folder", tmp_path) == 1
    assert "Not fetched: 2012." in capsys.readouterr().out


def test_the_parser_of_the_command_loads_nothing_heavy():
    code = (
        "import argparse, sys; from st_paragram.cli import download; "
        "download.add_options(argparse.ArgumentParser()); "
        "sys.exit(any(f'st_paragram.tools.corpora.{name}' in sys.modules for name in ('resolve', 'fetching.download')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_what_is_known_of_a_dead_link_is_said(server, monkeypatch, capsys, tmp_path):
    assert run_script(monkeypatch, "--sets", "paranmt", "--mirror", server.url, "--folder", tmp_path) == 1
    captured = capsys.readouterr()
    assert "not there (HTTP 404 or 410)" in captured.err and "get para-nmt-50m.zip by hand" in captured.err
    assert "note: the address of the first scripts" in captured.out


def test_the_http_library_is_only_imported_for_a_request():
    code = "import sys, st_paragram.tools.evaluation.fetch, st_paragram.tools.corpora.resolve; "
    code += "sys.exit('httpcore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
