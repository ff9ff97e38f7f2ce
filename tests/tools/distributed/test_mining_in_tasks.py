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
from st_paragram.tools.distributed import mining
from st_paragram.tools.distributed.mining import (
    SIDES,
    Side,
    make_mining_folder,
    write_table,
)
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
        run(documents, distributed.DealTexts(folder, side, FILES), tasks=2)
        embed = st_paragram.EmbedTexts(
            "p-sp-mini", str(folder / "vectors" / side), normalize=True, only_known=True
        )
        run(distributed.DistinctTexts(folder, side), embed)
    return folder


@pytest.fixture
def folder(vectors: Path, tmp_path: Path) -> Path:
    """The same embeddings in a folder for results."""
    (tmp_path / "vectors").symlink_to(vectors / "vectors")
    return tmp_path


@pytest.fixture
def parts_of_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "SENTENCE", 1 << 40)


def mined(folder: Path, settings: MiningSettings) -> list[tuple[float, str, str]]:
    """Run all steps from the embeddings on, and return the pairs."""
    for side in SIDES:
        run(distributed.IndexVectors(folder, side, settings))
    for side in SIDES:
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
    folder: Path, texts: dict[str, list[str]], settings: MiningSettings, parts_of_one_file: None
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


def test_the_search_effort_is_the_first_with_enough_recall(
    folder: Path, parts_of_one_file: None
) -> None:
    queries = Side(folder, "source").vectors([0])
    sample = queries.rows(0, len(queries))
    target = Side(folder, "target")
    for recall in (0.5, 0.9, 1):
        settings = MiningSettings(index="IVF16,SQfp16", recall=recall)
        tmp = folder / f"{recall}"
        tmp.mkdir()
        (tmp / "vectors").symlink_to(folder / "vectors")
        run(distributed.IndexVectors(tmp, "target", settings), tasks=2)
        for file in target.files():
            corpus = target.vectors([file])
            (path,) = (tmp / f"index/target/0000{file}").glob("*.faiss")
            index: Any = faiss.read_index(str(path))
            assert index.ntotal == len(corpus)
            nearest = exact(sample, corpus, 1).indices[:, 0]
            effort = json.loads((tmp / f"effort/target/0000{file}.json").read_text())
            recalls = {}
            for index.nprobe in (effort // 2, effort):
                _, numbers = index.search(sample, 1)
                recalls[index.nprobe] = (numbers[:, 0] == nearest).mean()
            assert recalls[effort] >= recall - 0.01
            assert effort == 4 or recalls[effort // 2] < recall


def test_a_failed_task_is_done_again(folder: Path, parts_of_one_file: None) -> None:
    path = folder / "effort/target"
    (path / "00001.json").mkdir(parents=True)  # this task cannot write

    def executor() -> LocalPipelineExecutor:
        step = distributed.IndexVectors(folder, "target")
        return LocalPipelineExecutor(
            [step], tasks=FILES, workers=1, logging_dir=str(folder / "logs")
        )

    with pytest.raises(OSError, match=r"00001\.json"):
        executor().run()
    first = (path / "00000.json").stat()
    assert executor().get_incomplete_ranks() == [1, 2]
    (path / "00001.json").rmdir()
    executor().run()
    assert not executor().get_incomplete_ranks()
    assert (path / "00000.json").stat() == first
    assert len(list(path.iterdir())) == FILES


def test_mistakes(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="side 'es' is unknown; choose source or target"):
        distributed.IndexVectors(folder, "es")
    with pytest.raises(SettingsError, match="cannot be mined on many machines"):
        distributed.ScorePairs(folder, settings=MiningSettings(paraphrase=True))
    with pytest.raises(MiningError, match="nothing: no target sentences; run EmbedTexts"):
        run(distributed.IndexVectors(tmp_path / "nothing"), tasks=1)


def test_parts_have_as_many_files_as_fit_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_side(tmp_path, "source", [5, 0, 5, 5, 5])
    side = Side(tmp_path, "source")
    monkeypatch.setattr(mining, "SENTENCE", 10)
    assert side.parts(10) == [[0], [2], [3], [4]]
    assert side.parts(100) == [[0, 2], [3, 4]]
    assert side.parts(199) == [[0, 2, 3], [4]]
    assert len(side.vectors([2, 3])) == 10


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
