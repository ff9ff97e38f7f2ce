"""Steps of mining in many files give the pairs that `mine` finds in two texts."""

from __future__ import annotations

from collections import deque
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
from st_paragram import MiningSettings
from st_paragram.core.sample import sample_pairs
from st_paragram.errors import MiningError, ParagramError, SettingsError
from st_paragram.tools.bitext_mining.candidates import candidate_pairs
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.distributed.mining import PAIR, SIDES, Side, make_mining_folder
from st_paragram.tools.neighbors.exact import exact
from st_paragram.tools.neighbors.results import Neighbors

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
        run(documents, st_paragram.DealTexts(folder, side, FILES), tasks=2)
        embed = st_paragram.EmbedTexts(
            "p-sp-mini", str(folder / "vectors" / side), normalize=True, only_known=True
        )
        run(st_paragram.DistinctTexts(folder, side), embed)
    return folder


@pytest.fixture
def folder(vectors: Path, tmp_path: Path) -> Path:
    """The same embeddings in a folder for results."""
    (tmp_path / "vectors").symlink_to(vectors / "vectors")
    return tmp_path


def mined(folder: Path, settings: MiningSettings) -> list[tuple[float, str, str]]:
    """Run all steps from the embeddings on, and return the pairs."""
    for side in SIDES:
        run(st_paragram.TrainIndex(folder, side, settings), tasks=1)
        run(st_paragram.AddVectors(folder, side))
    for side in SIDES:
        run(st_paragram.TuneSearch(folder, side, settings), tasks=1)
        run(st_paragram.SearchVectors(folder, side, settings))
    for side in SIDES:
        run(st_paragram.ScorePairs(folder, side, settings))
    run(st_paragram.MatchPairs(folder), tasks=1)
    run(st_paragram.WritePairs(folder), tasks=2)
    return rows(*sorted(folder.glob("mined/*.tsv")))


def rows(*paths: Path) -> list[tuple[float, str, str]]:
    result = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            score, source, target = line.split("\t")
            result.append((float(score), source, target))
    return result


def test_sentences_are_distinct_and_known(vectors: Path, texts: dict[str, list[str]]) -> None:
    for name in SIDES:
        side = Side(vectors, name)
        assert len(side.paths) == FILES and all(np.diff(side.begins))
        sentences = side.texts(np.arange(len(side)))
        left_out = {"", "?!", "გამარჯობა"}
        expected = {" ".join(text.split()) for text in texts[name]} - left_out
        assert sorted(sentences) == sorted(expected)
        assert side.texts(np.array([7, 0, 200])) == [sentences[7], sentences[0], sentences[200]]


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
        (tmp_path / "neighbors" / name).mkdir(parents=True)
        for file, end in enumerate(np.cumsum(counts[name])):
            part = slice(end - counts[name][file], end)
            path = tmp_path / "neighbors" / name / f"0000{file}.npz"
            np.savez(path, cosines=cosines[part], numbers=numbers[part])
    settings = MiningSettings(margin=margin, threshold=0.2)
    for name in SIDES:
        run(st_paragram.ScorePairs(tmp_path, name, settings), tasks=2)
    run(st_paragram.MatchPairs(tmp_path), tasks=1)
    pairs = np.fromfile(tmp_path / "pairs" / "matched", PAIR)
    expected = candidate_pairs(neighbors["source"], neighbors["target"], margin)
    expected = expected.at(expected.scores >= 0.2)
    assert len(pairs) > 3
    for field, values in (("source", expected.source), ("target", expected.target)):
        np.testing.assert_array_equal(pairs[field], values)
    np.testing.assert_array_equal(pairs["score"], expected.scores)

    run(st_paragram.WritePairs(tmp_path), tasks=2)
    written = rows(tmp_path / "mined/00000.tsv", tmp_path / "mined/00001.tsv")
    assert [score for score, _, _ in written] == pytest.approx(expected.scores, abs=5e-7)
    begins = np.cumsum([0, *counts["source"]])
    file = int(np.searchsorted(begins, pairs["source"][0], side="right")) - 1
    assert written[0][1] == f"source {file} {pairs['source'][0] - begins[file]}"


def test_files_of_an_index_share_its_centroids(folder: Path) -> None:
    run(st_paragram.TrainIndex(folder, "target", MiningSettings(index="IVF4,SQfp16")), tasks=1)
    run(st_paragram.AddVectors(folder, "target"), tasks=2)
    counts = np.diff(Side(folder, "target").begins)
    trained: Any = faiss.read_index(str(folder / "index/target.faiss"))
    assert trained.ntotal == 0
    centroids = trained.quantizer.reconstruct_n(0, 4)
    for file, count in enumerate([counts[0], counts[1] + counts[2]]):
        index: Any = faiss.read_index(str(folder / f"index/target/0000{file}.faiss"))
        assert index.ntotal == count
        np.testing.assert_array_equal(index.quantizer.reconstruct_n(0, 4), centroids)


def test_the_search_effort_is_the_first_with_enough_recall(folder: Path) -> None:
    index = MiningSettings(index="IVF32,SQfp16")
    run(st_paragram.TrainIndex(folder, "target", index), tasks=1)
    run(st_paragram.AddVectors(folder, "target"))
    efforts = []
    for recall in (0.5, 0.9, 1):
        run(st_paragram.TuneSearch(folder, "source", MiningSettings(recall=recall)), tasks=1)
        trained: Any = faiss.read_index(str(folder / "index/target.faiss"))
        efforts.append(trained.nprobe)
    side = Side(folder, "source")
    target = Side(folder, "target")
    queries = side.first_vectors(len(side))
    corpus = target.first_vectors(len(target))
    true = exact(queries.rows(0, len(side)), corpus, 1).indices[:, 0]
    index_of_all: Any = faiss.clone_index(trained)
    index_of_all.add(corpus.rows(0, len(target)))
    recalls = {}
    for effort in (4, 8, 16, 32):
        index_of_all.nprobe = effort
        _, found = index_of_all.search(queries.rows(0, len(side)), 1)
        recalls[effort] = (found[:, 0] == true).mean()
    for recall, effort in zip((0.5, 0.9, 1), efforts, strict=True):
        assert recalls[effort] >= recall - 0.01
        assert effort == 4 or recalls[effort // 2] < recall


def test_a_failed_task_is_done_again(folder: Path) -> None:
    run(st_paragram.TrainIndex(folder, "target"), tasks=1)
    path = folder / "index/target"
    (path / "00001.faiss").mkdir(parents=True)  # this task cannot write

    def executor() -> LocalPipelineExecutor:
        step = st_paragram.AddVectors(folder, "target")
        return LocalPipelineExecutor(
            [step], tasks=FILES, workers=1, logging_dir=str(folder / "logs")
        )

    with pytest.raises(OSError, match=r"00001\.faiss"):
        executor().run()
    first = (path / "00000.faiss").stat()
    assert executor().get_incomplete_ranks() == [1, 2]
    (path / "00001.faiss").rmdir()
    executor().run()
    assert not executor().get_incomplete_ranks()
    assert (path / "00000.faiss").stat() == first
    assert len(list(path.iterdir())) == FILES


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="side 'es' is unknown; choose source or target"):
        st_paragram.AddVectors(folder, "es")
    with pytest.raises(SettingsError, match="cannot be mined on many machines"):
        st_paragram.ScorePairs(folder, settings=MiningSettings(paraphrase=True))
    with pytest.raises(MiningError, match="no sentences in 0 Parquet files; run EmbedTexts"):
        run(st_paragram.TrainIndex(tmp_path / "nothing"), tasks=1)
    run([[Document("a dog", "1")]], st_paragram.DealTexts(folder, "source", 2), tasks=1)
    with pytest.raises(MiningError, match="has 2 groups of texts for 3 tasks; use as many"):
        run(st_paragram.DistinctTexts(folder, "source"))
    run(st_paragram.TrainIndex(folder, "target"), tasks=1)
    run(st_paragram.AddVectors(folder, "target"))
    (folder / "index/target/00003.faiss").write_bytes(
        (folder / "index/target/00000.faiss").read_bytes()
    )
    with pytest.raises(MiningError, match=r"index/target has 3.. vectors, but not those of all"):
        run(st_paragram.SearchVectors(folder, "source"))


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
