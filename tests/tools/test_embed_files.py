"""Rows are the embeddings of the lines in order, in every form, however often the work was
interrupted.
"""

import gzip
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from filelock import FileLock

from st_paragram.core.encoding.encoder import Encoder
from st_paragram.core.folders import _MARK, MARKER
from st_paragram.errors import ParagramError, SettingsError, StoreError, TextError
from st_paragram.learning.models import load_save
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.embed_files import embed, embed_files, read_embeddings, rows

FORMS = ("x.npy", "x.parquet", "x")


@pytest.fixture
def encoder(vocabulary):
    torch.manual_seed(1)
    return pipeline(SentencePieceEmbedding(vocabulary, 6), device="cpu")


@pytest.fixture
def model(encoder, tmp_path):
    return str(load_save.save(encoder, tmp_path / "m"))


@pytest.fixture
def lines(pairs):
    texts = [text for pair in pairs[:45] for text in pair]
    texts[7] = texts[50] = ""
    texts[9] = "with\u2028separator\u0085s"
    return texts


@pytest.fixture
def texts(tmp_path, lines, monkeypatch):
    """Forty lines in a plain text, fifty in a packed one, none in a third; seven lines are embedded
    at a time.
    """
    monkeypatch.setattr(rows, "_LINES", 7)
    paths = [tmp_path / name for name in ("a.txt", "empty.txt", "b.gz")]
    paths[0].write_text("\n".join(lines[:40]) + "\n", encoding="utf-8", newline="\n")
    paths[1].touch()
    paths[2].write_bytes(gzip.compress("\n".join(lines[40:]).encode()))
    return [str(path) for path in paths]


def matrix(output: Path) -> np.ndarray:
    """What any form holds."""
    if output.suffix == ".npy":
        return np.load(output, mmap_mode="r")
    if output.suffix == ".parquet":
        return np.array(pq.read_table(output)["embedding"].to_pylist())
    return read_embeddings(output).rows(0, 1000)


def content(output: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in ([output] if output.is_file() else output.iterdir())
    }


def made_by(encode, texts, output, **options):
    """What a call leaves, and its report."""
    report = embed_files(encode, texts, output, shard_lines=16, overwrite=True, **options)
    return content(output), report


@pytest.mark.parametrize(
    ("dtype", "dim", "normalize"), [("float32", None, False), ("float16", 4, True)]
)
def test_all_forms_hold_the_lines_in_order(encoder, texts, lines, tmp_path, dtype, dim, normalize):
    expected = encoder.encode(lines)[:, :dim].astype(np.float64)
    if normalize:
        expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-12)
    for form in FORMS:
        report = made_by(
            encoder, texts, tmp_path / form, dtype=dtype, dim=dim, normalize=normalize
        )[1]
        assert (report.lines, report.blank, report.resumed, report.files) == (
            90,
            2,
            0,
            7 if form == "x" else 1,
        )
        np.testing.assert_allclose(
            matrix(tmp_path / form), expected, atol=1e-6 if dtype == "float32" else 1e-3
        )
        np.testing.assert_array_equal(
            matrix(tmp_path / form).astype(dtype), matrix(tmp_path / "x.npy")
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["a.txt", "b.gz", "empty.txt", *FORMS]
    )
    stream = io.BytesIO()
    embed_files(encoder, texts, stream, dtype=dtype, dim=dim, normalize=normalize)
    objects = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(each["line"], each["text"]) for each in objects] == list(enumerate(lines, 1))
    written = np.array([each["embedding"] for each in objects])
    np.testing.assert_array_equal(written.astype(dtype), matrix(tmp_path / "x.npy"))
    table = pq.read_table(tmp_path / "x.parquet")
    number = {"float32": "float", "float16": "halffloat"}[dtype]
    assert table["text"].to_pylist() == lines and matrix(tmp_path / "x.npy").dtype == dtype
    assert (
        str(table.schema.field("embedding").type)
        == f"fixed_size_list<element: {number} not null>[{dim or 6}]"
    )


def test_a_folder_is_read_from_any_row(model, texts, tmp_path):
    made_by(model, [*texts, texts[0]], tmp_path / "x")
    stored = read_embeddings(tmp_path / "x")
    expected = np.concatenate(list(stored.blocks(11)))
    assert (
        len(stored) == len(expected) == 130
        and stored.dimension == 6
        and expected.dtype == np.float32
    )
    np.testing.assert_array_equal(stored.rows(14, 90), expected[14:90])
    np.testing.assert_array_equal(stored.take([89, 0, 17, 129, 17]), expected[[89, 0, 17, 129, 17]])
    assert stored.take([]).shape == stored.rows(5, 5).shape == (0, 6)
    for wrong in (lambda: stored.take([130]), lambda: stored.rows(-1, 3)):
        with pytest.raises(IndexError):
            wrong()
    manifest = stored.manifest
    assert manifest.model == model and len(manifest.fingerprint) == 64
    counts = [(text.path, text.lines, text.blank) for text in manifest.texts]
    assert counts == [(texts[0], 40, 1), (texts[1], 0, 0), (texts[2], 50, 1), (texts[0], 40, 1)]
    assert [shard.rows for shard in manifest.shards] == [16, 16, 8, 16, 16, 16, 2, 16, 16, 8]


def interrupted(encode, texts, output, patch, error=MemoryError, **options):
    """A run that ends after 42 lines, as a killed one leaves it: nobody cleans up."""
    original, done = rows.RowEncoder.batches, []

    def failing(self, *arguments):
        for made in original(self, *arguments):
            if len(done) == 6:
                raise error
            done.append(len(made[0]))
            yield made

    with patch.context() as patched:
        patched.setattr(rows.RowEncoder, "batches", failing)
        with pytest.raises(error):
            made_by(encode, texts, output, **options)
    assert not output.exists()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_an_interrupted_run_goes_on(model, texts, tmp_path, monkeypatch, form, error):
    (tmp_path / "whole").mkdir()
    whole, _ = made_by(Encoder(model), texts, tmp_path / "whole" / form)
    interrupted(Encoder(model), texts, tmp_path / form, monkeypatch, error)
    left = tmp_path / f".{form}.0123456789ab.part"  # of a run that was killed at its very end
    (left / "new").mkdir(parents=True)
    (left / MARKER).write_bytes(_MARK)

    def killed(shards, _):
        shards.pop().unlink()
        raise error

    with monkeypatch.context() as patched:  # and one that is killed while shards become the output
        patched.setattr(embed, "_used", killed)
        if form != "x":
            with pytest.raises(error):
                made_by(Encoder(model), texts, tmp_path / form)
    made, report = made_by(Encoder(model), texts, tmp_path / form)
    assert made == whole
    assert (report.lines, report.blank, report.resumed) == (90, 2, 32 if form == "x" else 88)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("form", ["x.npy", "x"])
@pytest.mark.parametrize("change", ["weights", "model", "normalize", "dim", "text", "column"])
def test_nothing_is_taken_over_from_other_work(
    model, encoder, texts, tmp_path, monkeypatch, form, change
):
    """Above all not from another model, whose rows would be in the same matrix."""
    interrupted(encoder, texts, tmp_path / form, monkeypatch)
    options = {
        "normalize": {"normalize": True},
        "dim": {"dim": 5},
        "column": {"columns": ["1", None, None]},
    }
    if change == "weights":  # of the same object
        with torch.no_grad():
            next(encoder.parameters())[5:].neg_()
    elif change == "model":
        encoder = Encoder(model, truncate_dim=5)
    elif change == "text":
        Path(texts[0]).write_text("ba\nce\n")
    made, report = made_by(encoder, texts, tmp_path / form, **options.get(change, {}))
    again, _ = made_by(encoder, texts, tmp_path / form, **options.get(change, {}))
    assert report.resumed == 0 and made == again


def test_a_fingerprint_is_the_same_in_every_process(model):
    """Also of a matrix of floats, which has no scales."""
    code = """
import sys
from st_paragram import Encoder
from st_paragram.tools.embed_files.rows import fingerprint_of
print(fingerprint_of(Encoder(sys.argv[1])))
"""
    command = [sys.executable, "-c", code, model]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == rows.fingerprint_of(Encoder(model))


def test_models_are_told_apart_by_what_they_are(model, encoder, vocabulary):
    one = rows.fingerprint_of(Encoder(model))
    assert one == rows.fingerprint_of(Encoder(model, num_threads=1))
    others = [
        Encoder(model, truncate_dim=5),
        Encoder(),
        encoder,
        pipeline(SentencePieceEmbedding(vocabulary, 6)),
    ]
    assert len({one, *map(rows.fingerprint_of, others)}) == 5


def test_standard_input(encoder, texts, lines, tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO("\n".join(lines[40:]).encode()))

    monkeypatch.setattr("sys.stdin", Stdin)
    made_by(encoder, [texts[0], "-"], tmp_path / "x")
    np.testing.assert_allclose(matrix(tmp_path / "x"), encoder.encode(lines), atol=1e-6)


def test_an_empty_text_has_no_rows_of_the_usual_type(encoder, texts, tmp_path):
    for name in ("x.npy", "x"):
        embed_files(encoder, texts[1], tmp_path / name, dtype="float16", dim=4)
    rows = np.load(tmp_path / "x.npy")
    assert rows.shape == (0, 4) and rows.dtype == np.float16
    stored = read_embeddings(tmp_path / "x")
    assert len(stored) == 0 and stored.take([]).shape == (0, 4)


def test_bad_input_is_refused_in_one_line_and_leaves_nothing(encoder, texts, tmp_path):
    bad, output = tmp_path / "bad.txt", tmp_path / "x.npy"
    bad.write_bytes(b"ba\nce\n\xff\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    for files, options, error, message in [
        ([texts[0], bad], {}, TextError, r"bad\.txt: line 3 is not UTF-8"),
        ([tmp_path / "none"], {}, TextError, "No such file"),
        ([tmp_path], {}, TextError, "is a folder, but a file is expected"),
        ([], {}, SettingsError, "no text"),
        (["-", "-"], {}, SettingsError, "standard input is given twice"),
        (texts, {"columns": ["a"]}, SettingsError, "1 columns for 3 texts"),
        (texts, {"dim": 7}, SettingsError, "dim is 7, but the embeddings of this model have 6"),
        (
            texts,
            {"dtype": "int8"},
            SettingsError,
            "dtype is 'int8'; it must be 'float32' or 'float16'",
        ),
    ]:
        with pytest.raises(error, match=message) as raised:
            embed_files(encoder, files, output, **options)
        assert "\n" not in str(raised.value)
    with (
        FileLock(tmp_path / ".x.npy.lock"),
        pytest.raises(ParagramError, match="another run is writing"),
    ):
        embed_files(encoder, texts, output)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == before


def test_what_is_there_stays(encoder, texts, tmp_path):
    for form in FORMS:
        path = tmp_path / form
        path.write_text("precious") if path.suffix else path.mkdir()
        with pytest.raises(ParagramError, match="exists"):
            embed_files(encoder, texts, path)
    with pytest.raises(ParagramError, match="x exists and is not a folder of embeddings"):
        embed_files(encoder, texts, tmp_path / "x", overwrite=True)
    with pytest.raises(
        SettingsError, match=r"x\.csv: unknown extension \.csv; name X\.npy \(a matrix\)"
    ):
        embed_files(encoder, texts, tmp_path / "x.csv")
    with pytest.raises(ParagramError, match="/: the folder cannot be created"):
        embed_files(encoder, texts, "/")


@pytest.mark.parametrize("value", [np.nan, 70_000])
def test_numbers_that_cannot_be_stored_are_told_by_line(
    encoder, texts, tmp_path, monkeypatch, value
):
    monkeypatch.setattr(
        encoder, "encode", lambda lines, **_: np.full((len(lines), 6), value, np.float32)
    )
    with pytest.raises(
        ParagramError,
        match=r"a\.txt: the embedding of line 1 has numbers that float16 cannot store",
    ):
        embed_files(encoder, texts, tmp_path / "x.npy", dtype="float16")
    assert not list(tmp_path.glob("*x.npy*"))


def test_damaged_folders_are_refused_in_one_line(model, texts, tmp_path):
    folder = tmp_path / "bad"

    def manifest(**values):
        (folder / "embeddings.json").write_text(json.dumps(json.loads(described) | values))

    made_by(model, texts, folder)
    described = (folder / "embeddings.json").read_text()
    for damage, message in [
        (lambda: (folder / "shard-00001.npy").unlink(), "missing or damaged"),
        (lambda: manifest(dimension=7), "missing or damaged"),
        (lambda: manifest(format_version=2), "format_version"),
        (lambda: (folder / "embeddings.json").unlink(), "no embeddings.json"),
    ]:
        damage()
        with pytest.raises(StoreError, match=message) as raised:
            read_embeddings(folder).rows(0, 90)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("form", [*FORMS, None])
def test_a_text_that_is_cut_while_it_is_read_is_refused(encoder, tmp_path, monkeypatch, form):
    paths = [tmp_path / "1.txt", tmp_path / "2.txt"]
    for path in paths:
        path.write_text("ba ce\nfo gu\n")
    read = embed.read_texts

    def cut_later(name, column):
        yield from read(name, column)
        paths[1].write_text("ba ce\n")

    monkeypatch.setattr(embed, "read_texts", cut_later)
    with pytest.raises(TextError, match=r"2\.txt: changed while it was read, from 12 to 6 bytes"):
        embed_files(encoder, paths, io.BytesIO() if form is None else tmp_path / form)
    assert form is None or not (tmp_path / form).exists()
