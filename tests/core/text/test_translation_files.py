"""Translation memories and XLIFF: texts, languages, and files that are refused."""

from __future__ import annotations

import gzip
import lzma
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from st_paragram.cli.main import main
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import (
    TextSource,
    parse_source,
    read_pairs,
    source_of,
    with_columns,
)
from st_paragram.core.text.translation_files import TmxWriter, read_units
from st_paragram.errors import SettingsError, TextError
from st_paragram.tools.bitext_mining.threshold import read_labels

TMX = """<?xml version="1.0" encoding="{encoding}"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header creationtool="x" srclang="en-US" datatype="plaintext"/><body>
<tu tuid="1"><note>a house</note>
 <tuv xml:lang="en-US"><prop type="x">1</prop>
 <seg>A <hi type="b">red</hi> house &amp; a dog</seg></tuv>
 <tuv xml:lang="ES-es"><seg>Una casa
   <bpt i="1">&lt;b&gt;</bpt>roja<ept i="1">&lt;/b&gt;</ept>
 y un<ph x="1">{{0}}</ph> perro</seg></tuv>
 <tuv xml:lang="de"><seg>Ein rotes Haus</seg></tuv></tu>
<tu><tuv xml:lang="en-GB"><seg>Untranslated</seg></tuv></tu>
<tu><tuv xml:lang="de"><seg>Nur Deutsch</seg></tuv><tuv xml:lang="fr"><seg>Seul</seg></tuv></tu>
<tu><tuv lang="es"><seg>Hola</seg></tuv><tuv lang="en"><seg>Hello</seg></tuv></tu>
</body></tmx>
"""
XLIFF_1 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
<file source-language="en" target-language="es-MX"><body>
<trans-unit id="1"><source>Save <g id="1">the file</g><x id="2"/></source>
 <seg-source><mrk mtype="seg">Save</mrk></seg-source>
 <target>Guardar <g id="1">el archivo</g></target>
 <alt-trans><source>Other</source><target>Otro</target></alt-trans></trans-unit>
<group><trans-unit id="2"><source>Close</source></trans-unit></group>
</body></file></xliff>
"""
XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"
 trgLang="es"><file id="f"><unit id="u">
<segment><source>One <pc id="1">cat</pc><ph id="2"/></source>
<target>Un <pc id="1">gato</pc></target>
</segment><segment><source>Two</source><target>Dos</target></segment></unit></file></xliff>
"""
PAIRS = [
    ("A red house & a dog", "Una casa roja y un perro"),
    ("Untranslated", ""),
    ("Hello", "Hola"),
]


def units(path: Path, *languages: str) -> list[tuple[str, str]]:
    first, second = languages or ("en", "es")
    return list(read_units(str(path), (first, second)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_units_of_a_memory(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(TMX.format(encoding=encoding), encoding=encoding)
    assert units(path) == PAIRS
    assert units(path, "es_es", "en") == [(b, a) for a, b in PAIRS]
    assert units(path, "fr", "de") == [("", "Ein rotes Haus"), ("Seul", "Nur Deutsch")]
    with pytest.raises(
        TextError, match=r"no unit in it or nl \(its languages are en-US, ES-es, de"
    ):
        units(path, "it", "nl")


def test_units_of_xliff(tmp_path: Path) -> None:
    (tmp_path / "a.xlf").write_text(XLIFF_1, encoding="utf-8")
    assert units(tmp_path / "a.xlf") == [("Save the file", "Guardar el archivo"), ("Close", "")]
    (tmp_path / "b.xliff").write_text(XLIFF_2, encoding="utf-8")
    assert units(tmp_path / "b.xliff") == [("One cat", "Un gato"), ("Two", "Dos")]


def test_elements_of_xliff_name_their_languages(tmp_path: Path) -> None:
    path = tmp_path / "a.xlf"
    text = XLIFF_1.replace('target-language="es-MX"', "")
    path.write_text(text.replace("<target>", '<target xml:lang="es">'), encoding="utf-8")
    assert units(path)[0] == ("Save the file", "Guardar el archivo")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_memories_that_are_cut_are_refused(pack, tmp_path: Path) -> None:
    path = tmp_path / f"a.tmx.{'gz' if pack is gzip.compress else 'xz'}"
    path.write_bytes(pack(TMX.format(encoding="utf-8").encode())[:-30])
    with pytest.raises(TextError, match=r"cannot be read as XML \(Compressed file ended"):
        units(path)


def test_memories_in_other_places_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("memory.tmx", TMX.format(encoding="utf-8"))
    with pytest.raises(TextError, match=r"a.zip:memory.tmx: is XML, not text; save a translation"):
        list(read_pairs(parse_source(str(path), ("en", "es"))))
    with pytest.raises(TextError, match="is a translation file"):
        list(read_pairs(TextSource(("a.tmx", "b.tmx"), ("en", "es"))))
    with pytest.raises(TextError, match="is a translation file"):
        read_labels("a.tmx")
    with pytest.raises(SettingsError, match=r"needs its languages; write for example en-es:a\.xlf"):
        source_of("a.xlf")


def test_a_memory_is_parallel_text(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    text = TMX.format(encoding="utf-8").encode()
    Path("memory.tmx.gz").write_bytes(gzip.compress(text))
    assert list(read_pairs(parse_source("memory.tmx.gz", ("en", "es")))) == PAIRS
    assert list(read_pairs(parse_source("es-en:memory.tmx.gz", ("en", "es")))) == PAIRS
    with pytest.raises(SettingsError, match="languages instead of columns"):
        with_columns([parse_source("memory.tmx.gz", ("en", "es"))], [["a", "b"]])
    units_of_memory = [
        f'<tu><tuv xml:lang="en"><seg>a house {n} b</seg></tuv>'
        f'<tuv xml:lang="es"><seg>una casa {n} b</seg></tuv></tu>'
        for n in range(300)
    ]
    Path("large.tmx").write_text(f"<tmx><body>{''.join(units_of_memory)}</body></tmx>")
    prepare = ["prepare", "--lang", "es", "--text", "large.tmx", "--vocab-size", "60"]
    assert main([*prepare, "--output", "s.h5"]) == 0
    assert len(PairStore("s.h5")) == 300
    capsys.readouterr()
    assert main(["embed", "large.tmx", "--output", "x.npy"]) == 1
    assert "large.tmx: is a translation file, but text is expected" in capsys.readouterr().err
    advice = "clean large.tmx --pair en es --output pairs.tsv"
    assert main(advice.split()) == 0
    assert main(["embed", "pairs.tsv", "--columns", "1", "--output", "x.npy"]) == 0


BOMB = """<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]>
<tmx><body><tu><tuv xml:lang="en"><seg>&b;</seg></tuv></tu></body></tmx>"""
EXTERNAL = """<?xml version="1.0"?><!DOCTYPE tmx [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<tmx><body><tu><tuv xml:lang="en"><seg>&a;</seg></tuv></tu></body></tmx>"""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, r"cannot be read as XML \(EntitiesForbidden.*without declared entities"),
        (EXTERNAL, r"cannot be read as XML \(EntitiesForbidden"),
        (
            TMX.format(encoding="utf-8")[:400],
            r"cannot be read as XML \(no element found: line \d+, column \d+\)",
        ),
        ("no xml", r"cannot be read as XML \(syntax error: line 1"),
        ("", "cannot be read as XML"),
        ("<tmx>" + "<a>" * 1000 + "</a>" * 1000 + "</tmx>", "nested more than 100 levels"),
        ("<tmx><body><tu><tuv><seg>x</seg></tuv></tu></body></tmx>", "languages are none"),
        ("<tu/>", "languages are none"),
        ('<?xml version="1.0" encoding="klingon"?><tmx/>', "unknown encoding"),
        ('<?xml version="1.0" encoding="big5"?><tmx/>', "multi-byte encodings are not supported"),
        (
            TMX.format(encoding="utf-8").replace('"es"', '"it"').replace("ES-es", "it"),
            "unit in es ",
        ),
    ],
)
def test_refused(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.tmx"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TextError, match=message) as error:
        units(path)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))


@pytest.mark.parametrize(
    ("languages", "tags"),
    [
        (("en", "es_es"), ("en", "es-ES")),
        (("zh_cn", "sr_latn"), ("zh-CN", "sr-Latn")),
        (('"', "<"), ('"', "<")),
    ],
)
def test_pairs_are_written_as_a_memory(
    languages: tuple[str, str], tags: tuple[str, str], tmp_path: Path
) -> None:
    pairs = [
        ("a < b & c > d", "x\u2028 \U0001f600 é"),
        ("]]> \x0b\ud800\uffff", "z"),
        ("", "left out"),
    ]
    path = tmp_path / "memory.tmx"
    with path.open("wb") as file:
        writer = TmxWriter(file, languages)
        for first, second in pairs:
            writer.write(first, second, score=0.25)
        writer.close()
    read = [pairs[0], ("]]> \ufffd\ufffd\ufffd", "z")]
    assert list(read_units(str(path), tags)) == read
    root = ElementTree.parse(path).getroot()
    assert (root.tag, root.get("version")) == ("tmx", "1.4")
    header = root.find("header")
    assert header is not None and header.get("srclang") == tags[0]
    needed = {"creationtool", "creationtoolversion", "segtype", "o-tmf", "adminlang", "datatype"}
    assert needed < header.attrib.keys()
    assert [prop.text for prop in root.iter("prop")] == ["0.250000"] * 2
