"""Collections embedded into shards are what encoding all lines gives, whoever did it, and however often it stopped."""

import gzip
import hashlib
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

from st_paragram.cli.main import main
from st_paragram.core.encoding.packing import NumberType
from st_paragram.errors import ParagramError, SettingsError, StoreError, TextError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.embed_files import CollectionSettings, collection, embed_collection, read_embeddings, row_encoder
from st_paragram.tools.embed_files.shard_stage import ShardStage
from st_paragram.tools.stages.distributed import Cluster, ClusterExecutor
from st_paragram.tools.stages.executors import LocalExecutor
from st_paragram.tools.stages.work import Work

SMALL = CollectionSettings(shard_lines=16)


@pytest.fixture(scope="module")
def encoder(vocabulary):
    return pipeline(SentencePieceEmbedding(vocabulary, 6), device="cpu")


@pytest.fixture(scope="module")
def model(encoder, tmp_path_factory):
    return str(model_directory.save(encoder, tmp_path_factory.mktemp("model") / "m"))


@pytest.fixture(scope="module")
def lines(pairs):
    texts = [text for pair in pairs[:45] for text in pair]
    texts[7] = texts[50] = ""
    return texts


@pytest.fixture
def texts(tmp_path, lines):
    """Forty lines in a plain text, fifty in a packed one, and a text without any."""
    paths = [tmp_path / name for name in ("a.txt", "empty.txt", "b.gz")]
    paths[0].write_text("\n".join(lines[:40]) + "\n", encoding="utf-8")
    paths[1].touch()
    paths[2].write_bytes(gzip.compress("\n".join(lines[40:]).encode()))
    return [str(path) for path in paths]


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_paths_are_names(texts, tmp_path, model):
    embed_collection(texts[:1], tmp_path / "names", model, SMALL)
    embed_collection([Path(texts[0])], tmp_path / "paths", Path(model), SMALL)
    embed_collection(texts[0], str(tmp_path / "one"), model, SMALL)
    embed_collection(Path(texts[0]), tmp_path / "one path", model, SMALL)
    assert content(tmp_path / "names") == content(tmp_path / "paths") == content(tmp_path / "one")
    assert content(tmp_path / "one") == content(tmp_path / "one path")


def plain_reference(rows, dtype, dim, normalize):
    rows = rows[:, :dim].astype(np.float64)
    if normalize:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    steps = {"float32": 1e-6, "float16": 2**-11, "int8": 0.51 / 127}[dtype]
    return rows, steps * np.abs(rows).max(axis=1, keepdims=True) + 1e-6


@pytest.mark.parametrize("form", ["npy", "parquet"])
@pytest.mark.parametrize(
    ("dtype", "dim", "normalize"), [("float32", None, False), ("float16", 4, True), ("int8", 5, True)]
)
def test_rows_are_the_lines_in_order(model, encoder, texts, lines, tmp_path, monkeypatch, form, dtype, dim, normalize):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(row_encoder, "_LINES", 7)
    settings = CollectionSettings(dtype, dim, normalize, form, form == "parquet", 16)
    report = embed_collection(texts, tmp_path / "out", model, settings)
    assert (report.lines, report.blank, report.shards, report.resumed) == (90, 2, 7, 0)
    stored = read_embeddings(tmp_path / "out")
    expected, off = plain_reference(encoder.encode(lines), dtype, dim, normalize)
    assert len(stored) == 90 and stored.dimension == expected.shape[1] == report.dimension
    rows = np.concatenate(list(stored.blocks(11)))
    assert rows.dtype == np.float32 and (np.abs(rows - expected) <= off).all()
    np.testing.assert_array_equal(stored.rows(14, 90), rows[14:])
    np.testing.assert_array_equal(stored.take([89, 0, 17, 16, 17]), rows[[89, 0, 17, 16, 17]])
    assert stored.take([]).shape == stored.rows(5, 5).shape == (0, stored.dimension)
    if form == "parquet":
        assert stored.texts(3, 90) == lines[3:]
    else:
        with pytest.raises(SettingsError, match="have no lines"):
            stored.texts(0, 1)
    for wrong in (lambda: stored.take([90]), lambda: stored.rows(-1, 3)):
        with pytest.raises(IndexError):
            wrong()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.gz", "empty.txt", "out"]


def test_other_programs_read_the_shards(model, encoder, texts, lines, tmp_path):
    pa_parquet = pytest.importorskip("pyarrow.parquet")
    embed_collection(texts, tmp_path / "n", model, CollectionSettings("int8", shard_lines=50))
    numbers, scales = (np.load(tmp_path / "n" / f"shard-00001{end}.npy", mmap_mode="r") for end in ("", ".scales"))
    np.testing.assert_allclose(numbers * scales[:, None], encoder.encode(lines[40:]), atol=0.05)
    embed_collection(texts, tmp_path / "p", model, CollectionSettings("int8", format="parquet", with_text=True))
    table = pa_parquet.read_table(sorted((tmp_path / "p").glob("*.parquet")))
    assert [f"{field.name}: {field.type}" for field in table.schema] == [
        "text: string",
        "embedding: fixed_size_list<element: int8 not null>[6]",
        "scale: float",
    ]
    assert table.column("text").to_pylist() == lines
    vectors = np.array(table.column("embedding").to_pylist()) * table.column("scale").to_numpy()[:, None]
    np.testing.assert_allclose(vectors[40:], numbers * scales[:, None], atol=1e-6)


def test_the_description_says_what_is_where(model, texts, tmp_path):
    embed_collection([*texts, texts[0]], tmp_path / "out", model, CollectionSettings("int8", shard_lines=30))
    found = json.loads((tmp_path / "out/embeddings.json").read_text())
    assert [found[name] for name in ("rows", "dimension", "dtype", "format")] == [130, 6, "int8", "npy"]
    assert "127" in found["scale"] and found["model"]["name"] == model and len(found["model"]["fingerprint"]) == 64
    assert [(text["path"], text["lines"], text["blank"]) for text in found["inputs"]] == [
        (texts[0], 40, 1), (texts[1], 0, 0), (texts[2], 50, 1), (texts[0], 40, 1),
    ]  # fmt: skip
    places = [(shard["input"], shard["first_line"], shard["rows"]) for shard in found["shards"]]
    assert places == [(0, 1, 30), (0, 31, 10), (2, 1, 30), (2, 31, 20), (3, 1, 30), (3, 31, 10)]
    there = content(tmp_path / "out")
    assert there["shard-00004.npy"] == there["shard-00000.npy"]
    written = {name: sha256 for shard in found["shards"] for name, sha256 in shard["sha256"].items()}
    assert len(written) == 12
    assert {**written, "embeddings.json": ""}.keys() == there.keys()
    assert all(hashlib.sha256(there[name]).hexdigest() == sha256 for name, sha256 in written.items())


@pytest.mark.parametrize("moment", ["killed", "asked"])
def test_an_interrupted_run_goes_on(model, texts, tmp_path, monkeypatch, moment):
    """After three shards; a killed run leaves its files as they are, as here where nobody cleans up."""
    embed_collection(texts, tmp_path / "whole", model, SMALL)
    run, done = ShardStage.run, []

    def failing(stage, task):
        if len(done) == 3:
            raise MemoryError if moment == "killed" else KeyboardInterrupt
        done.append(task)
        run(stage, task)

    monkeypatch.setattr(ShardStage, "run", failing)
    with pytest.raises((MemoryError, KeyboardInterrupt)):
        embed_collection(texts, tmp_path / "out", model, SMALL)
    assert not (tmp_path / "out").exists() and (tmp_path / ".out.work").is_dir()
    monkeypatch.setattr(ShardStage, "run", run)
    (tmp_path / ".out.0123456789ab.part" / "new").mkdir(parents=True)  # of a run that was killed at its very end
    report = embed_collection(texts, tmp_path / "out", model, SMALL)
    assert (report.resumed, report.shards) == (3, 7)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_is_kept_is_done_again_where_it_changed(model, texts, lines, tmp_path):
    work = Work(tmp_path / "work", keep=True)
    assert embed_collection(texts, tmp_path / "one", model, SMALL, work=work).resumed == 0
    rows = read_embeddings(tmp_path / "one").rows(40, 90)
    assert embed_collection(texts, tmp_path / "two", model, SMALL, work=work).resumed == 7
    with Path(texts[0]).open("a") as file:
        file.write("one line more\n")
    report = embed_collection(texts, tmp_path / "two", model, SMALL, True, work)
    assert (report.lines, report.resumed) == (91, 4)
    with (tmp_path / "two/shard-00006.npy").open("r+b") as file:  # the very file that the work folder has
        file.write(b"spoilt")
    assert embed_collection(texts, tmp_path / "three", model, SMALL, work=work).resumed == 6
    np.testing.assert_array_equal(read_embeddings(tmp_path / "three").rows(41, 91), rows)


def test_files_that_cannot_be_linked_are_copied(model, texts, tmp_path, monkeypatch):
    embed_collection(texts, tmp_path / "one", model, SMALL)
    monkeypatch.setattr(collection.os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links here")))
    embed_collection(texts, tmp_path / "two", model, SMALL)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_standard_input_beside_a_file(model, texts, lines, tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO("\n".join(lines[40:]).encode()))

    monkeypatch.setattr("sys.stdin", Stdin)
    embed_collection([texts[0], "-"], tmp_path / "one", model, SMALL)
    embed_collection(texts, tmp_path / "two", model, SMALL)
    names = [f"shard-{number:05d}.npy" for number in range(7)]
    assert [content(tmp_path / "one")[name] for name in names] == [content(tmp_path / "two")[name] for name in names]


def test_bad_input_is_refused_in_one_line_and_leaves_nothing(model, texts, tmp_path, monkeypatch):
    bad, empty = tmp_path / "bad.txt", texts[1]
    bad.write_bytes(b"ba\nce\n\xff\n")
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"ba\n" * 9000)[:-20])
    taken = tmp_path / "taken"
    taken.mkdir()
    none = str(tmp_path / "none")
    cases = [
        ([texts[0], str(bad)], SMALL, TextError, r"bad\.txt: line 3 is not UTF-8"),
        ([texts[0], str(cut)], SMALL, TextError, "cannot be read"),
        ([empty], SMALL, TextError, r"empty\.txt: empty"),
        ([none], SMALL, TextError, "No such file"),
        ([], SMALL, SettingsError, "no text"),
        (["-", "-"], SMALL, SettingsError, "standard input twice"),
        ([texts[0]], CollectionSettings(dim=7), SettingsError, "dim is 7, and the embeddings of this model have 6"),
    ]
    before = sorted(path.name for path in tmp_path.iterdir())
    for files, settings, error, message in cases:
        with pytest.raises(error, match=message) as raised:
            embed_collection(files, tmp_path / "out", model, settings)
        assert "\n" not in str(raised.value)
    with pytest.raises(ParagramError, match="taken exists and is not a folder of embeddings"):
        embed_collection(texts, taken, model, SMALL, overwrite=True)
    with FileLock(tmp_path / ".out.lock"), pytest.raises(ParagramError, match="another run is writing"):
        embed_collection(texts, tmp_path / "out", model, SMALL)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".out.lock") == before


def test_what_cannot_be_stored_is_told_by_line():
    rows = np.ones((3, 2), np.float32)
    rows[1, 1] = np.nan
    for kind in NumberType:
        with pytest.raises(ParagramError, match=r"a\.txt: the embedding of line 12 is not finite"):
            row_encoder.pack_lines(rows, kind, "a.txt", 11)
    rows[1, 1] = 70_000
    with pytest.raises(SettingsError, match="line 12 has components above 65,504, which float16 cannot hold"):
        row_encoder.pack_lines(rows, NumberType.FLOAT16, "a.txt", 11)


def test_settings_are_checked():
    with pytest.raises(SettingsError, match="with_text is set and the format is npy"):
        CollectionSettings(with_text=True)
    with pytest.raises(SettingsError, match="shard_lines is 0; it must be greater than or equal to 1"):
        CollectionSettings(shard_lines=0)


def test_damaged_folders_are_refused_in_one_line(model, texts, tmp_path):
    embed_collection(texts, tmp_path / "good", model, CollectionSettings("int8", shard_lines=50))

    def refused(damage):
        folder = tmp_path / "bad"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "good", folder)
        damage(folder)
        with pytest.raises(StoreError) as raised:
            read_embeddings(folder).rows(0, 90)
        assert "\n" not in str(raised.value)
        return str(raised.value)

    def described(**values):
        def change(folder):
            path = folder / "embeddings.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | values))

        return change

    def renamed(folder):
        path = folder / "embeddings.json"
        path.write_text(path.read_text().replace("shard-00001.npy", "../good/shard-00001.npy"))

    def unnamed(folder):
        path = folder / "embeddings.json"
        path.write_text(path.read_text().replace("shard-00001.scales.npy", "shard-00000.scales.npy"))

    assert "no embeddings.json" in refused(lambda folder: (folder / "embeddings.json").unlink())
    assert "damaged" in refused(lambda folder: (folder / "embeddings.json").write_text("{"))
    assert "format 2" in refused(described(format_version=2))
    assert "not file names" in refused(renamed)
    assert "rows, which" in refused(described(rows=10**15))
    assert "checksums of its files" in refused(unnamed)
    assert "damaged" in refused(described(dimension=7)) and "checksums" in refused(described(dtype="float32"))
    assert "missing or damaged" in refused(lambda folder: (folder / "shard-00001.npy").write_bytes(b"\x93NUMPY"))
    assert "missing or damaged" in refused(lambda folder: (folder / "shard-00001.scales.npy").unlink())


def test_the_command(model, texts, lines, tmp_path, capsys):
    out, one = str(tmp_path / "out"), str(tmp_path / "one.npy")
    sharded = ["--model", model, "--sharded", "--output", out, "--shard-lines", "16"]
    assert main(["embed", *texts, *sharded, "--dtype", "float16", "--dim", "4"]) == 0
    assert "90 lines to 7 shards" in capsys.readouterr().err
    assert main(["embed", *texts, *sharded]) == 1
    assert "exists; choose another name or give --overwrite" in capsys.readouterr().err
    assert main(["embed", texts[2], *sharded[:3], "--output", str(tmp_path / "small")]) == 0
    assert "small: 50 lines to 1 shard, " in capsys.readouterr().err
    assert main(["embed", texts[2], "--model", model, "--output", one, "--dtype", "float16", "--dim", "4"]) == 0
    matrix = np.load(one)
    assert (matrix.dtype, matrix.shape) == (np.float16, (50, 4))
    np.testing.assert_array_equal(matrix, read_embeddings(out).rows(40, 90))
    capsys.readouterr()
    for arguments, message in [
        ([*texts[:1], "--dtype", "int8"], "needs a separate scale for each row"),
        (texts, "3 files do not go into one matrix; add --sharded"),
        ([*texts[:1], "--workers", "2"], "--workers is for a folder of shards; add --sharded"),
        ([*texts[:1], "--shard-lines", "9"], "--shard-lines is for a folder of shards; add --sharded"),
        ([*texts[:1], "--dim", "7"], "dim is 7, and the embeddings of this model have 6 components"),
        ([*texts[:1], "--sharded", "--with-text"], "with_text is set and the format is npy"),
    ]:
        assert main(["embed", *arguments, "--model", model, "--output", str(tmp_path / "new")]) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [False, True])
def test_the_bytes_do_not_depend_on_who_does_the_work(model, texts, tmp_path, cluster):
    if cluster:
        pytest.importorskip("datatrove")
    executor = ClusterExecutor(Cluster.LOCAL, tmp_path / "logs", 3, 2) if cluster else LocalExecutor(3)
    settings = CollectionSettings("int8", shard_lines=16)
    embed_collection(texts, tmp_path / "one", model, settings)
    embed_collection(texts, tmp_path / "many", model, settings, work=Work(executor=executor))
    assert content(tmp_path / "one") == content(tmp_path / "many")
