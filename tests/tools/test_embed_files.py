import gzip
import io
import lzma

import numpy as np
import pytest
from filelock import FileLock

from st_paragram.cli.main import main
from st_paragram.core.text.parallel import TextSource
from st_paragram.errors import ParagramError, TextError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools import embed_files, score_files
from st_paragram.tools.embed_files import row_encoder


@pytest.fixture
def model(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 6), device="cpu")


@pytest.fixture
def lines(pairs):
    texts = [text for pair in pairs[:30] for text in pair]
    texts[7] = texts[20] = ""
    texts[9] = "with\u2028separator\u0085s"
    return texts


@pytest.fixture
def source(tmp_path, lines):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("pack", [None, gzip, lzma])
def test_rows_are_the_lines_in_order(model, tmp_path, source, lines, chunk, pack, monkeypatch):
    monkeypatch.setattr(row_encoder, "_LINES", chunk)
    if pack:
        packed = tmp_path / ("lines.gz" if pack is gzip else "lines.xz")
        packed.write_bytes(pack.compress(source.read_bytes()))
        source = packed
    report = embed_files.embed_file(model, str(source), tmp_path / "x.npy")
    rows = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert (rows.shape, rows.dtype) == ((60, 6), np.float32)
    np.testing.assert_allclose(rows, model.encode(lines), atol=1e-6)
    assert (report.lines, report.blank, report.resumed) == (60, 2, 0)
    assert sorted(p.name for p in tmp_path.glob("x.npy*")) == ["x.npy"]


def test_an_interrupted_run_goes_on(model, tmp_path, source, lines, monkeypatch):
    monkeypatch.setattr(row_encoder, "_LINES", 8)
    output, encode, calls = tmp_path / "x.npy", model.encode, []

    def failing(batch, **kwargs):
        calls.append(list(batch))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return encode(batch, **kwargs)

    monkeypatch.setattr(model, "encode", failing)
    with pytest.raises(KeyboardInterrupt):
        embed_files.embed_file(model, str(source), output, identity="m")
    part = output.with_name("x.npy.part")
    with part.open("ab") as file:
        file.write(b"torn row")
    assert not output.exists()
    calls.clear()
    monkeypatch.setattr(
        model, "encode", lambda batch, **kwargs: (calls.append(list(batch)), encode(batch, **kwargs))[1]
    )
    report = embed_files.embed_file(model, str(source), output, identity="m")
    assert [text for batch in calls for text in batch] == lines[24:]
    assert (report.lines, report.resumed, report.blank) == (60, 24, 2)
    np.testing.assert_allclose(np.load(output), encode(lines), atol=1e-6)


@pytest.mark.parametrize("change", ["identity", "normalize", "input"])
def test_an_interrupted_run_with_other_settings_starts_again(model, tmp_path, source, lines, change, monkeypatch):
    encode = model.encode
    monkeypatch.setattr(row_encoder, "_LINES", 8)
    monkeypatch.setattr(model, "encode", lambda b, **k: encode(b, **k) if b[0] == lines[0] else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        embed_files.embed_file(model, str(source), tmp_path / "x.npy", identity="m")
    monkeypatch.setattr(model, "encode", encode)
    if change == "input":
        source.write_text("ba\nce\n")
        lines = ["ba", "ce"]
    report = embed_files.embed_file(
        model, str(source), tmp_path / "x.npy", normalize=change == "normalize", identity=change
    )
    assert report.resumed == 0 and len(np.load(tmp_path / "x.npy")) == len(lines)


def test_standard_input(model, tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(b"ba ce\nno newline"))

    monkeypatch.setattr("sys.stdin", Stdin)
    assert embed_files.embed_file(model, "-", tmp_path / "x.npy").lines == 2


def test_bad_input_is_refused_by_line_and_an_output_is_not_overwritten(model, tmp_path):
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"ba\nce\n\xff\n")
    with pytest.raises(TextError, match=r"bad\.txt: line 3 is not UTF-8"):
        embed_files.embed_file(model, str(bad), tmp_path / "x.npy")
    assert not list(tmp_path.glob("x.npy*"))
    (tmp_path / "empty.txt").touch()
    with pytest.raises(TextError, match="empty"):
        embed_files.embed_file(model, str(tmp_path / "empty.txt"), tmp_path / "y.npy")
    (tmp_path / "z.npy").write_text("precious")
    with pytest.raises(ParagramError, match="exists"):
        embed_files.embed_file(model, str(bad), tmp_path / "z.npy")


def test_bad_input_leaves_nothing_behind_and_spoils_nothing(model, tmp_path, source, monkeypatch):
    encode = model.encode
    monkeypatch.setattr(row_encoder, "_LINES", 8)
    monkeypatch.setattr(model, "encode", lambda b, **k: encode(b, **k) if b[0] == read_first(source) else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        embed_files.embed_file(model, str(source), tmp_path / "x.npy")
    unfinished = (tmp_path / "x.npy.part").read_bytes()
    for wrong in ("none.txt", "."):
        with pytest.raises(TextError):
            embed_files.embed_file(model, str(tmp_path / wrong), tmp_path / "x.npy")
    assert (tmp_path / "x.npy.part").read_bytes() == unfinished
    (tmp_path / "empty.txt").touch()
    with pytest.raises(TextError):
        embed_files.embed_file(model, str(tmp_path / "empty.txt"), tmp_path / "y.npy")
    assert not list(tmp_path.glob("y.npy*"))


def read_first(path):
    return path.read_text(encoding="utf-8").split("\n")[0]


def test_rows_that_cannot_be_scored_are_refused(model, tmp_path):
    source = tmp_path / "nul.tsv"
    source.write_bytes(b"ba\tce\nba\0\tce\n")
    with pytest.raises(TextError, match="1 rows hold NUL bytes"):
        score_files.score_file(model, TextSource((str(source),), ("a", "b")), tmp_path / "y.tsv")
    assert not list(tmp_path.glob("y.tsv*"))


@pytest.mark.parametrize("output", [".", "lines.txt/x.npy", "/dev/null"])
def test_impossible_outputs_are_refused(model, tmp_path, source, output, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParagramError, match=r"where a (file|folder) is expected|regular file"):
        embed_files.embed_file(model, str(source), output, overwrite=True)


def test_scores_are_cosines_in_order(model, tmp_path, pairs):
    source = tmp_path / "pairs.tsv"
    source.write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:20]) + "\tba\n")
    report = score_files.score_file(model, TextSource((str(source),), ("a", "b")), tmp_path / "y.tsv")
    assert (report.pairs, report.blank) == (21, 1)
    rows = [line.split("\t") for line in (tmp_path / "y.tsv").read_text().splitlines()]
    assert [(a, b) for _, a, b in rows] == [*pairs[:20], ("", "ba")]
    for score, a, b in rows:
        x, y = model.encode([a, b])
        assert float(score) == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), abs=2e-6)


def test_commands(model, tmp_path, source, capsys):
    model_directory.save(model, tmp_path / "m")
    arguments = ["--model", str(tmp_path / "m"), "--output", str(tmp_path / "x.npy")]
    assert main(["embed", str(source), *arguments]) == 0
    assert "60 lines; 2 blank" in capsys.readouterr().err
    assert main(["embed", str(source), *arguments]) == 1
    assert "exists; choose another name or give --overwrite" in capsys.readouterr().err
    assert main(["embed", str(source), *arguments, "--overwrite", "--normalize"]) == 0
    lengths = np.linalg.norm(np.load(tmp_path / "x.npy"), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)

    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("ba\tce\n")
    assert main(["score", str(pairs), "--model", str(tmp_path / "m"), "--output", str(tmp_path / "y.tsv")]) == 0
    assert (tmp_path / "y.tsv").read_text().endswith("\tba\tce\n")
    pairs.write_text("ba ce\n")
    failing = ["score", str(pairs), "--model", str(tmp_path / "m"), "--output", str(tmp_path / "w.tsv")]
    assert main(failing) == 1
    assert "row 1 has 1 column" in capsys.readouterr().err
    assert not (tmp_path / "w.tsv").exists() and not (tmp_path / "w.tsv.part").exists()


def test_a_missing_model_is_one_line(tmp_path, source, capsys):
    assert main(["embed", str(source), "--model", "p-sp-nowhere", "--output", str(tmp_path / "x.npy")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("st-paragram embed: no model 'p-sp-nowhere'") and err.count("\n") == 1


def test_an_output_is_one_runs_and_what_it_has_made_stays(model, tmp_path, source, monkeypatch):
    """A second run of another text, begun while the first one works, and again after it has ended."""
    output, encode, refused = tmp_path / "x.npy", model.encode, []
    other = tmp_path / "other.txt"
    other.write_text("ba\n")

    def second_run_meanwhile(batch, **options):
        lock = FileLock(tmp_path / ".x.npy.lock", timeout=0)  # as another process sees it
        with pytest.raises(TimeoutError):
            lock.acquire()
        refused.append(len(batch))
        return encode(batch, **options)

    monkeypatch.setattr(model, "encode", second_run_meanwhile)
    embed_files.embed_file(model, str(source), output)
    assert refused == [60]
    with pytest.raises(ParagramError, match="exists"):
        embed_files.embed_file(model, str(other), output)
    assert len(np.load(output)) == 60


def test_scores_are_one_runs(model, tmp_path):
    source = tmp_path / "pairs.tsv"
    source.write_text("ba\tce\n")
    with FileLock(tmp_path / ".y.tsv.lock"), pytest.raises(ParagramError, match=r"another run is writing .*y\.tsv"):
        score_files.score_file(model, TextSource((str(source),), ("a", "b")), tmp_path / "y.tsv")
    assert not (tmp_path / "y.tsv").exists()
