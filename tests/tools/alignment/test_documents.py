import gzip
import lzma

import numpy as np
import pytest
import torch

from st_paragram.errors import MiningError, ParagramError, SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.alignment import document_stage
from st_paragram.tools.alignment.alignment import align
from st_paragram.tools.alignment.document_list import DocumentPair, read_list
from st_paragram.tools.alignment.document_stage import DocumentStage, mine_pair
from st_paragram.tools.alignment.documents import mine_documents
from st_paragram.tools.alignment.settings import AlignmentSettings
from st_paragram.tools.bitext_mining.candidates import Candidates, candidate_pairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search.nearest import nearest_neighbours
from st_paragram.tools.stages.metadata import metadata_file
from st_paragram.tools.stages.work import Work


@pytest.fixture(scope="module")
def model(vocabulary, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m"
    torch.manual_seed(0)
    model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 8), device="cpu"), path)
    return path


@pytest.fixture
def embed(model):
    encoder = model_directory.load(model)
    return lambda texts: encoder.encode(list(texts), show_progress_bar=False)


SIZES = (12, 1, 7, 25)


@pytest.fixture
def documents(tmp_path, pairs):
    """Four pairs of documents, some compressed, with blank lines, and their list."""
    folder = tmp_path / "in"
    folder.mkdir()
    begin, rows = 0, []
    for number, size in enumerate(SIZES):
        chosen = pairs[begin : begin + size]
        begin += size
        names = f"a{number}.txt", f"b{number}.txt.gz"
        texts = ["".join(f"{line}\n" for line in side) for side in zip(*chosen, strict=True)]
        (folder / names[0]).write_text(texts[0].replace("\n", "\n\n", 1), encoding="utf-8", newline="\n")
        (folder / names[1]).write_bytes(gzip.compress(texts[1].encode()))
        rows.append("\t".join(names))
    rows.insert(2, rows[0])  # a pair may be named twice
    path = folder / "list.tsv"
    path.write_text("\n".join([rows[0], "", *rows[1:]]) + "\n")
    return path


def lines(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if str(path).endswith("gz") else open(path, encoding="utf-8")  # noqa: PTH123, SIM115
    with opened as file:
        return file.read().split("\n")


def expected(listed, embed, settings):
    """What the output should be, straight from the functions."""
    rows = []
    for pair in read_list(str(listed)):
        source, target = lines(pair.source), lines(pair.target)
        if isinstance(settings, MiningSettings):
            rows += mine_pair(source, target, embed, settings)
        else:
            blocks = align(source, target, embed, settings)
            rows += [
                (b.score, " ".join(source[i] for i in b.source), " ".join(target[j] for j in b.target)) for b in blocks
            ]
    return "".join(f"{score:.6f}\t{one}\t{other}\n" for score, one, other in rows)


ALL_SETTINGS = [
    AlignmentSettings(),
    AlignmentSettings(Margin.DISTANCE, 2, -0.1, with_skipped=True),
    MiningSettings(),
    MiningSettings(k=2, margin=Margin.ABSOLUTE, candidates=Candidates.INTERSECTION, threshold=0.2),
]


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_results_stand_in_the_order_of_the_list(model, embed, documents, tmp_path, settings):
    output = tmp_path / "out.tsv"
    report = mine_documents(documents, output, model, settings)
    assert output.read_text(encoding="utf-8") == expected(documents, embed, settings)
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").split("\n")[:-1]]
    assert {len(row) for row in rows} == {3}
    assert report.pairs == sum(bool(one and other) for _, one, other in rows) > 10
    assert (report.documents, report.source, report.target) == (5, sum(SIZES) + 12, sum(SIZES) + 12)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out.tsv"]


class Backwards:
    """Does the last task first."""

    workers = 1

    def run(self, stages):
        for stage in stages:
            for task in reversed(stage.pending()):
                stage.run(task)
        return []


def test_the_order_of_the_work_changes_nothing(model, documents, tmp_path):
    mine_documents(documents, tmp_path / "1.tsv", model)
    mine_documents(documents, tmp_path / "2.tsv", model, work=Work(executor=Backwards()))
    assert (tmp_path / "1.tsv").read_bytes() == (tmp_path / "2.tsv").read_bytes()


def counted(monkeypatch, fail_at=None):
    """Count tasks; Ctrl-C at one of them."""
    run, done = DocumentStage.run, []

    def counting(self, task):
        if len(done) == fail_at:
            raise KeyboardInterrupt
        done.append(task)
        run(self, task)

    monkeypatch.setattr(DocumentStage, "run", counting)
    return done


def test_an_interrupted_run_goes_on(model, embed, documents, tmp_path, monkeypatch):
    output = tmp_path / "out.tsv"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        counted(patch, fail_at=2)
        mine_documents(documents, output, model)
    assert not output.exists() and (tmp_path / ".out.tsv.work").is_dir()
    done = counted(monkeypatch)
    mine_documents(documents, output, model)
    assert len(done) == 2  # five pairs, two done before, of which one is named twice
    assert output.read_text(encoding="utf-8") == expected(documents, embed, AlignmentSettings())
    assert not (tmp_path / ".out.tsv.work").exists()


def test_only_what_has_changed_is_done_again(model, embed, documents, tmp_path, monkeypatch):
    output, work = tmp_path / "out.tsv", Work(tmp_path / "work", keep=True)
    done = counted(monkeypatch)
    mine_documents(documents, output, model, work=work)
    done.clear()
    (documents.parent / "a3.txt").write_text("ba ce\n\ndi fo\n")
    mine_documents(documents, output, model, overwrite=True, work=work)
    assert done == [4]
    assert output.read_text(encoding="utf-8") == expected(documents, embed, AlignmentSettings())
    done.clear()
    mine_documents(documents, output, model, AlignmentSettings(skip=1.5), overwrite=True, work=work)
    assert len(done) == 5
    assert output.read_text(encoding="utf-8") == expected(documents, embed, AlignmentSettings(skip=1.5))
    assert len(list((tmp_path / "work").glob("*/*"))) == 2  # results of other settings and lists are removed
    done.clear()
    mine_documents(
        documents, output, model, AlignmentSettings(skip=1.5), True, Work(tmp_path / "work", True, "documents")
    )
    assert len(done) == 5


def test_a_task_is_done_when_its_facts_are_there(model, documents, tmp_path, monkeypatch):
    monkeypatch.setattr(document_stage, "write_metadata", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mine_documents(documents, tmp_path / "out.tsv", model)
    (result,) = (tmp_path / ".out.tsv.work" / "documents").glob("*/*")
    assert not metadata_file(result).exists()
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a0.txt\n", r"list\.tsv: row 1 is 'a0\.txt'; write `source file TAB target file`"),
        ("a0.txt\tb0.txt.gz\na1.txt\tb1.txt.gz\tx\n", "row 2 is .* two names and a tab"),
        ("a0.txt\t\n", "row 1 is"),
        ("\n \n", "no documents"),
        ("a0.txt\tb0.txt.gz\n\nnone.txt\tb1.txt.gz\n", r"list\.tsv, row 3: .*none\.txt: No such file"),
        ("a0.txt\tempty.txt\n", r"row 1: .*empty\.txt: empty; give a document"),
        ("a0.txt\tblank.txt.xz\n", r"row 1: .*blank\.txt\.xz: empty"),
        ("a0.txt\t.\n", r"row 1: .* is a folder, where a file is expected"),
        ("latin.txt\ta0.txt\n", r"row 1: .*latin\.txt: line 2 is not UTF-8"),
        ("a0.txt\tcut.txt.gz\n", r"row 1: .*cut\.txt\.gz: cannot be read"),
    ],
)
def test_bad_lists_and_documents_are_refused_before_any_work(model, documents, tmp_path, rows, message, monkeypatch):
    folder = documents.parent
    (folder / "empty.txt").touch()
    (folder / "blank.txt.xz").write_bytes(lzma.compress(b"\n \n\t\n"))
    (folder / "latin.txt").write_bytes(b"ba\n\xe9t\xe9\n")
    (folder / "cut.txt.gz").write_bytes((folder / "b0.txt.gz").read_bytes()[:-20])
    documents.write_text(rows)
    done = counted(monkeypatch)
    with pytest.raises(ParagramError, match=message) as error:
        mine_documents(documents, tmp_path / "out.tsv", model)
    assert "\n" not in str(error.value) and not done
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_documents_that_are_too_large_are_refused_by_name(model, documents, tmp_path, monkeypatch):
    monkeypatch.setattr("st_paragram.tools.alignment.alignment.MOST_CELLS", 143)
    with pytest.raises(MiningError, match=r"list\.tsv, row 1: .*a0\.txt and .*b0\.txt\.gz: 12 and 12 sentences"):
        mine_documents(documents, tmp_path / "out.tsv", model)
    assert mine_documents(documents, tmp_path / "out.tsv", model, MiningSettings()).documents == 5


def test_an_embedding_without_direction_is_refused_by_name(model, documents, tmp_path, monkeypatch):
    monkeypatch.setattr(document_stage, "_embed", lambda *_: lambda texts: np.zeros((len(texts), 2), dtype=np.float32))
    with pytest.raises(MiningError, match=r"list\.tsv, row 1: the embedding of source .* has length 0"):
        mine_documents(documents, tmp_path / "out.tsv", model)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_settings_that_make_no_sense_here_are_refused(model, documents, tmp_path):
    for settings in (MiningSettings(paraphrase=True), MiningSettings(with_ids=True)):
        with pytest.raises(SettingsError, match="cannot be combined with --paraphrase or --ids"):
            mine_documents(documents, tmp_path / "out.tsv", model, settings)
    (tmp_path / "out.tsv").write_text("precious")
    with pytest.raises(ParagramError, match="exists"):
        mine_documents(documents, tmp_path / "out.tsv", model)


def test_a_full_disk_leaves_no_output(model, documents, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr("shutil.copyfileobj", full)
        mine_documents(documents, tmp_path / "out.tsv", model)
    assert not list(tmp_path.glob("out.tsv*"))
    done = counted(monkeypatch)
    mine_documents(documents, tmp_path / "out.tsv", model)
    assert not done  # all was done


def test_mining_a_pair_is_mining_its_distinct_sentences(embed, pairs):
    source, target = (list(side) for side in zip(*pairs[:20], strict=True))
    rows = mine_pair([*source, "", source[3]], target, embed, MiningSettings(candidates=Candidates.ALL, k=3))
    one, other = list(dict.fromkeys(source)), list(dict.fromkeys(target))
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (embed(one), embed(other))]
    found = candidate_pairs(
        nearest_neighbours(*unit, 3), nearest_neighbours(*unit[::-1], 3), Margin.DISTANCE, Candidates.ALL
    )
    assert [(a, b) for _, a, b in rows] == [(one[i], other[j]) for i, j in zip(found.source, found.target, strict=True)]
    least = rows[5][0]
    assert mine_pair(source, target, embed, MiningSettings(candidates=Candidates.ALL, k=3, threshold=least)) == rows[:6]
    assert mine_pair(["", " "], target, embed, MiningSettings()) == []
    ((_, a, b),) = mine_pair(source[:1], target, embed, MiningSettings())  # fewer sentences than neighbours
    assert a == source[0] and b in target


def test_pairs_can_be_given_without_a_list(model, documents, tmp_path):
    folder = documents.parent
    pair = DocumentPair(str(folder / "a2.txt"), str(folder / "b2.txt.gz"))
    assert mine_documents([pair], tmp_path / "out.tsv", model).source == 7
    missing = DocumentPair(str(folder / "a2.txt"), "none.txt")
    with pytest.raises(MiningError, match=r"^none\.txt: No such file"):
        mine_documents([missing], tmp_path / "other.tsv", model)


def command(arguments):
    """What `st-paragram align` does."""
    from st_paragram.cli.main import main

    return main(["align", *map(str, arguments)])


def test_command(model, embed, documents, tmp_path, capsys):
    both = ["--model", model, "--output", tmp_path / "out.tsv"]
    assert command(["--documents", documents, *both, "--workers", 1]) == 0
    assert "from 5 pairs of documents with 57 and 57 sentences" in capsys.readouterr().err
    assert (tmp_path / "out.tsv").read_text(encoding="utf-8") == expected(documents, embed, AlignmentSettings())

    one = ["--source", documents.parent / "a0.txt", "--target", documents.parent / "b0.txt.gz", *both]
    assert command(one) == 1
    assert "exists" in capsys.readouterr().err
    settings = ["--margin", "distance", "--skip-below", 0.3, "--neighbours", 2, "--all", "--overwrite"]
    assert command([*one, *settings]) == 0
    assert "from 1 pair of documents with" in capsys.readouterr().err
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").split("\n")[:-1]]
    assert any(not other for _, _, other in rows)
    assert " ".join(one for _, one, _ in rows if one) == " ".join(filter(None, lines(documents.parent / "a0.txt")))

    for wrong in (one[:2], [*one[:4], "--documents", documents], []):
        assert command([*wrong, *both, "--overwrite"]) == 1
        assert "give --source and --target, or --documents" in capsys.readouterr().err
