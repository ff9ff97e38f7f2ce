import gzip
import json
import shutil
import sys

import numpy as np
import pytest
from filelock import FileLock

from st_paragram.cli import search as search_command
from st_paragram.cli.main import main
from st_paragram.core.encoding.encoder import Encoder
from st_paragram.errors import MiningError, ModelDirectoryError, ParagramError, SettingsError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.search import index_metadata
from st_paragram.tools.search.search_index import SearchIndex
from st_paragram.tools.search.settings import SearchSettings
from st_paragram.tools.search.vectors import HeldRows, StoredVectors, VectorType, pack, unit_vectors

pytest.importorskip("faiss")


def save_model(folder, vocabulary, seed=0):
    import torch

    torch.manual_seed(seed)
    model_directory.save(pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu"), folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary):
    return save_model(tmp_path_factory.mktemp("models") / "p-sp-xx", vocabulary)


@pytest.fixture(scope="module")
def texts(pairs):
    return [first for first, _ in pairs]


@pytest.fixture(scope="module")
def source(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("text") / "lines.txt.gz"
    path.write_bytes(gzip.compress("\n".join(["", "7", *texts]).encode()))
    return path


@pytest.fixture(scope="module")
def flat(tmp_path_factory, source, model):
    return SearchIndex.build(source, tmp_path_factory.mktemp("index") / "lines.index", model)


@pytest.fixture
def copy(tmp_path, flat):
    return shutil.copytree(flat.folder, tmp_path / "copy.index")


def run(name, *arguments):
    return main([name, *map(str, arguments)])


def brute_force(texts, queries, model, k, kind=VectorType.FLOAT16):
    """Cosines and first lines, by comparing everything; lines begin after two that are left out."""
    distinct = list(dict.fromkeys(texts))
    encoder = model_directory.load(model)
    stored = unit_vectors(pack(encoder.encode(distinct), kind, "")).astype(float)
    rows = encoder.encode(queries).astype(float)
    cosines = (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ stored.T
    best = [sorted(range(len(distinct)), key=lambda i: (-round(each[i], 6), i))[:k] for each in cosines]
    return [[(each[i], texts.index(distinct[i]) + 3) for i in rows] for each, rows in zip(cosines, best, strict=True)]


@pytest.mark.parametrize("kind", list(VectorType))
@pytest.mark.parametrize("k", [1, 5])
def test_what_is_found_is_what_comparing_everything_finds(tmp_path, source, model, texts, kind, k):
    index = SearchIndex.build(source, tmp_path / "i", model, SearchSettings(vector_type=kind))
    queries = [texts[3], texts[100] + " " + texts[7], "ba ce di"]
    want = brute_force(texts, queries, model, k, kind)
    got = index.search(queries, k)
    for hits, expected in zip(got, want, strict=True):
        np.testing.assert_allclose([hit.score for hit in hits], [score for score, _ in expected], atol=2e-6)
        gaps = np.diff([score for score, _ in expected])
        if (np.abs(gaps) > 1e-5).all():
            assert [hit.line for hit in hits] == [line for _, line in expected]
        assert all(texts[hit.line - 3] == hit.sentence for hit in hits)
    assert got[0][0].line == texts.index(texts[3]) + 3 and got[0][0].score > 0.999
    assert index.metadata.factory == "Flat" and index.metadata.vector_type == kind.value


def test_repeated_sentences_are_one_and_lines_without_words_none(flat, texts):
    assert len(flat) == len(set(texts)) < len(texts)
    counts = flat.sentences.counts
    assert (counts.lines, counts.blank, counts.near_empty) == (len(texts) + 2, 1, 1)
    hits = flat.search([texts[0]], 10**6)[0]  # more than there are: all there are
    assert sorted(hit.line for hit in hits) == sorted({texts.index(text) + 3 for text in texts})
    assert flat.search([]) == []


def test_a_threshold_cuts_the_end_off(flat, texts):
    whole = flat.search([texts[5]], 50)[0]
    cut = whole[7].score
    assert flat.search([texts[5]], 50, threshold=cut)[0] == [hit for hit in whole if hit.score >= cut]
    assert flat.search([texts[5]], 50, threshold=1.1) == [[]]


@pytest.mark.parametrize("factory", ["IVF8,Flat", "IVF4,SQ8", "HNSW8"])
def test_an_inexact_index_finds_as_much_as_it_says_with_exact_cosines(tmp_path, source, model, texts, flat, factory):
    index = SearchIndex.build(source, tmp_path / "i", model, SearchSettings(index=factory, recall=0.9))
    assert index.metadata.factory == factory and index.metadata.effort > 0
    assert 0.9 <= index.metadata.recall <= 1
    exact, found = flat.search(texts[:200], 10), SearchIndex(tmp_path / "i", model).search(texts[:200], 10)
    scores = {(q, hit.line): hit.score for q, hits in enumerate(exact) for hit in hits}
    same = [(scores[q, hit.line], hit.score) for q, hits in enumerate(found) for hit in hits if (q, hit.line) in scores]
    assert len(same) >= 0.85 * len(scores)
    np.testing.assert_allclose(*zip(*same, strict=True), atol=1e-6)


def test_places_that_are_not_filled_do_not_come_out(tmp_path, source, model, texts):
    index = SearchIndex.build(source, tmp_path / "i", model, SearchSettings(index="IVF16,Flat"))
    index.effort = 1
    hits = index.search(texts[:20], len(index))
    assert all(0 < len(each) < len(index) and len({hit.line for hit in each}) == len(each) for each in hits)


def test_parts_of_an_index_are_one_corpus(tmp_path, source, model, texts, flat, monkeypatch):
    monkeypatch.setattr("st_paragram.tools.search.indexes.rows_in", lambda memory, dim: 250)
    index = SearchIndex.build(source, tmp_path / "i", model, SearchSettings(index="IVF4,Flat", recall=1.0))
    assert len(index.metadata.parts) == 3 and len(list((tmp_path / "i").glob("*.faiss"))) == 3
    index.effort = 4
    for got, want in zip(index.search(texts[:50]), flat.search(texts[:50]), strict=True):
        np.testing.assert_allclose([hit.score for hit in got], [hit.score for hit in want], atol=1e-6)


def test_vectors_that_do_not_fit_are_read_in_parts(flat, texts):
    small = SearchIndex(flat.folder, memory=1)
    assert isinstance(small.vectors, StoredVectors) and isinstance(flat.vectors, HeldRows)
    assert small.search(texts[:9]) == flat.search(texts[:9])


def test_another_model_is_refused_by_both_names_before_faiss_is_loaded(tmp_path, flat, vocabulary, monkeypatch):
    other = save_model(tmp_path / "p-sp-yy", vocabulary, seed=1)
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MiningError, match=r"built with \S*p-sp-xx .*not with \S*p-sp-yy"):
        SearchIndex(flat.folder, other)
    with pytest.raises(MiningError, match="shape"):
        SearchIndex(flat.folder).neighbours(np.eye(3, dtype=np.float32), 1)


def test_a_model_is_found_by_its_name_or_asked_for(tmp_path, source, model, monkeypatch):
    home = tmp_path / "home"
    shutil.copytree(model, home / "p-sp-xx")
    monkeypatch.chdir(home)
    index = SearchIndex.build(source, tmp_path / "i", "p-sp-xx")
    assert index.metadata.model == "p-sp-xx" and SearchIndex(tmp_path / "i").model.samefile(home / "p-sp-xx")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelDirectoryError, match=r"built with p-sp-xx.*--model"):
        SearchIndex(tmp_path / "i")
    assert SearchIndex(tmp_path / "i", model).search(["ba"], 1)


def version(number):
    def damage(folder):
        facts = json.loads((folder / "index.json").read_text())
        (folder / "index.json").write_text(json.dumps(facts | {"format_version": number}))

    return damage


def damage_value(folder):
    facts = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps(facts | {"sentences": "5"}))


def damage_type(folder):
    rows = np.load(folder / "vectors.npy")
    np.save(folder / "vectors.npy", rows.view(np.int16))


def cut(name):
    def damage(folder):
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: len(data) // 2])

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "no such index folder"),
        (lambda folder: (folder / "index.json").unlink(), "never finished"),
        (cut("index.json"), "not what st-paragram index writes"),
        (lambda folder: (folder / "index.json").write_text("[]"), "not what st-paragram index writes"),
        (version(4), "format_version is 4"),
        (version(5), "format version 5, this st_paragram reads 3 and 4; build the index again"),
        (version(2), "format version 2, this st_paragram reads 3 and 4; build the index again"),
        (damage_value, "sentences is '5'"),
        (lambda folder: (folder / "vectors.npy").unlink(), "vectors.npy is missing"),
        (cut("vectors.npy"), r"vectors.npy has \d+ bytes where"),
        (cut("sentences/text"), "sentences/text has"),
        (cut("sentences/text.json"), "sentences/text.json has"),
        (cut("sentences/starts.npy"), "sentences/starts.npy has"),
        (damage_type, "int16"),
    ],
)
def test_a_damaged_folder_is_refused_by_name(copy, damage, message):
    damage(copy)
    with pytest.raises(MiningError, match=message) as caught:
        SearchIndex(copy)
    assert "copy.index" in str(caught.value) and "\n" not in str(caught.value)


def sealed(folder):
    """The folder, with the digests of the files that are there now."""
    index_metadata.write_metadata(folder, index_metadata.read_metadata(folder))
    return folder


def test_damage_that_digests_do_not_show_is_found_in_use(copy, tmp_path, source, model):
    rows = np.load(copy / "vectors.npy")
    rows[3] = np.nan
    np.save(copy / "vectors.npy", rows)
    with pytest.raises(MiningError, match="not finite"):
        SearchIndex(sealed(copy)).search(["ba"], 1000)
    built = SearchIndex.build(source, tmp_path / "i", model, SearchSettings(index="HNSW8")).folder
    size = (built / "part-0000.faiss").stat().st_size
    (built / "part-0000.faiss").write_bytes(bytes(size))
    with pytest.raises(MiningError, match="part-0000"):
        SearchIndex(sealed(built)).search(["ba"])


NAMES = [
    "vectors.npy",
    "part-0000.faiss",
    *(f"sentences/{n}" for n in ("text", "text.json", "starts.npy", "lines.npy")),
]


@pytest.fixture(scope="module")
def inexact(tmp_path_factory, source, model):
    return SearchIndex.build(source, tmp_path_factory.mktemp("inexact") / "i", model, SearchSettings(index="IVF4,Flat"))


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_bit_is_found_by_a_check(inexact, tmp_path, name):
    folder = shutil.copytree(inexact.folder, tmp_path / "copy.index")
    data = bytearray((folder / name).read_bytes())
    data[-2] ^= 1
    (folder / name).write_bytes(data)
    with pytest.raises(MiningError, match=r"damaged.*build the index again") as caught:
        index_metadata.check_index(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"effort": 1}, "its own digest is of other content"),
        ({"effort": 10**9}, "effort is 1000000000"),
        ({"part_rows": 1}, "parts, and 7 files"),
        ({"sentences": 10**15}, "parts, and 7 files"),
        ({"dimension": 10**30}, "dimension is 1000"),
        ({"files": {}}, "parts, and 0 files"),
        ({"files": 3}, "not what st-paragram index writes"),
        ({"digest": None}, "its own digest"),
        ({"recall": "0.9"}, "recall is '0.9'"),
        ({"surprise": 1}, "surprise"),
        ({"model": [[]]}, "model is"),
    ],
)
def test_an_edited_index_json_is_refused(inexact, tmp_path, change, message):
    folder = shutil.copytree(inexact.folder, tmp_path / "copy.index")
    values = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps(values | change))
    with pytest.raises(MiningError, match=message) as caught:
        SearchIndex(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"format_version": ' + "9" * 5000 + "}", "\ufeff{}", "NaN"])
def test_an_index_json_that_is_no_such_thing_is_refused_in_a_line(copy, content):
    (copy / "index.json").write_text(content)
    with pytest.raises(MiningError, match="not what st-paragram index writes"):
        SearchIndex(copy)


def test_a_part_that_asks_for_more_memory_than_there_is_is_refused(inexact, monkeypatch):
    import faiss

    def read_index(path, flags):
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(faiss, "read_index", read_index)
    with pytest.raises(MiningError, match=r"part-0000.faiss: no index that faiss can read \(std::bad_alloc\)"):
        SearchIndex(inexact.folder).search(["ba"])


def test_rows_outside_an_index_are_an_error(inexact, model, monkeypatch):
    index = SearchIndex(inexact.folder)
    part = index._parts[0][1]
    for wrong in (-2, part.ntotal):
        monkeypatch.setattr(part, "search", lambda queries, k, row=wrong: (None, np.full((len(queries), k), row)))
        with pytest.raises(MiningError, match="rows outside an index of"):
            index.search(["ba"])


def test_nothing_is_left_of_a_build_that_fails(tmp_path, source, model, monkeypatch):
    with pytest.raises(SettingsError, match="IVF5000"):
        SearchIndex.build(source, tmp_path / "i", model, SearchSettings(index="IVF5000,Flat"))
    (tmp_path / "empty.txt").write_text("\n7\n")
    with pytest.raises(MiningError, match="no sentence"):
        SearchIndex.build(tmp_path / "empty.txt", tmp_path / "i", model)
    monkeypatch.setattr("st_paragram.tools.search.indexes.write", lambda index, path: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        SearchIndex.build(source, tmp_path / "i", model, SearchSettings(index="HNSW8"))
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]


def test_what_a_killed_build_left_is_cleared_away(tmp_path, source, model):
    left = tmp_path / ".i.0123456789ab.part"
    (left / "new" / "sentences").mkdir(parents=True)
    (left / "new" / "part-0000.faiss").write_text("torn")
    SearchIndex.build(source, tmp_path / "i", model)
    assert sorted(path.name for path in (tmp_path / "i").iterdir()) == ["index.json", "sentences", "vectors.npy"]
    assert [path.name for path in tmp_path.iterdir()] == ["i"]


def test_an_index_is_replaced_only_if_asked_for_and_nothing_else_ever(tmp_path, source, model):
    SearchIndex.build(source, tmp_path / "i", model)
    with pytest.raises(MiningError, match="--overwrite"):
        SearchIndex.build(source, tmp_path / "i", model)
    (tmp_path / "short.txt").write_text("ba ce\n")
    assert len(SearchIndex.build(tmp_path / "short.txt", tmp_path / "i", model, overwrite=True)) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["i", "short.txt"]
    (tmp_path / "precious").mkdir()
    with pytest.raises(MiningError, match="not a search index"):
        SearchIndex.build(source, tmp_path / "precious", model, overwrite=True)


def test_a_model_of_nan_is_refused(tmp_path, source, model, vocabulary, flat, monkeypatch):
    monkeypatch.setattr(Encoder, "encode", lambda self, texts, **_: np.full((len(texts), 16), np.nan, np.float32))
    with pytest.raises(MiningError, match="length nan"):
        SearchIndex.build(source, tmp_path / "i", model)
    with pytest.raises(MiningError, match=r"queries: .* number 1 has length nan"):
        SearchIndex(flat.folder).search(["ba"])
    assert not list(tmp_path.iterdir())


def test_metadata_are_read_as_they_were_written(flat):
    metadata = index_metadata.read_metadata(flat.folder)
    assert metadata == flat.metadata and metadata.recall == 1.0 and metadata.effort == 0
    assert set(metadata.files) >= {"vectors.npy", "sentences/text"}


def test_commands(tmp_path, source, model, texts, flat, capsys, monkeypatch):
    folder = tmp_path / "lines.index"
    assert run("index", source, "--model", model, "--output", folder, "--index", "IVF4,Flat") == 0
    printed, said = capsys.readouterr()
    assert printed == "" and f"{len(flat)} sentences of {len(texts) + 2} lines" in said and "IVF4,Flat: finds" in said
    assert run("search", folder, texts[0], "-k", 3) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [len(row) for row in rows] == [3, 3, 3] and rows[0][1:] == ["3", texts[0]]
    assert run("search", folder, texts[0], "ba ce", "-k", 2) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.split("\n")[:-1]]
    assert [row[0] for row in rows] == [texts[0]] * 2 + ["ba ce"] * 2 and len(rows[0]) == 4
    (tmp_path / "queries").write_text(f"{texts[1]}\n\nba\tce\n")
    monkeypatch.setattr(search_command, "_BLOCK", 1)
    out = tmp_path / "out.tsv"
    assert run("search", folder, "--queries", tmp_path / "queries", "-k", 1, "--output", out) == 0
    rows = [line.split("\t") for line in out.read_text(encoding="utf-8").split("\n")[:-1]]
    assert [row[0] for row in rows] == [texts[1], "ba ce"]
    assert capsys.readouterr().out == "" and not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give queries either"),
        (["ba", "--queries", "x"], "give queries either"),
        ([" "], "blank"),
        (["ba", "-k", "0"], "k is 0"),
        (["ba", "--effort", "0"], "effort is 0"),
        (["--queries", "/dev/null"], "no queries"),
        (["ba", "--memory", "much"], "memory"),
    ],
)
def test_bad_commands_are_refused_in_a_line(flat, arguments, message, capsys):
    assert run("search", flat.folder, *arguments) == 1
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


def test_another_build_at_the_same_place_is_refused_and_not_disturbed(tmp_path, source, model):
    work = tmp_path / ".i.0123456789ab.part"
    work.mkdir()
    with FileLock(tmp_path / ".i.lock"), pytest.raises(ParagramError, match="another run"):
        SearchIndex.build(source, tmp_path / "i", model)
    assert work.exists()


def test_an_index_that_was_about_to_be_replaced_comes_back(tmp_path, source, model):
    before = SearchIndex.build(source, tmp_path / "i", model).metadata
    (tmp_path / ".i.0123456789ab.part").mkdir()
    (tmp_path / "i").rename(tmp_path / ".i.0123456789ab.part" / "old")  # and there the run was killed
    with pytest.raises(MiningError, match="exists; choose another name"):
        SearchIndex.build(source, tmp_path / "i", model)
    assert SearchIndex(tmp_path / "i").metadata == before
