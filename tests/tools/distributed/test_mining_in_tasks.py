"""Steps of mining in many files give the pairs that `mine` finds in two texts."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor

import st_paragram
from st_paragram import MiningSettings, distributed
from st_paragram.core.sample import sample_pairs
from st_paragram.errors import MiningError, ParagramError, SettingsError
from st_paragram.tools.bitext_mining.candidates import candidate_pairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.distributed import mining, search
from st_paragram.tools.distributed.mining import (
    SIDES,
    Side,
    make_mining_folder,
    write_table,
)
from st_paragram.tools.distributed.search import DividedIndex
from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.results import Neighbors, Vectors
from st_paragram.tools.neighbors.vectors import UnitRows

FILES = 3
#: More lines: a blank, one without letters, one without a known token, repetitions.
MORE = ["", "?!", "გამარჯობა", "To  be sure,\tit rains.", "To be sure, it rains."]


def run(*steps: object, tasks: int = FILES) -> None:
    """Run a pipeline as an executor does; a list in it is the documents of each task."""
    for rank in range(tasks):
        data: object = None
        for step in deepcopy(steps):
            data = step[rank] if isinstance(step, list) else step.run(data, rank, tasks)  # type: ignore[attr-defined]
        deque(data or (), maxlen=0)  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def texts() -> dict[str, list[str]]:
    """Lines of both texts; the targets are not in the order of the sources."""
    pairs = list(sample_pairs("es", 240))
    return {
        "source": [source for source, _ in pairs] + MORE + [pairs[0][0]],
        "target": [target for _, target in pairs[::-1]] + MORE,
    }


@pytest.fixture(scope="module")
def vectors(texts: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the embeddings of both texts."""
    folder = tmp_path_factory.mktemp("mining")
    for side in SIDES:
        documents = [
            [Document(text, str(number)) for number, text in enumerate(texts[side][task::2])]
            for task in range(2)
        ]
        run(documents, distributed.DealTexts(folder, side, FILES), tasks=2)
        embed = st_paragram.EmbedTexts(
            "p-sp-mini", str(folder / "vectors" / side), normalize=True, only_known=True
        )
        run(distributed.DistinctTexts(folder, side), embed)
    return folder


@pytest.fixture
def folder(vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same embeddings in a folder for results; an index has a copy per file."""
    monkeypatch.setattr(search, "_COPY", 15 // FILES)
    (tmp_path / "vectors").symlink_to(vectors / "vectors")
    return tmp_path


def index(folder: Path, side: str, settings: MiningSettings) -> None:
    """Train an index, and make copies of it."""
    run(distributed.TrainIndex(folder, side, settings), tasks=1)
    run(distributed.IndexVectors(folder, side))


def mined(folder: Path, settings: MiningSettings) -> list[tuple[float, str, str]]:
    """Run all steps from the embeddings on, and return the pairs."""
    for side in SIDES:
        index(folder, side, settings)
    for side in SIDES:
        run(distributed.ChooseEffort(folder, side, settings), tasks=1)
        run(distributed.SearchVectors(folder, side, settings))
    for side in SIDES:
        run(distributed.ScorePairs(folder, side, settings))
    run(distributed.MatchPairs(folder), tasks=1)
    run(distributed.WritePairs(folder), tasks=2)
    return rows(*sorted(folder.glob("mined/*.tsv")))


def rows(*paths: Path) -> list[tuple[float, str, str]]:
    result = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            score, source, target = line.split("\t")
            result.append((float(score), source, target))
    return result


def texts_of(side: Side, numbers: Iterable[int]) -> list[str]:
    return side.take("vectors", "text", pa.array(list(numbers))).to_pylist()


def test_sentences_are_distinct_and_known(vectors: Path, texts: dict[str, list[str]]) -> None:
    for name in SIDES:
        side = Side(vectors, name)
        assert side.files() == list(range(FILES))
        sentences = texts_of(side, range(len(side)))
        left_out = {"", "?!", "გამარჯობა"}
        expected = {" ".join(text.split()) for text in texts[name]} - left_out
        assert sorted(sentences) == sorted(expected)
        numbers = [200, 7, 0, 7]
        assert texts_of(side, numbers) == [sentences[number] for number in numbers]


@pytest.mark.parametrize(
    "settings",
    [
        MiningSettings(),
        MiningSettings(margin=Margin.RATIO, threshold=1.1, neighbors=3),
        MiningSettings(neighbors=1000),  # more than there are sentences
        MiningSettings(index="IVF4,SQfp16", recall=1),
        MiningSettings(index="IVF2,SQ8", recall=1, threshold=0.05),
    ],
)
def test_pairs_are_those_of_mine(
    folder: Path, texts: dict[str, list[str]], settings: MiningSettings
) -> None:
    for side in SIDES:
        (folder / side).write_text("\n".join(texts[side]) + "\n", encoding="utf-8")
    names = [str(folder / side) for side in SIDES]
    st_paragram.mine(
        names,
        folder / "mine.tsv",
        "p-sp-mini",
        MiningSettings(
            margin=settings.margin, threshold=settings.threshold, neighbors=settings.neighbors
        ),
    )
    expected = rows(folder / "mine.tsv")
    pairs = mined(folder, settings)
    scores = {pair[1:]: pair[0] for pair in pairs}
    assert len(pairs) == len(scores) > 200
    assert pairs == sorted(pairs, key=lambda pair: -pair[0])
    assert scores == pytest.approx({pair[1:]: pair[0] for pair in expected}, abs=1e-5)


def write_side(folder: Path, name: str, counts: list[int]) -> None:
    """Write files with numbered sentences whose vectors do not matter."""
    (folder / "vectors" / name).mkdir(parents=True)
    for file, count in enumerate(counts):
        embedding = pa.FixedSizeListArray.from_arrays(np.ones(2 * count, np.float16), 2)
        table = pa.table(
            {"text": [f"{name} {file} {row}" for row in range(count)], "embedding": embedding}
        )
        pq.write_table(table, folder / "vectors" / name / f"0000{file}.parquet")


def write_neighbors(folder: Path, name: str, file: int, neighbors: Neighbors) -> None:
    side = Side(folder, name)
    columns = {
        "cosine": neighbors.similarities.ravel(),
        "number": neighbors.indices.ravel(),
    }
    write_table(pa.table(columns), side.path("neighbors", file))
    write_table(pa.table({"mean": neighbors.means}), side.path("means", file))


@pytest.mark.parametrize("margin", list(Margin))
def test_scores_and_matches_are_those_of_candidate_pairs(tmp_path: Path, margin: Margin) -> None:
    random = np.random.default_rng(0)
    counts = {"source": [5, 0, 12], "target": [7, 6]}
    neighbors = {}
    for name, other in zip(SIDES, SIDES[::-1], strict=True):
        write_side(tmp_path, name, counts[name])
        total = sum(counts[name])
        cosines = np.sort(random.uniform(0.1, 1, (total, 3)).astype(np.float32))[:, ::-1]
        numbers = np.argsort(random.random((total, sum(counts[other]))))[:, :3]
        neighbors[name] = Neighbors(cosines, numbers)
        for file, end in enumerate(np.cumsum(counts[name])):
            if counts[name][file]:
                part = slice(end - counts[name][file], end)
                write_neighbors(tmp_path, name, file, Neighbors(cosines[part], numbers[part]))
    settings = MiningSettings(margin=margin, threshold=0.2)
    for name in SIDES:
        run(distributed.ScorePairs(tmp_path, name, settings), tasks=2)
    run(distributed.MatchPairs(tmp_path), tasks=1)
    pairs = pq.read_table(tmp_path / "matches" / "00000.parquet")
    expected = candidate_pairs(neighbors["source"], neighbors["target"], margin)
    expected = expected.at(expected.scores >= 0.2)
    assert len(pairs) > 3
    for name in SIDES:
        np.testing.assert_array_equal(pairs[name], getattr(expected, name))
    np.testing.assert_array_equal(pairs["scores"], expected.scores)

    run(distributed.WritePairs(tmp_path), tasks=2)
    written = rows(tmp_path / "mined/00000.tsv")
    assert [score for score, _, _ in written] == pytest.approx(expected.scores, abs=5e-7)
    source = int(expected.source[0])
    file = 0 if source < 5 else 2  # file 1 is empty
    assert written[0][1] == f"source {file} {source - (5 if file else 0)}"


def all_vectors(side: Side) -> Vectors:
    return np.concatenate([rows.rows(0, len(rows)) for rows in side.vectors(side.files())])


def test_files_of_an_index_have_the_same_lists_and_all_vectors(folder: Path) -> None:
    side = Side(folder, "target")
    index(folder, "target", MiningSettings(index="IVF8,Flat"))
    trained: Any = faiss.read_index(str(side.path("trained", 0, ".faiss")))
    assert trained.ntotal == 0
    stored = []
    for path in side.paths("index"):
        part: Any = faiss.read_index(str(path))
        assert part.ntotal > 0
        centroids = part.quantizer.reconstruct_n(0, 8)
        np.testing.assert_array_equal(centroids, trained.quantizer.reconstruct_n(0, 8))
        part.make_direct_map()
        stored.append(part.reconstruct_n(0, part.ntotal))
    assert len(stored) == FILES
    np.testing.assert_array_equal(np.concatenate(stored), all_vectors(side))


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_the_number_of_copies_does_not_matter(
    folder: Path, monkeypatch: pytest.MonkeyPatch, copies: int
) -> None:
    monkeypatch.setattr(search, "_COPY", 15 // copies)
    settings = MiningSettings(index="IVF8,Flat", recall=1)
    run(distributed.TrainIndex(folder, "target", settings), tasks=1)
    run(distributed.IndexVectors(folder, "target"), tasks=2)
    target = Side(folder, "target")
    assert len(target.paths("index")) == copies
    queries = all_vectors(Side(folder, "source"))
    divided = DividedIndex(target)
    divided.set_effort(8)
    neighbors = divided.search(queries, 3)
    expected = exact(queries, UnitRows(all_vectors(target)), 3)
    np.testing.assert_allclose(neighbors.similarities, expected.similarities, atol=1e-6)
    np.testing.assert_array_equal(neighbors.indices[:, 0], expected.indices[:, 0])


@pytest.mark.parametrize("factory", ["IVF8,PQ64x4fs", "IVF8,SQ8", "HNSW8", "SQ8"])
def test_blocks_of_queries_do_not_matter(
    folder: Path, monkeypatch: pytest.MonkeyPatch, factory: str
) -> None:
    index(folder, "target", MiningSettings(index=factory))
    divided = DividedIndex(Side(folder, "target"))
    divided.set_effort(4)
    queries = all_vectors(Side(folder, "source"))
    whole = divided.candidates(queries, 20)
    monkeypatch.setattr(search, "_LISTS", 4 * 50)
    monkeypatch.setattr(search, "_QUERIES", 7)
    np.testing.assert_array_equal(divided.candidates(queries, 20), whole)


def test_cosines_and_samples_are_those_of_all_vectors(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mining, "_BLOCK", 16)
    side = Side(folder, "target")
    vectors = all_vectors(side)
    random = np.random.default_rng(0)
    numbers = random.integers(-1, len(side), (9, 5))
    queries = vectors[:9]
    expected = np.einsum("nd,ncd->nc", queries, vectors[numbers])
    expected[numbers < 0] = -1
    np.testing.assert_allclose(side.cosines(queries, numbers), expected, atol=1e-6)
    sample = side.sample(len(side) // 4)
    rows = sample.rows(0, len(sample))
    assert len(side) // 4 <= len(rows) < len(side) // 2
    np.testing.assert_array_equal(rows[:4], vectors[:16:4])
    assert len(side.sample(10_000)) == len(side)


def test_the_search_effort_is_the_first_with_enough_recall(folder: Path) -> None:
    queries = all_vectors(Side(folder, "source"))
    target = Side(folder, "target")
    nearest = exact(queries, UnitRows(all_vectors(target)), 1).indices[:, 0]
    index(folder, "target", MiningSettings(index="IVF16,SQfp16"))
    divided = DividedIndex(target)
    for recall in (0.5, 0.9, 1):
        run(distributed.ChooseEffort(folder, "source", MiningSettings(recall=recall)), tasks=1)
        effort = json.loads((folder / "effort/source/00000.json").read_text())
        recalls = {}
        for tried in (effort // 2, effort):
            divided.set_effort(tried)
            found = divided.candidates(queries, len(target))
            recalls[tried] = (found == nearest[:, None]).any(axis=1).mean()
        assert recalls[effort] >= recall
        assert effort == 4 or recalls[effort // 2] < recall


def test_a_failed_task_is_done_again(folder: Path) -> None:
    run(distributed.TrainIndex(folder, "target"), tasks=1)
    path = folder / "index/target"
    (path / ".00001.faiss.part").mkdir(parents=True)  # not ours, so this task cannot write
    (path / ".00001.faiss.part/notes").write_text("mine")

    def executor() -> LocalPipelineExecutor:
        step = distributed.IndexVectors(folder, "target")
        return LocalPipelineExecutor(
            [step], tasks=FILES, workers=1, logging_dir=str(folder / "logs")
        )

    with pytest.raises(ParagramError, match=r"00001\.faiss"):
        executor().run()
    first = (path / "00000.faiss").stat()
    assert executor().get_incomplete_ranks() == [1, 2]
    (path / ".00001.faiss.part/notes").unlink()
    (path / ".00001.faiss.part").rmdir()
    executor().run()
    assert not executor().get_incomplete_ranks()
    assert (path / "00000.faiss").stat() == first
    assert len(list(path.iterdir())) == FILES


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="side 'es' is unknown; choose source or target"):
        distributed.IndexVectors(folder, "es")
    with pytest.raises(SettingsError, match="cannot be mined on many machines"):
        distributed.ScorePairs(folder, settings=MiningSettings(paraphrase=True))
    with pytest.raises(MiningError, match="nothing: no source sentences; run EmbedTexts"):
        run(distributed.TrainIndex(tmp_path / "nothing"), tasks=1)
    run(distributed.TrainIndex(folder, "target"), tasks=1)
    (folder / "trained/target/00000.faiss").write_bytes(b"IwFl")
    with pytest.raises(MiningError, match=r"00000\.faiss: not an index that faiss can read"):
        DividedIndex(Side(folder, "target"))


def test_the_folder_of_a_run_has_its_options_and_no_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "mining"
    make_mining_folder(folder, {"threshold": 0.1})
    make_mining_folder(folder, {"threshold": 0.1})
    with pytest.raises(SettingsError, match=r"mining: made with threshold 0\.1, not 0\.2"):
        make_mining_folder(folder, {"threshold": 0.2})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "texts").write_text("mine")
    with pytest.raises(ParagramError, match="did not make it; move it elsewhere"):
        make_mining_folder(tmp_path / "mine", {})
    assert (tmp_path / "mine" / "texts").read_text() == "mine"
