"""Mining: the file written compared with a plain search, whatever the shards, the workers and the interruptions."""

from __future__ import annotations

import argparse
import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import forked
from support.limits import largest_file
from support.mining_process import mine_until_killed

from st_paragram.cli import mine as command
from st_paragram.cli.main import main
from st_paragram.errors import MiningError, ParagramError, SettingsError, TextError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.bitext_mining.candidates import Candidates, ScoredPairs, unordered
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.miner import mine
from st_paragram.tools.bitext_mining.search_stage import read_found
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.search import indexes
from st_paragram.tools.search.exact import exact, ranked
from st_paragram.tools.search.neighbours import Neighbours
from st_paragram.tools.search.sentences import Sentences, write_sentences
from st_paragram.tools.search.settings import parse_memory
from st_paragram.tools.search.stored_search import approximate, without_self
from st_paragram.tools.search.vectors import StoredVectors, VectorType, pack, unit_vectors
from st_paragram.tools.stages import executors
from st_paragram.tools.stages.executors import LocalExecutor
from st_paragram.tools.stages.work import Work

pytest.importorskip("faiss")
PLAIN = MiningSettings(k=3, margin=Margin.RATIO)


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary) -> str:
    folder = tmp_path_factory.mktemp("model") / "p-sp-xx"
    embedding = SentencePieceEmbedding(vocabulary, 12)
    model_directory.save(pipeline(embedding, device="cpu"), folder)
    return str(folder)


@pytest.fixture
def texts(tmp_path, pairs) -> list[str]:
    """Both sides of the pairs, in other orders, with blank, short and repeated lines among them."""
    paths = []
    for side, name in enumerate("ab"):
        lines = [pair[side] for pair in pairs[:400]] + [
            "",
            "  ",
            "-",
            pairs[0][side],
            pairs[1][side].replace(" ", "  "),
        ]
        random.Random(side).shuffle(lines)
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text("".join(f"{line}\n" for line in lines))
    return list(map(str, paths))


def distinct(path: str) -> list[str]:
    lines = [" ".join(line.split()) for line in Path(path).read_text().split("\n")]
    return [line for line in dict.fromkeys(lines) if sum(map(str.isalnum, line)) >= 2]


def units(model: str, sentences: list[str]) -> np.ndarray:
    vectors = model_directory.load(model, device="cpu").encode(sentences).astype(np.float32)
    stored = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16).astype(np.float64)
    return stored / np.linalg.norm(stored, axis=1, keepdims=True)


def plain(model: str, source: list[str], target: list[str], k: int) -> list[tuple[float, str, str]]:
    """Ratio margins, best first, each sentence once: all in memory, with sorted lists."""
    cosines = units(model, source) @ units(model, target).T
    near = [np.argsort(-cosines, axis=1)[:, :k], np.argsort(-cosines.T, axis=1)[:, :k]]
    means = [np.take_along_axis(c, n, 1).mean(axis=1) for c, n in zip((cosines, cosines.T), near, strict=True)]
    scores = cosines / np.maximum((means[0][:, None] + means[1][None]) / 2, 1e-6)
    found = {(i, max(near[0][i], key=lambda j, i=i: scores[i, j])) for i in range(len(source))}
    found |= {(max(near[1][j], key=lambda i, j=j: scores[i, j]), j) for j in range(len(target))}
    taken: list[tuple[float, str, str]] = []
    used: tuple[set[int], set[int]] = (set(), set())
    for i, j in sorted(found, key=lambda pair: -scores[pair]):
        if i not in used[0] and j not in used[1]:
            used[0].add(i), used[1].add(j)
            taken.append((scores[i, j], source[i], target[j]))
    return taken


def rows_of(path: Path) -> list[tuple[float, str, str]]:
    rows = [line.split("\t") for line in path.read_text().split("\n")[:-1]]
    return [(float(score), a, b) for score, a, b in rows]


def test_pairs_are_those_of_a_plain_search(model, texts, tmp_path):
    report = mine(texts, tmp_path / "p.tsv", model, PLAIN)
    rows = rows_of(tmp_path / "p.tsv")
    expected = plain(model, distinct(texts[0]), distinct(texts[1]), 3)
    assert {row[1:] for row in rows} == {row[1:] for row in expected}
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    np.testing.assert_allclose([row[0] for row in rows], [row[0] for row in expected], atol=1e-3)
    counts = report.counts[0]
    assert (counts.lines, counts.blank, counts.near_empty) == (405, 2, 1)
    assert counts.sentences == len(distinct(texts[0])) == counts.lines - 3 - counts.repeated
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b.txt", "p.tsv"}


@pytest.mark.parametrize("index", ["Flat", "HNSW8", "IVF4,PQ6x4fs"])
def test_shards_and_workers_change_nothing(model, texts, tmp_path, index, monkeypatch):
    settings = replace(PLAIN, index=index, recall=0.5)
    mine(texts, tmp_path / "one.tsv", model, settings)
    monkeypatch.setattr("st_paragram.tools.bitext_mining.settings.QUERY_BLOCK", 64)
    mine(texts, tmp_path / "two.tsv", model, replace(settings, shard_rows=64))
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()


@pytest.mark.slow
def test_two_processes_write_the_same(model, texts, tmp_path, monkeypatch):
    forked.instead_of_spawn(monkeypatch, executors)
    mine(texts, tmp_path / "one.tsv", model, PLAIN)
    mine(texts, tmp_path / "two.tsv", model, PLAIN, work=Work(executor=LocalExecutor(2)))
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()


def test_only_what_changed_is_done_again(model, texts, tmp_path):
    def tasks(settings: MiningSettings, force: str | None = None) -> list[str]:
        work = Work(tmp_path / "work", True, force)
        report = mine(texts, tmp_path / "p.tsv", model, settings, overwrite=True, work=work)
        return [each.name for each in report.times if each.tasks]

    assert tasks(PLAIN) == ["sentences", "embed", "search", "pairs"]
    content = (tmp_path / "p.tsv").read_bytes()
    assert tasks(PLAIN) == []
    assert tasks(replace(PLAIN, margin=Margin.DISTANCE, threshold=0.1)) == ["pairs"]
    assert tasks(replace(PLAIN, k=2)) == ["search", "pairs"]
    assert tasks(replace(PLAIN, vector_type=VectorType.INT8)) == ["embed", "search", "pairs"]
    assert tasks(replace(PLAIN, index="IVF4,Flat")) == ["embed", "index", "effort", "search", "pairs"]
    assert tasks(PLAIN, force="sentences") == ["sentences", "embed", "search", "pairs"]
    assert (tmp_path / "p.tsv").read_bytes() == content
    os.utime(texts[0], (1, 1))
    assert tasks(PLAIN) == ["sentences", "embed", "search", "pairs"]


def test_paraphrases_of_one_text(model, texts, tmp_path):
    settings = replace(PLAIN, paraphrase=True, margin=Margin.ABSOLUTE, candidates=Candidates.ALL)
    mine(texts[:1], tmp_path / "p.tsv", model, settings)
    sentences = distinct(texts[0])
    cosines = units(model, sentences) @ units(model, sentences).T
    np.fill_diagonal(cosines, -2)
    expected = set()
    for row, near in enumerate(np.argsort(-cosines, axis=1)[:, :3]):
        expected |= {tuple(sorted((row, int(other)))) for other in near}
    rows = rows_of(tmp_path / "p.tsv")
    assert {(a, b) for _, a, b in rows} == {(sentences[i], sentences[j]) for i, j in expected}
    assert len(rows) == len(expected)
    mine(texts[:1], tmp_path / "m.tsv", model, replace(settings, candidates=Candidates.MAX))
    once = [text for row in rows_of(tmp_path / "m.tsv") for text in row[1:]]
    assert len(once) == len(set(once))


def test_ids_come_out_in_place_of_sentences(model, texts, tmp_path):
    for number, path in enumerate(texts):
        lines = Path(path).read_text().split("\n")[:-1]
        Path(path).write_text("".join(f"{'ab'[number]}-{i}\t{line}\n" for i, line in enumerate(lines)))
    plain_texts = [dict(line.split("\t") for line in Path(path).read_text().split("\n")[:-1]) for path in texts]
    mine(texts, tmp_path / "p.tsv", model, replace(PLAIN, with_ids=True))
    rows = rows_of(tmp_path / "p.tsv")
    assert all(a in plain_texts[0] and b in plain_texts[1] for _, a, b in rows)
    first = {" ".join(text.split()): key for key, text in reversed(plain_texts[0].items())}
    assert all(first[" ".join(plain_texts[0][a].split())] == a for _, a, _ in rows)
    Path(texts[1]).write_text("no tab here\n")
    with pytest.raises(MiningError, match=r"b\.txt: line 1 has no tab"):
        mine(texts, tmp_path / "q.tsv", model, replace(PLAIN, with_ids=True))


def test_thresholds_and_frequent_sentences(model, texts, tmp_path):
    mine(texts, tmp_path / "all.tsv", model, PLAIN)
    middle = rows_of(tmp_path / "all.tsv")[50][0]
    mine(texts, tmp_path / "some.tsv", model, replace(PLAIN, threshold=middle - 1e-9))
    assert 45 <= len(rows_of(tmp_path / "some.tsv")) <= 55
    report = mine(texts, tmp_path / "rare.tsv", model, replace(PLAIN, most_repeats=1))
    assert report.counts[0].boilerplate >= 4 and report.counts[0].repeated == 0
    assert report.counts[0].lines == report.counts[0].sentences + report.counts[0].boilerplate + 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"a\.txt: no sentences in 0 lines"),
        ("\n \n-\n", r"a\.txt: no sentences in 3 lines"),
        ("one sentence here\n", r"a\.txt: 1 distinct sentences, but 3 neighbors are needed"),
        ("the same again\n" * 50, r"a\.txt: 1 distinct sentences, but 3 neighbors are needed"),
        (b"good line\n\xff\xfe bad\n", r"a\.txt: line 2 is not UTF-8 \(byte 0xff\)"),
    ],
)
def test_texts_that_cannot_be_mined(model, texts, tmp_path, content, message):
    Path(texts[0]).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises((MiningError, TextError), match=message) as caught:
        mine(texts, tmp_path / "p.tsv", model, PLAIN)
    assert "\n" not in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b.txt"}


def test_refusals(model, texts, tmp_path):
    with pytest.raises(SettingsError, match="1 text, where 2 are needed"):
        mine(texts[:1], tmp_path / "p.tsv", model)
    with pytest.raises(TextError, match=r"none\.txt: No such file"):
        mine(["none.txt", texts[1]], tmp_path / "p.tsv", model)
    with pytest.raises(SettingsError, match="faiss cannot make it"):
        mine(texts, tmp_path / "p.tsv", model, replace(PLAIN, index="IVFx"))
    with pytest.raises(SettingsError, match="has 4096 lists, but there are"):
        mine(texts, tmp_path / "p.tsv", model, replace(PLAIN, index="IVF4096,Flat"))
    (tmp_path / "p.tsv").write_text("old")
    with pytest.raises(ParagramError, match=r"p\.tsv exists; choose another name or give --overwrite"):
        mine(texts, tmp_path / "p.tsv", model, PLAIN)
    assert (tmp_path / "p.tsv").read_text() == "old"
    with pytest.raises(ParagramError):
        mine(texts, tmp_path / "q.tsv", str(tmp_path / "no-model"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k is 0; it must be greater than or equal to 1"),
        ({"recall": 0}, "recall is 0"),
        ({"memory": 1000}, "memory is 1,000 bytes; give at least"),
        ({"index": "a b"}, "index is 'a b'"),
        ({"shard_rows": 0}, "shard_rows is 0"),
    ],
)
def test_settings_are_checked(change, message):
    with pytest.raises(SettingsError, match=message):
        MiningSettings(**change)


def test_sizes_of_memory():
    assert [parse_memory(text) for text in ("4G", "512M", "1.5g", "2GiB", "300000000")] == [
        4 << 30,
        512 << 20,
        3 << 29,
        2 << 30,
        300_000_000,
    ]
    with pytest.raises(SettingsError, match="give a size like 4G"):
        parse_memory("much")


def test_embeddings_without_a_direction_are_refused():
    good = np.ones((3, 4), np.float32)
    for bad in (np.nan, np.inf, 0):
        spoilt = good.copy()
        spoilt[1] = bad
        with pytest.raises(MiningError, match="x: the embedding of number 2 has length"):
            pack(spoilt, VectorType.FLOAT16, "x")


@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from(VectorType), st.integers(0, 5))
def test_stored_vectors_are_the_vectors(tmp_path_factory, count, rows, kind, seed):
    vectors = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32) * 7
    folder = tmp_path_factory.mktemp("v")
    stored = pack(vectors, kind, "x")
    paths = []
    for start in range(0, count, rows):
        paths.append(folder / f"{start}.npy")
        np.save(paths[-1], stored[start : start + rows])
    read = StoredVectors(tuple(paths))
    assert (len(read), read.dim) == (count, 8)
    whole = read.rows(0, count)
    np.testing.assert_array_equal(whole, unit_vectors(stored))
    expected = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(whole, expected, atol=0.001 if kind is VectorType.FLOAT16 else 0.01)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-6)
    picks = np.random.default_rng(seed).integers(0, count, 20)
    np.testing.assert_array_equal(read.take(picks), whole[picks])
    begin = count // 3
    np.testing.assert_array_equal(read.rows(begin, count), whole[begin:])


@given(st.integers(4, 60), st.integers(1, 4), st.integers(1, 30), st.integers(0, 9))
def test_a_search_in_parts_is_a_search(tmp_path_factory, count, k, part_rows, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, size=(count, 3)).astype(np.float32) + 0.25  # many ties
    path = tmp_path_factory.mktemp("v") / "x.npy"
    np.save(path, pack(vectors, VectorType.FLOAT16, "x"))
    corpus = StoredVectors((path,))
    whole = corpus.rows(0, count)
    cosines = (whole[:5].astype(np.float64) @ whole.astype(np.float64).T).astype(np.float32)
    found = exact(whole[:5], corpus, k, part_rows)
    np.testing.assert_allclose(found.similarities, -np.sort(-cosines, axis=1)[:, :k], atol=1e-6)
    if count <= k + 12:  # all rows are candidates: of equally near ones the earlier
        order = np.lexsort((np.broadcast_to(np.arange(count), cosines.shape), -cosines), axis=1)[:, :k]
        np.testing.assert_array_equal(np.sort(found.indices, 1), np.sort(order, 1))


@given(st.integers(2, 40), st.integers(1, 3), st.integers(0, 9))
def test_given_rows_are_ranked_wherever_none_stand_among_them(tmp_path_factory, count, k, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("v") / "x.npy"
    np.save(path, pack(rng.integers(-2, 3, size=(count, 4)).astype(np.float32) + 0.25, VectorType.FLOAT16, "x"))
    corpus = StoredVectors((path,))
    whole = corpus.rows(0, count)
    rows = np.stack([rng.permutation(count) for _ in range(count)])
    rows[rng.random(rows.shape) < 0.4] = -1
    k = min(k, count)
    cosines = (whole.astype(np.float64) @ whole.astype(np.float64).T).astype(np.float32)
    found = ranked(whole, corpus, rows, k)
    for query, given_rows in enumerate(rows):
        best = sorted((-cosines[query, row], row) for row in given_rows if row >= 0)[:k]
        expected = [(-minus, row) for minus, row in best] + [(-1, 0)] * (k - len(best))
        assert found.indices[query].tolist() == [row for _, row in expected]
        np.testing.assert_allclose(found.similarities[query], [cosine for cosine, _ in expected], atol=1e-6)


def test_places_that_are_not_filled_have_cosine_minus_one(tmp_path):
    vectors = np.eye(8, dtype=np.float32)
    np.save(tmp_path / "x.npy", pack(vectors, VectorType.FLOAT16, "x"))
    corpus = StoredVectors((tmp_path / "x.npy",))
    index = indexes.build("IVF4,Flat", corpus, 0, 8, seed=0)
    found = approximate(corpus.rows(0, 8), corpus, [(0, index)], 5, effort=1)
    assert (found.similarities[:, 0] == 1).all() and (found.similarities == -1).any()
    assert (found.indices >= 0).all()


def test_a_sentence_is_not_its_own_neighbour():
    neighbours = Neighbours(np.array([[1, 1, 0.5], [1, 0.9, 0.8]], np.float32), np.array([[3, 7, 1], [5, 6, 4]]))
    rest = without_self(neighbours, np.array([3, 4]), 2)
    assert rest.indices.tolist() == [[7, 1], [5, 6]]  # row 4 was found last
    assert rest.similarities.tolist() == [[1, 0.5], pytest.approx([1, 0.9])]


def test_pairs_of_one_text_once():
    pairs = unordered(ScoredPairs(np.array([2, 1, 0]), np.array([1, 2, 3]), np.array([0.5, 0.7, 0.6])))
    assert (pairs.source.tolist(), pairs.target.tolist(), pairs.scores.tolist()) == ([1, 0], [2, 3], [0.7, 0.6])


@given(st.lists(st.text("ab \t\u2028é\r", max_size=5), max_size=40))
def test_sentences_against_a_dict(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("s")
    (folder / "x.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
    expected = list(dict.fromkeys(text for line in lines if sum(map(str.isalnum, text := " ".join(line.split()))) >= 2))
    if not expected:
        with pytest.raises(MiningError, match="no sentence"):
            write_sentences(str(folder / "x.txt"), folder / "out")
        return
    counts = write_sentences(str(folder / "x.txt"), folder / "out")
    sentences = Sentences(folder / "out")
    assert sentences.texts(range(len(sentences))) == expected
    assert counts.lines == len(lines) == counts.sentences + counts.blank + counts.near_empty + counts.repeated
    numbers = [next(i for i, line in enumerate(lines, 1) if " ".join(line.split()) == text) for text in expected]
    assert sentences.ids(range(len(sentences))) == list(map(str, numbers))


def test_an_index_that_is_damaged(tmp_path):
    (tmp_path / "x.faiss").write_bytes(b"IwFl" + b"\0" * 40)
    with pytest.raises(MiningError, match=r"x\.faiss: no index that faiss can read"):
        indexes.read(tmp_path / "x.faiss")


def test_which_index_is_chosen():
    assert indexes.choose_index("auto", 10_000, 10_000, 300) == "Flat"
    assert indexes.choose_index("auto", 1_000_000, 1_000_000, 300) == "IVF2048,PQ75x4fs"
    assert indexes.choose_index("auto", 1_000_000, 1_000_000, 1024) == "IVF2048,PQ256x4fs"
    assert indexes.choose_index("HNSW32", 10, 10, 300) == "HNSW32"


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_file(model, texts, tmp_path, tmp_path_factory):
    stages = ("embed_stage:2", "index_stage:2", "effort_stage:2", "search_stage:2", "pair_stage:1")
    points = ["search.sentences:2", *(f"bitext_mining.{each}" for each in stages)]
    settings = replace(PLAIN, index="IVF4,Flat")
    for number, point in enumerate(points):
        output = str(tmp_path / f"{number}.tsv")
        process = forked.start(
            mine_until_killed, texts, output, model, settings, point, folder=tmp_path_factory.mktemp("log")
        )
        process.join()
        assert process.exitcode == -signal.SIGKILL
    mine(texts, tmp_path / "whole.tsv", model, settings)
    for number in range(len(points)):
        report = mine(texts, tmp_path / f"{number}.tsv", model, settings, overwrite=True)
        assert sum(each.tasks for each in report.times) < 11  # of 11 in all
        assert (tmp_path / f"{number}.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {
        "a.txt",
        "b.txt",
        "whole.tsv",
        *(f"{n}.tsv" for n in range(6)),
    }


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return command.run(parser.parse_args(list(map(str, arguments))))


def test_the_command(model, texts, tmp_path, capsys):
    arguments = ["--model", model, "--output", tmp_path / "p.tsv", "-k", 3]
    assert run("--source", texts[0], "--target", texts[1], *arguments) == 0
    printed, told = capsys.readouterr()
    assert "source to target: index Flat, exact" in told and "2 blank, 1 near-empty" in told
    assert printed == "" and told.endswith(f"p.tsv: {len(rows_of(tmp_path / 'p.tsv')):,} pairs\n")
    assert run("--paraphrase", texts[0], *arguments, "--overwrite", "--margin", "absolute", "--index", "IVF4,Flat") == 0
    assert "among themselves: index IVF4,Flat, effort" in capsys.readouterr().err
    with pytest.raises(SettingsError, match="--source given; give --source and --target, --paraphrase or --documents"):
        run("--source", texts[0], *arguments)


def test_a_full_disk(model, texts, tmp_path, capsys):
    arguments = ["mine", "--source", texts[0], "--target", texts[1], "--model", model, "--output", tmp_path / "p.tsv"]
    with largest_file(4096):
        assert main(list(map(str, arguments))) == 1
    assert "File too large" in capsys.readouterr().err.strip().split("\n")[-1]
    assert not (tmp_path / "p.tsv").exists() and not list(tmp_path.rglob("*.part"))


def test_a_shard_of_neighbours_that_is_damaged_is_named(tmp_path):

    path = tmp_path / "00000.npz"
    np.savez(path, similarities=np.ones((2, 3), np.float32), indices=np.arange(6).reshape(2, 3))
    expected = ("similarities", "indices")
    assert [array.shape for array in read_found(path, expected)] == [(2, 3), (2, 3)]
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(MiningError, match=r"00000\.npz: damaged .*start again"):
        read_found(path, expected)
