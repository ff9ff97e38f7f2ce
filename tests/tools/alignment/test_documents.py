"""Aligning documents: the file written is that of `align` for each, whatever the interruptions."""

import gzip
import sys
from pathlib import Path
from types import ModuleType

import pytest

from st_paragram import Encoder
from st_paragram.cli.main import main
from st_paragram.errors import ParagramError
from st_paragram.tools.alignment import documents as module
from st_paragram.tools.alignment.align import align
from st_paragram.tools.alignment.documents import align_documents, read_list
from st_paragram.tools.alignment.settings import AlignmentSettings

MODEL, SIZES = "p-sp-mini", (12, 1, 7, 25)


@pytest.fixture
def listed(tmp_path, pairs):
    """Four pairs of documents, some compressed, with blank lines, and their list."""
    folder = tmp_path / "in"
    folder.mkdir()
    begin, rows = 0, []
    for number, size in enumerate(SIZES):
        chosen = pairs[begin : begin + size]
        begin += size
        texts = ["".join(f"{line}\n" for line in side) for side in zip(*chosen, strict=True)]
        (folder / f"a{number}.txt").write_text(
            texts[0].replace("\n", "\n\n", 1), encoding="utf-8", newline="\n"
        )
        (folder / f"b{number}.txt.gz").write_bytes(gzip.compress(texts[1].encode()))
        rows.append(f"a{number}.txt\tb{number}.txt.gz")
    rows.insert(2, rows[0])  # a pair may be named twice
    path = folder / "list.tsv"
    path.write_text("\n".join([rows[0], "", *rows[1:]]) + "\n")
    return str(path)


def expected(listed, settings):
    """What the output should be, straight from the function."""
    encoder, rows = Encoder(MODEL), []
    for source, target, _ in read_list(listed):
        one = Path(source).read_text(encoding="utf-8").split("\n")
        other = gzip.decompress(Path(target).read_bytes()).decode().split("\n")
        for block in align(one, other, encoder, settings):
            sides = " ".join(one[i] for i in block.source), " ".join(other[j] for j in block.target)
            rows.append(f"{block.score:.6f}\t{sides[0]}\t{sides[1]}\n")
    return "".join(rows)


@pytest.mark.parametrize(
    "settings",
    [
        AlignmentSettings(),
        AlignmentSettings(max_sentences=2, skip_cost=0.3, neighbors=2),
        AlignmentSettings(with_skipped=True),
    ],
)
def test_results_stand_in_the_order_of_the_list(listed, tmp_path, settings):
    output = tmp_path / "out.tsv"
    report = align_documents(read_list(listed), output, MODEL, settings)
    assert output.read_text(encoding="utf-8") == expected(listed, settings)
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").split("\n")[:-1]]
    assert report.pairs == sum(bool(one and other) for _, one, other in rows) > 10
    assert (report.documents, report.source, report.target) == (5, sum(SIZES) + 12, sum(SIZES) + 12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out.tsv"]


def test_an_interrupted_run_goes_on(listed, tmp_path, monkeypatch):
    output, done = tmp_path / "out.tsv", []

    def counting(*given, **options):
        if len(done) == 2 and not (tmp_path / "again").exists():
            raise KeyboardInterrupt
        done.append(1)
        return align(*given, **options)

    monkeypatch.setattr(module, "align", counting)
    with pytest.raises(KeyboardInterrupt):
        align_documents(read_list(listed), output, MODEL)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".out.tsv.work", "in"]
    (tmp_path / "again").touch()
    align_documents(read_list(listed), output, MODEL)
    assert len(done) == 4  # of five pairs, one is named twice
    assert output.read_text(encoding="utf-8") == expected(listed, AlignmentSettings())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "in", "out.tsv"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a0.txt\tb0.txt.gz\na1.txt\tb1.txt.gz\tx\n", "row 2 is .* two names and a tab"),
        ("\n \n", "no documents"),
        (
            "a0.txt\tb0.txt.gz\n\nnone.txt\tb1.txt.gz\n",
            r"list\.tsv, row 3: .*none\.txt: No such file",
        ),
        (
            "a0.txt\tb0.txt.gz\nparts.txt\tb0.txt.gz\n",
            r"row 2: the source has 2 sections, the target 1 section; write as many lines '---'",
        ),
        (
            "boundary.txt\tb0.txt.gz\n",
            "row 1: .*boundary.txt: empty; give a document with at least",
        ),
        ("a0.txt\tb0.txt.gz\n", "no document has a line '---'; correct it, or leave out --bound"),
    ],
)
def test_bad_lists_and_documents_are_refused_before_any_work(
    listed, tmp_path, rows, message, monkeypatch
):
    folder = tmp_path / "in"
    (folder / "parts.txt").write_text("ba\n---\nba\n")
    (folder / "boundary.txt").write_text("---\n")
    Path(listed).write_text(rows)
    monkeypatch.setattr(module, "align", lambda *_, **__: 1 / 0)
    with pytest.raises(ParagramError, match=message) as error:
        align_documents(
            read_list(listed), tmp_path / "out.tsv", MODEL, AlignmentSettings(boundary="---")
        )
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_command(listed, tmp_path, capsys):
    def command(*arguments):
        return main(
            ["align", "--model", MODEL, "--output", str(tmp_path / "out.tsv"), *map(str, arguments)]
        )

    assert command("--documents", listed) == 0
    assert "from 5 pairs of documents with 57 and 57 sentences" in capsys.readouterr().err
    one = ["--source", tmp_path / "in" / "a0.txt", "--target", tmp_path / "in" / "b0.txt.gz"]
    settings = ["--max-sentences", 2, "--skip-cost", 0.3, "--neighbors", 2, "--all", "--overwrite"]
    assert command(*one, *settings) == 0
    assert "from 1 pair of documents with" in capsys.readouterr().err
    rows = [
        line.split("\t")
        for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    ]
    assert any(not other for _, _, other in rows)
    for wrong in (one[:2], [*one, "--documents", listed], one[1:]):
        assert command(*wrong, "--overwrite") == 1
        assert (
            "give --source FILE and --target FILE, or --documents FILE, and --output FILE"
            in capsys.readouterr().err
        )


def test_numbers_of_sentences_are_written(listed, tmp_path):
    source, target, _ = read_list(listed)[0]
    output = tmp_path / "out.tsv"
    align_documents([(source, target, "")], output, MODEL, indices=True)
    first = Path(source).read_text(encoding="utf-8").split("\n")
    second = gzip.decompress(Path(target).read_bytes()).decode().split("\n")
    blocks = align(first, second, Encoder(MODEL))
    rows = []
    for block in blocks:
        sides = [",".join(map(str, side)) for side in (block.source, block.target)]
        rows.append(f"{block.score:.6f}\t{sides[0]}\t{sides[1]}\n")
    assert output.read_text() == "".join(rows) and blocks[1].source[0] == 2  # row 1 is blank


def test_lines_are_split_into_sentences(tmp_path, monkeypatch, capsys):
    module = ModuleType("sentencex")
    module.segment = lambda language, text: {
        ("en", "A house. It is old."): ["A house. ", "It is old."],
        ("es", "Una casa. Es vieja."): ["Una casa. ", "Es vieja."],
    }[language, text]
    monkeypatch.setitem(sys.modules, "sentencex", module)
    (tmp_path / "a").write_text("A house.  It is old.\n.EOA\n")
    (tmp_path / "b").write_text("Una casa. Es vieja.\n.EOA\n")
    command = ["align", "--source", str(tmp_path / "a"), "--target", str(tmp_path / "b"), "--split"]
    command += ["--pair", "en", "es", "--boundary", ".EOA", "--model", MODEL]
    output = tmp_path / "out.tsv"
    assert main([*command, "--output", str(output), "--max-sentences", "1"]) == 0
    rows = [line.split("\t")[1:] for line in output.read_text().splitlines()]
    assert rows == [["A house.", "Una casa."], ["It is old.", "Es vieja."]]
    memory = tmp_path / "out.tmx"
    assert main([*command, "--output", str(memory), "--max-sentences", "1"]) == 0
    assert memory.read_text().count("<seg>") == 4
    assert main([*command, "--indices", "--output", str(tmp_path / "indices.tmx")]) == 1
    assert "TMX has texts instead of indices" in capsys.readouterr().err
    unnamed = [word for word in command if word not in ("--pair", "en", "es")]
    assert main([*unnamed, "--output", str(tmp_path / "unnamed.tsv")]) == 1
    assert "--split needs the languages of both sides" in capsys.readouterr().err
    german = ["german" if word == "en" else word for word in command]
    assert main([*german, "--output", str(tmp_path / "german.tsv")]) == 1
    assert "unknown language code 'german'; did you mean de?" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "sentencex", None)
    capsys.readouterr()
    assert main([*command, "--output", str(tmp_path / "new.tsv")]) == 1
    message = capsys.readouterr().err
    assert "--split needs sentencex" in message and 'pip install "st_paragram[split]"' in message


def test_the_library_splits_lines_in_many_languages(tmp_path):
    pytest.importorskip("sentencex")
    path = tmp_path / "a"
    path.write_text("Dr. Müller kam am 3. Mai an. Er ging.\n---\n", encoding="utf-8")
    sentences = module._sentences(str(path), "---", "de")
    assert sentences == ["Dr. Müller kam am 3. Mai an.", "Er ging.", "---"]
