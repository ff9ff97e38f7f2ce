"""Parallel texts and word lists of git repositories."""

import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import zipfile

import pytest

pytest.importorskip("translate", reason="needs translate-toolkit, of the extra catalogs")
pytest.importorskip("fluent.syntax", reason="needs fluent.syntax, of the extra catalogs")
import clones
import drop_test_text
import release_dialogues
import release_texts
import release_words

from st_paragram.errors import ParagramError

ANDROID = '<resources><string name="a">{}</string><string name="b">{}</string></resources>'
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "{}"\nmsgstr "{}"\n'
LESSON = """---
title: Text
---
# The first lesson
We learn **three** things. See [the site](https://a.org/x) for more.

```python
code = 1
```

| Name of it | What it does |
|---|---|
| `pump`, the first | It moves the water |
"""
LECCION = """---
title: Texto
---
# La primera lección
Aprendemos **tres** cosas. Vea [el sitio](https://a.org/x) para más.

```python
code = 1
```

| Su nombre es | Lo que hace |
|---|---|
| `pump`, la primera | Mueve el agua |
"""
FILES = {
    "app/res/values/strings.xml": ANDROID.format(
        "Open the &lt;b&gt;blue&lt;/b&gt; door", "You have %1$d messages"
    ),
    "app/res/values-es/strings.xml": ANDROID.format("Abre la puerta azul", "Tienes %1$d mensajes"),
    "app/res/values-ru/strings.xml": ANDROID.format("Open the red door", "У вас %1$d сообщений"),
    "lang/en.json": json.dumps({"a": {"b": "Close the old window", "c": "Two words"}}),
    "lang/es-ES.json": json.dumps({"a": {"c": "Dos palabras", "b": "Cierra la ventana vieja"}}),
    "po/es.po": PO.format("The bread is old", "El pan es viejo"),
    "ftl/en.ftl": "-brand = The Fox\na = { -brand } runs home\n    .title = This is a title\n",
    "ftl/es.ftl": (
        "-brand = El Zorro\na = { -brand } corre a casa\n    .title = Esto es un título\n"
    ),
    "docs/one/read.md": LESSON,
    "translations/es/docs/one/read.md": LECCION,
}
INDEX = """
[packages.one]
language = "es"
license = "https://creativecommons.org/licenses/by/3.0/"
source = "wns/open.tab"

[packages.two]
language = "es"
license = "http://www.cecill.info/licenses/Licence_CeCILL-C_V1-en.html"
source = "wns/closed.tab"
"""
CONFIG = """
sources:
  app: {from: "github.com/me/app@0000000", files: "app/res/values-{lang}/strings.xml"}
  catalogs:
    from: "github.com/me/app@0000000"
    files: ["lang/{lang}.json", "po/{lang}.po", "ftl/{lang}.ftl"]
  lessons:
    from: "github.com/me/app@0000000"
    files: "translations/{lang}/**/*.md"
    english: "**/*.md"
  names: {words: true, from: "github.com/me/app@0000000", files: "names/{lang}.json", keys: "name$"}
  omw: {words: true, from: "github.com/me/app@0000000"}
  wiktionary: {words: true, from: "github.com/me/app@0000000"}
  cc_cedict: {words: true, from: "CC-CEDICT"}
  fisher_4refs: {languages: [en], from: "github.com/me/app@0000000"}
"""


def zipped(files):
    """Return a ZIP archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return data.getvalue()


def repository(folder, files):
    """Make a git repository with one commit."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    user = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    for arguments in (["init", "-q"], ["add", "-A"], [*user, "commit", "-q", "-m", "Text"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True)


def run(script, folder, *arguments):
    """Run a script; return the rows of all files that it wrote."""
    clone = folder / "clones" / "me+app"
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=clone, capture_output=True, check=True, text=True
    ).stdout
    config = CONFIG.replace("me/app@0000000", f"me/app@{commit[:9]}")
    (folder / "release.yaml").write_text(config, encoding="utf-8")
    options = {
        "--repositories": folder / "clones",
        "--texts": folder / "texts",
        "--config": folder / "release.yaml",
    }
    sys.argv = ["script", *(str(word) for option in options.items() for word in option), *arguments]
    assert script.main() == 0
    files = sorted((folder / "texts").rglob("*.tsv"))
    return {
        f"{path.parent.name}/{path.stem}": path.read_text(encoding="utf-8").splitlines()
        for path in files
    }


def test_catalogs_and_lessons_become_rows(tmp_path, capsys):
    repository(tmp_path / "clones" / "me+app", FILES)
    assert run(release_texts, tmp_path, "--only", "app", "catalogs", "lessons") == {
        "es/app": ["Open the blue door\tAbre la puerta azul"],
        "es/catalogs": [
            "Close the old window\tCierra la ventana vieja",
            "The bread is old\tEl pan es viejo",
            "The Fox runs home\tEl Zorro corre a casa",
            "This is a title\tEsto es un título",
        ],
        "es/lessons": [
            "The first lesson\tLa primera lección",
            "We learn three things.\tAprendemos tres cosas.",
            "See the site for more.\tVea el sitio para más.",
            "Name of it\tSu nombre es",
            "What it does\tLo que hace",
            "pump, the first\tpump, la primera",
            "It moves the water\tMueve el agua",
        ],
    }
    assert capsys.readouterr().out.splitlines() == ["app: es 1", "catalogs: es 4", "lessons: es 7"]


def test_lines_that_one_file_lacks_do_not_shift_the_rest():
    english = "# One title\n\nThe cat sat on the mat.\n\nIt was 20 years old then.\n\n- an item\n"
    spanish = "# Un título\n\nTenía 20 años entonces.\n\n- un elemento\n"
    pairs = release_texts.document_pairs("read.md", english, spanish)
    assert pairs == [
        ("One title", "Un título"),
        ("It was 20 years old then.", "Tenía 20 años entonces."),
        ("an item", "un elemento"),
    ]
    assert release_texts.document_pairs("read.md", english, spanish, coverage=0.8) == pairs
    assert not release_texts.document_pairs("read.md", english, spanish, coverage=0.9)


def test_each_language_has_a_repository(tmp_path):
    origins = [clones.Repository(tmp_path, "0", name) for name in ("docs", "Docs.ko-KR", "docs.ja")]
    source = {"repositories": "docs.{lang}"}
    assert clones.origins_of(source, "ko", origins) == [(origins[0], origins[1])]
    assert clones.origins_of(source, "sr", origins) == []
    assert clones.origins_of({}, "ko", origins[:1]) == [(origins[0], origins[0])]
    # without a repository for English, each has its own English files
    assert clones.origins_of(source, "ko", origins[1:]) == [(origins[1], origins[1])]


def test_both_scripts_of_serbian_and_both_kinds_of_portuguese_are_read():
    paths = ["ar.json", "en.json", "pt-BR.json", "pt-PT.json", "pt.json", "sr-Latn.json", "sr.json"]
    source = {"files": "{lang}.json"}
    found = [path for _, path, _ in clones.path_pairs(source, "sr", paths, paths)]
    assert found == ["sr.json", "sr-Latn.json"]
    found = [path for _, path, _ in clones.path_pairs(source, "pt", paths, paths)]
    assert found == ["pt-BR.json", "pt.json"]


def test_a_part_of_a_path_may_differ_in_english():
    paths = ["a/en-09f.json", "a/en-GB-1c.json", "a/ko-77e.json"]
    source = {"files": "*/{lang}-#.json"}
    found = list(clones.path_pairs(source, "ko", paths, paths))
    assert found == [("a/en-09f.json", "a/ko-77e.json", "ko")]


def test_archives_in_packages_are_read_like_folders(tmp_path):
    with zipfile.ZipFile(tmp_path / "ko.xpi", "w") as archive:
        archive.writestr("menu/ko.ftl", "a = b\n")
    (tmp_path / "read.me").write_text("text")
    package = clones.Package(tmp_path)
    assert package.paths() == ["ko.xpi", "ko.xpi/menu/ko.ftl", "read.me"]
    assert package.read(package.paths()[1:]) == {
        "ko.xpi/menu/ko.ftl": b"a = b\n",
        "read.me": b"text",
    }


def test_formats_without_a_reader_in_translate_toolkit():
    texts = ["One", "둘"]
    encoded = [text.encode() for text in texts]
    starts = [30, 33, 36]
    entries = zip((7, 9, 0), starts, strict=True)
    table = b"".join(struct.pack("<HI", *entry) for entry in entries)
    pack = struct.pack("<IIHH", 5, 1, 2, 0) + table + b"".join(encoded)
    assert release_texts.read_units("ko.pak", pack, "ko") == {"7": ("", "One"), "9": ("", "둘")}
    assert release_texts.read_units("a.properties", b"# c\nb.c = Text here\n", "ko") == {
        "b.c": ("", "Text here")
    }
    assert release_texts.read_units("fin.txt", b"Go.\tMene.\tby me\n", "fi") == {
        "0": ("Go.", "Mene.")
    }
    assert release_texts.read_units("a.lang", b"## x ##\n# c\n;Go on\nWeiter {ok}\n", "de") == {
        "0": ("Go on", "Weiter")
    }
    archive = zipped({"_about.txt": "-", "fin.txt": "Go.\tMene.\n"})
    assert release_texts.read_units("fin-eng.zip", archive, "fi") == {"0": ("Go.", "Mene.")}
    game = 'translate fr a:\n\n    # e "Who?"\n    e "Qui ?"\n\n    old "Yes"\n    new "Oui"\n'
    assert release_texts.read_units("a.rpy", game.encode(), "fr") == {
        "0": ("Who?", "Qui ?"),
        "1": ("Yes", "Oui"),
    }
    treebank = b"# text = Hei\n1\tHei\n\n# text = Mene\n# text_en = Go.\n1\tMene\n\n"
    assert release_texts.read_units("fi.conllu", treebank, "fi") == {"1": ("Go.", "Mene")}
    assert release_texts.clean('A {{domxref("A.b", "b")}} of {{jsxref("C")}}') == "A b of C"
    assert release_texts.read_units("train.ja", "a b\n猫".encode(), "ja") == {
        "0": ("", "a b"),
        "1": ("", "猫"),
    }
    page = "<page><title>One &amp; two</title><p>Press <gui>OK</gui>\n now</p></page>"
    assert release_texts.markup_lines(page) == [("title", "One & two"), ("p", "Press OK now")]
    assert release_texts.joined_tokens("It is n't ( so ) .") == "It isn't (so)."
    assert release_texts.joined_tokens("猫 は 好き 。") == "猫は好き。"


def test_rows_near_test_sentences_are_dropped(tmp_path, capsys):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "news.tsv").write_text("3\tThe old man walked slowly down to the sea\n")
    rows = [
        "the old man walked slowly down to the sea!\ta",
        "We saw that the old man walked slowly down again\tb",  # 1 of 5 sequences
        "He saw the old man walked slowly down to the sea\tc",  # 4 of 6
        "A short row stays here\td",
    ]
    (tmp_path / "texts" / "es").mkdir(parents=True)
    path = tmp_path / "texts" / "es" / "one.tsv"
    path.write_text("".join(f"{row}\n" for row in rows))
    packed = tmp_path / "texts" / "es" / "two.tsv.xz"
    packed.write_bytes(lzma.compress(f"{rows[0]}\n{rows[3]}\n".encode()))
    sys.argv = ["x", "--texts", str(tmp_path / "texts"), "--tests", str(tmp_path / "tests")]
    sys.argv += ["--output", str(tmp_path / "new")]
    assert drop_test_text.main() == 0
    assert (tmp_path / "new/es/one.tsv").read_text().splitlines() == [rows[1], rows[3]]
    assert (tmp_path / "new/es/two.tsv").read_text().splitlines() == [rows[3]]
    assert path.read_text().splitlines() == rows  # the texts themselves stay
    assert capsys.readouterr().out == "es: 3 of 6 rows dropped\n"
    with pytest.raises(ParagramError, match="new exists; move it or choose another name"):
        drop_test_text.main()


def test_missing_repositories_and_commits_are_named(tmp_path):
    repository(tmp_path / "clones" / "me+app", {"es.po": ""})
    origins = {
        "gone": "github.com/you/gone@0000000",
        "app": "github.com/me/app@0000000",
        "pack": "Debian some-l10n 1:2.0-1",
    }
    with pytest.raises(ParagramError) as error:
        clones.open_origins(tmp_path / "clones", origins)
    assert str(error.value).splitlines()[1:] == [
        f"git clone https://github.com/you/gone {tmp_path}/clones/you+gone",
        f"git --git-dir {tmp_path}/clones/me+app/.git fetch  # for 0000000",
        f"apt-get download some-l10n=1:2.0-1  # and unpack it in {tmp_path}/clones/some-l10n",
    ]


def test_words_of_dictionaries_wordnets_and_names(tmp_path):
    dictionary = (
        '#NAME "x"\n\nhouse\n\t[b]~[/b] [i](building)[/i]\n\t[m1]casa [p]<f>[/p], \\[rare\\] morada'
        " (old)[/m]\n"
    )
    names = {
        "en": {"en": {"x": {"name": "Red Sea", "id": "one"}}},
        "es": {"es": {"x": {"name": "Mar Rojo", "id": "a"}}},
    }
    wordnet, cedict = tmp_path / "wordnet", tmp_path / "cedict.gz"
    files = {
        "dsl/oneway/en-es-enwiktionary.dsl.dz": gzip.compress(dictionary.encode("utf-16")),
        "index.toml": INDEX,
        "wns/open.tab": "# open\n00000001-n\tspa:lemma\tsala\n",
        "wns/closed.tab": "# closed\n00000001-n\tspa:lemma\taula\n",
        "wns/wikt/wn-wikt-spa.tab": "# wikt\tspa\n00000001-n\tspa:lemma\tsala_grande\n",
        **{f"names/{code}.json": json.dumps(content) for code, content in names.items()},
    }
    repository(tmp_path / "clones" / "me+app", files)
    wordnet.mkdir()
    for part in ("noun", "verb", "adj", "adv"):
        line = "00000001 06 n 02 large_room 0 hall(a) 0 001 @ | a room\n" if part == "noun" else ""
        (wordnet / f"data.{part}").write_text(f"  1 license\n{line}")
    cedict.write_bytes(gzip.compress("# CC\n貓 猫 [mao1] /cat (CL:隻|只[zhi1])/CL:x/\n".encode()))
    rows = run(release_words, tmp_path, "--wordnet", str(wordnet), "--cedict", str(cedict))
    assert rows == {
        "es/names": ["Red Sea\tMar Rojo"],
        "es/omw": [
            "large room\tsala",
            "hall\tsala",
            "large room\tsala grande",
            "hall\tsala grande",
        ],
        "es/wiktionary": ["house\tcasa", "house\tmorada"],
        "zh/cc_cedict": ["cat\t猫"],
    }


def test_stories_are_aligned_by_page_and_verses_by_number():
    english = "##\nA cat sat.\n##\nIt ran.\n##\nThe end.\n##\n* License: [CC-BY]\n"
    swahili = "##\nPaka aliketi.\n##\nAlikimbia.\n##\nMwisho.\n##\n* License: [CC-BY]\n"
    pairs = release_texts.document_pairs("0001_cat.md", english, swahili)
    stripped = [(one.strip(), other.strip()) for one, other in pairs]
    assert stripped[1:3] == [("A cat sat.", "Paka aliketi."), ("It ran.", "Alikimbia.")]
    closed = swahili.replace("[CC-BY]", "[CC-BY-NC]")
    assert release_texts.document_pairs("0001_cat.md", english, closed) == []
    assert release_texts.document_pairs("0001_cat.md", english, swahili + "##\nMore.\n") == []

    book = (
        '\\id GEN\n\\c 1\n\\s1 A heading\n\\v 1 In the \\w beginning|x="1"\\w* God\n\\q made it.'
        "\\f + \\ft A note.\\f*\n\\v 2-3 Two verses.\n\\c 2\n\\v 1 And then.\n"
    )
    assert release_texts.read_units("01-GEN.usfm", book.encode(), "en") == {
        "1:1": ("", "In the beginning God made it."),
        "2:1": ("", "And then."),
    }

    usfx = '<book id="JHN"><h>x</h><c id="1"/><v id="1"/>太初<f>n</f>有道，<ve/></book>'
    osis = '<verse sID="John.1.1" n="1" />In the <w>beginning</w>.<verse eID="John.1.1" />'
    assert release_texts.read_units("a.usfx.xml", usfx.encode(), "zh") == {
        "jhn:1:1": ("", "太初有道，")
    }
    assert release_texts.read_units("a.osis.xml", osis.encode(), "en") == {
        "jhn:1:1": ("", "In the beginning.")
    }


class Files(clones.Repository):
    """Files in memory."""

    def __new__(cls, files):
        origin = super().__new__(cls, None, "")
        origin.files = files
        return origin

    def paths(self):
        return list(self.files)

    def read(self, paths):
        texts = {path: self.files[path] for path in paths}
        return {
            path: text if isinstance(text, bytes) else text.encode() for path, text in texts.items()
        }


def test_translations_of_questions_are_found_in_two_files():
    questions = [
        "Is it on?",
        "Why does my card not work at all today?",
        "Where?",
        "Does it cost 5?",
    ]
    rows = [f'"{text}",card' for text in questions] + ['"Go on",last', '"Go",last']
    english = "\n".join(["text,category", *rows])
    intents = "label_en,label_ar\ncard,بطاقة\nlast,نهاية\n"
    short, long, where, number = (
        "هل يعمل؟",
        "لماذا لا تعمل بطاقتي على الإطلاق اليوم؟",
        "أين؟",
        "كم 5؟",
    )
    header = "label,text\n"
    files = {
        "data/Banking77_intents.csv": intents,
        "data/Banking77_Arabized_MSA_PAL_train.csv": header
        + f"بطاقة,{short}\nبطاقة,{where}\nبطاقة,{number}\nنهاية,تابع\n",
        "data/Banking77_Arabized_MSA_PAL_val.csv": header + f"بطاقة,{long}\n",
        **{
            f"data/Banking77_Arabized_{name}_test.csv": f"{header}بطاقة,{name}\n"
            for name in ("MSA", "PAL", "Saudi")
        },
    }
    banking = {
        "banking_data/train.csv": english,
        "banking_data/test.csv": "text,category\nHow is it?,card\n",
    }
    pairs = list(release_dialogues.arbanking77([Files(files), Files(banking)], "ar"))
    assert pairs == [
        *zip(questions, [short, long, where, number], strict=True),
        *(("How is it?", name) for name in ("MSA", "PAL", "Saudi")),
    ]


def test_turns_of_dialogues_are_split_into_sentences():
    english = {"1": {"log": [{"text": "Hello . I 'd like a room ."}, {"text": "Sure ."}]}}
    chinese = {"1": {"log": [{"text": "你好。我要一个房间。"}, {"text": "好的。"}]}}
    crosswoz = {"2": {"messages": [{"content": "Where is it?"}]}}
    files = {
        "data/multiwoz/val.json.zip": zipped({"val.json": json.dumps(english)}),
        "data/multiwoz_zh/human_val.json.zip": zipped({"val.json": json.dumps(chinese)}),
        "data/crosswoz_en/human_val.json.zip": zipped({"val.json": json.dumps(crosswoz)}),
        "data/crosswoz/val.json.zip": zipped(
            {
                "val.json": json.dumps(
                    {"2": {"messages": [{"content": "它在哪里？"}]}, "3": {"messages": []}}
                )
            }
        ),
    }
    assert list(release_dialogues.woz_human_val([Files(files)], "zh")) == [
        ("Where is it?", "它在哪里？"),
        ("Hello.", "你好。"),
        ("I'd like a room.", "我要一个房间。"),
        ("Sure.", "好的。"),
    ]
    # after the second dialogue, the Russian file lacks a turn
    files = {
        "interim/v1/english/a.txt": "A [red] bus.\nYes.\n\n\nNo.\nNever.\n",
        "interim/v1/russian/a_ru.txt": "[Красный] автобус.\nДа.\n\n\nНикогда.",
    }
    assert list(release_dialogues.russian_multiwoz([Files(files)], "ru")) == [
        ("A red bus.", "Красный автобус."),
        ("Yes.", "Да."),
    ]


def test_speakers_of_both_languages_and_the_correct_spelling():
    turns = [
        {"language": "english", "original_text": "Hi", "normalised_version": "Hi."},
        {"language": "french", "original_text": "Ça va ?", "normalised_version": ""},
    ]
    for turn, translation in zip(turns, ["Salut.", "All well?"], strict=True):
        turn["reference_translation"] = translation
    dialogue = {"utterances": dict(enumerate(turns))}
    files = Files({"README.md": "x", "DiaBLa-corpus/dialogues/a.json": json.dumps(dialogue)})
    assert list(release_dialogues.diabla_dialogue([files], "fr")) == [
        ("Hi.", "Salut."),
        ("All well?", "Ça va ?"),
    ]


def test_dialogues_without_a_translation_are_skipped():
    long, short = "i live by the sea with my five old dogs .", "i am 9 ."
    english = [
        {"persona": [short], "dialogue": [[short, short]]},
        {"persona": [long], "dialogue": [[long, short]]},
    ]
    french = [{"persona": ["je vis à la mer avec mes cinq vieux chiens."]}]
    french[0]["dialogue"] = [[french[0]["persona"][0], "j'ai 9 ans."]]
    files = {"dataset/En_persona_test.json": json.dumps(english)}
    for split in ("valid", "test"):
        path = f"dataset/Fr_persona_split_{split}_human_annotated.json"
        files[path] = json.dumps(french)
    pairs = list(release_dialogues.xpersona([Files(files)], "fr"))
    assert pairs[:3] == pairs[3:]
    assert pairs[:3] == [
        ("i live by the sea with my five old dogs.", "je vis à la mer avec mes cinq vieux chiens."),
        ("i live by the sea with my five old dogs.", "je vis à la mer avec mes cinq vieux chiens."),
        ("i am 9.", "j'ai 9 ans."),
    ]


def test_english_sentences_with_the_same_meaning():
    calls = {
        f"corpus/ldc/fisher_{name}.en.{number}": f"{name} {number}"
        for name in ("dev", "dev2", "test")
        for number in range(4)
    }
    pairs = list(release_dialogues.fisher_4refs([Files(calls)], "en"))
    assert pairs[:3] == [("dev 0", "dev 1"), ("dev 0", "dev 2"), ("dev 0", "dev 3")]
    assert len(pairs) == 18
    files = {
        "a.en": "I am a boy.\nGo home now.\nI'm a child.",
        "a.tr": "Ben çocuğum.\nEve git.\nBen çocuğum.",
    }
    sources = {
        name: {"languages": ["tr"], "files": "a.{lang}"} for name in release_dialogues.TATOEBA
    }
    origins = {name: [Files(files)] for name in sources}
    assert list(release_dialogues.pivot_tatoeba(sources, origins)) == [
        ("I am a boy.", "I'm a child.")
    ]


def test_lessons_have_all_languages_in_a_file():
    level = {
        "name": {"en_US": "Commits", "de_DE": "Commits", "fr_FR": "Les commits"},
        "startDialog": {
            "en_US": {"childViews": [{"type": "A", "options": {"markdowns": ["# One", "Two"]}}]},
            "fr_FR": {"childViews": [{"type": "A", "options": {"markdowns": ["# Un", "Deux"]}}]},
        },
    }
    files = {
        "src/levels/a.js": f"exports.level = {json.dumps(level)};",
        "src/levels/b.js": "exports.level = { a: b };",
        "src/js/c.js": "x",
    }
    assert list(release_dialogues.learn_git_branching([Files(files)], "fr")) == [
        ("Commits", "Les commits"),
        ("# One", "# Un"),
        ("Two", "Deux"),
    ]


def test_texts_with_formats_of_their_own_are_written(tmp_path, capsys):
    calls = {
        f"corpus/ldc/fisher_{name}.en.{number}": f"My {name} is {word}\n"
        for name in ("dev", "dev2", "test")
        for number, word in enumerate(["here", "there", "away", "home"])
    }
    repository(tmp_path / "clones" / "me+app", calls)
    rows = run(release_dialogues, tmp_path)
    assert list(rows) == ["en/fisher_4refs"]
    assert len(rows["en/fisher_4refs"]) == 18
    with pytest.raises(ParagramError, match="no source 'app' of this script"):
        run(release_dialogues, tmp_path, "--only", "app")
