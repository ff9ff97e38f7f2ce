"""Aligning documents: the file written is that of `align` for each, whatever the interruptions."""

import gzip
from pathlib import Path

import pytest

from st_paragram import Encoder
from st_paragram.cli.main import main
from st_paragram.core.encoding.unit_embeddings import unit_embeddings
from st_paragram.errors import ParagramError
from st_paragram.tools.alignment import documents as module
from st_paragram.tools.alignment.align import align
from st_paragram.tools.alignment.documents import align_documents, read_list
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.margin import Margin

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
        for block in align(
            one, other, lambda texts: unit_embeddings(encoder, texts).vectors, settings
        ):
            sides = " ".join(one[i] for i in block.source), " ".join(other[j] for j in block.target)
            rows.append(f"{block.score:.6f}\t{sides[0]}\t{sides[1]}\n")
    return "".join(rows)


@pytest.mark.parametrize(
    "settings",
    [
        AlignmentSettings(),
        AlignmentSettings(2, Margin.RATIO, 0.9),
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

    def counting(*given):
        if len(done) == 2 and not (tmp_path / "again").exists():
            raise KeyboardInterrupt
        done.append(1)
        return align(*given)

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
            "a0.txt\tb0.txt.gz\nlong.txt\tlong.txt\n",
            r"row 2: 20,001 and 20,001 sentences are too many to align",
        ),
    ],
)
def test_bad_lists_and_documents_are_refused_before_any_work(
    listed, tmp_path, rows, message, monkeypatch
):
    folder = tmp_path / "in"
    (folder / "long.txt").write_text("ba\n" * 20_001)
    Path(listed).write_text(rows)
    monkeypatch.setattr(module, "align", lambda *_: 1 / 0)
    with pytest.raises(ParagramError, match=message) as error:
        align_documents(read_list(listed), tmp_path / "out.tsv", MODEL)
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
    settings = [
        "--margin",
        "distance",
        "--skip-below",
        0.3,
        "--neighbors",
        2,
        "--all",
        "--overwrite",
    ]
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
