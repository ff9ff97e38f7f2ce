"""Pipelines of datatrove: pairs are cleaned as `prepare` cleans them, and vectors do not depend on
who makes them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import ParquetReader
from datatrove.pipeline.writers import JsonlWriter

from st_paragram import CleanPairs, EmbedTexts, Encoder
from st_paragram.core.sample import sample_pairs
from st_paragram.errors import ModelDirectoryError, SettingsError, TextError

ROWS, FILES = 320, 8
SCRIPT = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from tools.distributed.test_clean_and_embed import executor

def die(data, rank, world_size):
    for number, document in enumerate(data):
        if rank == 2 and number == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        yield document

executor({folder!r}, "killed", 1, die).run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pairs in Parquet files; every tenth one is its own translation, which no filter lets pass."""
    (tmp_path / "pairs").mkdir()
    pairs = [
        (en, en if number % 10 == 0 else es)
        for number, (en, es) in enumerate(sample_pairs("es", ROWS))
    ]
    for number in range(FILES):
        en, es = zip(*pairs[number::FILES], strict=True)
        pq.write_table(pa.table({"en": en, "es": es}), tmp_path / "pairs" / f"{number}.parquet")
    return tmp_path


def pipeline(folder: str | Path, name: str, *more: object) -> list[object]:
    """Clean pairs, embed both sides."""
    sides = {"en": None, "es": "es"}
    vectors = [
        EmbedTexts("p-sp-mini", f"{folder}/{name}/{side}", key, normalize=True)
        for side, key in sides.items()
    ]
    clean = CleanPairs(
        ("en", "es"),
        "es",
        exclusion_writer=JsonlWriter(f"{folder}/{name}/dropped", compression=None),
    )
    return [ParquetReader(f"{folder}/pairs", text_key="en"), clean, *vectors, *more]


def executor(folder: str | Path, name: str, workers: int, *more: object) -> LocalPipelineExecutor:
    """Four tasks on this machine."""
    logs = f"{folder}/{name}/logs"
    return LocalPipelineExecutor(
        pipeline(folder, name, *more), tasks=4, workers=workers, logging_dir=logs
    )


def made(folder: Path) -> dict[str, pa.Table]:
    return {
        str(path.relative_to(folder)): pq.read_table(path)
        for path in sorted(folder.rglob("*.parquet"))
    }


def test_a_killed_task_is_done_again(folder: Path) -> None:
    executor(folder, "whole", 2).run()
    expected = made(folder / "whole")
    assert list(expected) == [
        f"{key}/0000{rank}.parquet" for key in ("en", "es") for rank in range(4)
    ]
    assert sum(table.num_rows for table in expected.values()) == 2 * ROWS * 9 // 10
    dropped = [
        json.loads(line) for path in (folder / "whole/dropped").iterdir() for line in path.open()
    ]
    assert [each["metadata"]["filter_reason"] for each in dropped] == ["identical sides"] * (
        ROWS // 10
    )
    for key in ("en", "es"):
        table = expected[f"{key}/00001.parquet"]
        vectors = np.array(table["embedding"].to_pylist(), np.float32)
        encoded = Encoder().encode(table["text"].to_pylist(), normalize_embeddings=True)
        np.testing.assert_allclose(vectors, encoded, atol=1e-3)
    assert expected["en/00000.parquet"]["id"] == expected["es/00000.parquet"]["id"]

    script = SCRIPT.format(tests=str(Path(__file__).parents[2]), folder=str(folder))
    child = subprocess.Popen(
        [sys.executable, "-c", script], stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert child.wait() == -signal.SIGKILL
    # the process that datatrove's executor keeps for its queues
    os.killpg(child.pid, signal.SIGKILL)
    missing = {"es/00002.parquet", "en/00003.parquet", "es/00003.parquet"}
    assert made(folder / "killed").keys() == expected.keys() - missing
    executor(folder, "killed", 1).run()
    assert made(folder / "killed") == expected and not list(folder.rglob("*.part"))


def test_a_file_of_the_user_is_not_replaced(tmp_path: Path) -> None:
    step = EmbedTexts("p-sp-mini", str(tmp_path))
    for _ in range(2):  # a task that is repeated replaces its own file
        assert len(list(step.run(iter([Document("a dog", "1")])))) == 1
    pq.write_table(pa.table({"id": ["1"], "text": ["mine"]}), tmp_path / "00000.parquet")
    (tmp_path / "00001.parquet").write_text("mine")
    for rank in (0, 1):
        before = (tmp_path / f"0000{rank}.parquet").read_bytes()
        with pytest.raises(
            TextError,
            match=f"0000{rank}.parquet exists and has no embeddings; choose another folder",
        ):
            list(step.run(iter([Document("a dog", "1")]), rank))
        assert (tmp_path / f"0000{rank}.parquet").read_bytes() == before


def document(text: str, **metadata: object) -> Document:
    return Document(text, "7", metadata=metadata)


def test_pairs_are_cleaned_and_repaired(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- repair_encoding\n- length: {min_length: 2}\n- copied\n")
    clean = CleanPairs(("en", "es"), "es", tmp_path / "list.yaml")
    batch = [
        document("How  are\tyou today?", es="¿CÃ³mo estÃ¡s hoy?"),
        document("Yes", es="Sí"),
        document("The very same words", es="The very same words"),
    ]
    assert clean.filter_batch(batch) == [True, (False, "too short"), (False, "identical sides")]
    assert (batch[0].text, batch[0].metadata["es"]) == ("How are you today?", "¿Cómo estás hoy?")
    assert clean.filter(batch[0]) is True


def test_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="list of filters cannot be read"):
        CleanPairs(("en", "es"), cleaning=tmp_path / "none.yaml")
    with pytest.raises(ModelDirectoryError, match="no model 'nobody'"):
        EmbedTexts("nobody", str(tmp_path))
    with pytest.raises(
        TextError, match=r"document 7: no text 'translation' in its metadata \(it has es"
    ):
        CleanPairs(("en", "es")).filter(document("a", es="b"))
    assert not list(tmp_path.glob("*.parquet"))


def test_documents_without_a_known_token_have_rows_and_are_counted(tmp_path: Path) -> None:
    embed = EmbedTexts("p-sp-mini", str(tmp_path))
    documents = [document(text) for text in ("Hello", "", "\u200b", "გამარჯობა")]
    assert list(embed.run(iter(documents))) == documents
    rows = np.array(pq.read_table(tmp_path / "00000.parquet")["embedding"].to_pylist())
    np.testing.assert_allclose(
        rows, Encoder().encode([each.text for each in documents]), rtol=1e-3, atol=1e-3
    )
    assert embed.stats["blank"].total == 1 and embed.stats["without a known token"].total == 2
