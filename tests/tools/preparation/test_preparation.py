"""Stages of a preparation one by one: files of rows, repeated rows, caps and balance, markers, resuming, executors."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_paragram.core.files import atomic, locked
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import TextSource, parse_source
from st_paragram.core.tokenizers.sentencepiece import Segmentation
from st_paragram.errors import ParagramError, SettingsError, StoreError, TextError
from st_paragram.tools.cleaning.config import parse_cleaning
from st_paragram.tools.cleaning.duplicates import Copies, Key
from st_paragram.tools.preparation.deduplicate_stage import DeduplicateStage
from st_paragram.tools.preparation.pipeline import Sizes
from st_paragram.tools.preparation.plan_stage import quotas
from st_paragram.tools.preparation.prepare import PrepareWork, prepare
from st_paragram.tools.preparation.report import PrepareReport
from st_paragram.tools.preparation.row_files import (
    SOURCE,
    Keys,
    RowStage,
    group_ranges,
    read_range,
    texts_of,
    write_rows,
)
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.stages.executors import LocalExecutor
from st_paragram.tools.stages.metadata import write_metadata
from st_paragram.tools.stages.stage import Stage

PLAIN = PrepareSettings(("en", "es"), vocab_size=120, character_coverage=1.0)
SMALL = Sizes(shard_rows=200, task_bytes=8000)
SHORT = st.text("abé", min_size=1, max_size=2)
ROWS = st.lists(st.tuples(st.integers(0, 2), st.tuples(SHORT, SHORT)), min_size=1, max_size=60)


def write_text(path: Path, count: int = 900, words: str = "uno dos tres cuatro cinco seis", seed: int = 0) -> str:
    rng = random.Random(seed)
    rows = [" ".join(rng.choices(words.split(), k=4)) + f" {i // 2}" for i in range(count)]
    path.write_text("".join(f"the row number {i // 2}\t{row}\n" for i, row in enumerate(rows)), newline="\n")
    return str(path)


@dataclass(frozen=True)
class Given(RowStage):
    """A stage that has left some files of rows."""

    name = "given"
    paths: tuple[Path, ...]

    def digests(self) -> list[str]:
        return ["given"]

    def results(self) -> list[Path]:
        return list(self.paths)

    def report(self) -> PrepareReport:
        raise AssertionError

    def run(self, task: int) -> None:
        raise AssertionError


def deduplicated(
    folder: Path, rows: list[tuple[int, tuple[str, str]]], by: Key, copies: Copies | None, task_bytes: int
) -> DeduplicateStage:
    files = []
    for number in range(0, len(rows), 7):  # several files, as several shards leave
        files.append(folder / "given" / f"{number}.rows")
        packed = [Keys(by, 5).pack([pair], source)[0] for source, pair in rows[number : number + 7]]
        write_rows(files[-1], packed)
    given = Given(folder, tuple(files))
    stage = DeduplicateStage(folder, given, by, copies, Key.PAIR, 5, False, task_bytes)
    for task in stage.pending():
        stage.run(task)
    return stage


def rows_of(stage: DeduplicateStage) -> list[tuple[int, str, str]]:
    rows = [row for path in stage.results() for row in path.open("rb")]
    return [(int(row[SOURCE]), *texts) for row, texts in zip(rows, texts_of(rows), strict=True)]


@given(ROWS, st.sampled_from(Key), st.sampled_from([*Copies, None]), st.integers(30, 2000))
def test_repeated_rows_against_a_plain_count(
    rows: list[tuple[int, tuple[str, str]]], by: Key, copies: Copies | None, task_bytes: int
) -> None:
    def key(pair: tuple[str, str]) -> object:
        return {Key.PAIR: pair, Key.FIRST: pair[0], Key.SECOND: pair[1]}[by]

    with tempfile.TemporaryDirectory() as folder:
        kept = rows_of(deduplicated(Path(folder), rows, by, copies, task_bytes))
    counts = Counter(key(pair) for _, pair in rows)
    expected = {
        Copies.ONE: list(counts),
        Copies.NONE: [key for key, count in counts.items() if count == 1],
        None: list(counts.elements()),
    }
    assert sorted(key((a, b)) for _, a, b in kept) == sorted(expected[copies])
    if copies is None:
        return
    first = {}
    for source, pair in rows:
        first[key(pair)] = min(source, first.get(key(pair), 9))
    for source, a, b in kept:
        assert (source, (a, b)) in rows
        assert source == first[key((a, b))]


@given(ROWS, st.integers(1, 3000))
def test_ranges_cover_every_row_once_and_in_order(rows: list[tuple[int, tuple[str, str]]], most: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{source}.rows" for source in range(3)]
        packed = {source: Keys(Key.PAIR, 0).pack([p for s, p in rows if s == source], source) for source in range(3)}
        for source, path in enumerate(files):
            write_rows(path, list(packed[source]))
        ranges = group_ranges(tuple(files), most)
        read = [row for begin, end in ranges for row in read_range(files, begin, end)]
    assert read == sorted(row for part in packed.values() for row in part)
    assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == 4096


def test_a_file_of_rows_that_does_not_fit_its_index_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.rows"
    write_rows(path, Keys(Key.PAIR, 0).pack([("a", "b"), ("c", "d")], 0))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(StoreError, match="does not fit its index"):
        read_range([path], 0, 4096)
    path.with_name("x.rows.npy").write_bytes(b"\x93NUMPY")
    with pytest.raises(StoreError, match=r"x\.rows: no file of rows"):
        read_range([path], 0, 4096)


def source(languages: tuple[str, str] = ("en", "es"), cap: int | None = None) -> TextSource:
    return TextSource(("x",), languages, cap=cap)


def test_quotas_by_hand() -> None:
    assert quotas([10, 20], [source(cap=15), source(cap=15)], 1) == [10, 15]
    # Two languages with 100 and 900 pairs at T = 2: weights 10 and 30, so a quarter and three quarters of 1,000.
    two = [source(("en", "fr")), source(("en", "de"))]
    assert quotas([100, 900], two, 2) == [250, 750]
    assert quotas([100, 900], two, 1) == [100, 900]
    # Texts of one language keep their proportions, whatever their region code.
    three = [source(("en", "zh")), source(("en", "zh_cn")), source(("en", "de"))]
    assert quotas([60, 40, 900], three, 2) == [150, 100, 750]
    assert quotas([0, 7], two, 5) == [0, 7]
    with pytest.raises(SettingsError, match="would be repeated"):
        quotas([1, 10_000_000], two, 1e9)


@given(st.lists(st.integers(1, 10_000), min_size=2, max_size=6), st.floats(1, 5))
def test_quotas_keep_the_total_and_approach_equal_shares(kept: list[int], temperature: float) -> None:
    sources = [source(("en", code)) for code in "ab cd ef gh ij kl".split()[: len(kept)]]  # noqa: SIM905
    result = quotas(kept, sources, temperature)
    assert abs(sum(result) - sum(kept)) <= len(kept)
    ratios = [quota / count for quota, count in zip(result, kept, strict=True)]
    for (count, ratio), (other, other_ratio) in zip(
        sorted(zip(kept, ratios, strict=True)), sorted(zip(kept, ratios, strict=True))[1:], strict=False
    ):
        assert count == other or ratio >= other_ratio - 1.5 / count  # smaller languages gain, up to rounding


def store_texts(path: Path) -> list[tuple[str, str]]:
    store = PairStore(path)
    rows = np.arange(len(store))
    return list(zip(store.texts("a", rows), store.texts("b", rows), strict=True))


def test_caps_take_a_random_part_of_each_text(tmp_path: Path) -> None:
    texts = [write_text(tmp_path / "a.tsv", 900), write_text(tmp_path / "b.tsv", 500, "six seven eight nine ten", 1)]
    sources = [
        replace(parse_source(text, PLAIN.languages), cap=cap) for text, cap in zip(texts, (200, None), strict=True)
    ]
    report = prepare(sources, tmp_path / "s.h5", PLAIN, work=PrepareWork(sizes=SMALL)).report
    assert [each.kept for each in report.sources] == [200, 500]
    assert report.sources[0].dropped["over the cap"] == 700
    taken = [a for a, b in store_texts(tmp_path / "s.h5") if "six" not in b and "seven" not in b and "uno" in b]
    numbers = [int(a.split()[-1]) for a in taken if a.split()[-1].isdigit()]
    assert 100 < np.mean(numbers) < 350  # of 0 .. 449, not the first ones
    for each in (*report.sources, report.total):
        assert each.rows == each.kept + each.dropped.total() - each.repeated
    with pytest.raises(SettingsError, match="a cap of 0 pairs"):
        prepare([replace(sources[0], cap=0)], tmp_path / "t.h5", PLAIN)


def test_temperature_repeats_small_languages_and_spreads_the_copies(tmp_path: Path) -> None:
    languages = ("en", "es-de")
    write_text(tmp_path / "a.tsv", 1600)
    write_text(tmp_path / "b.tsv", 100, "eins zwei drei vier", 1)
    sources = [
        parse_source(f"en-{code}:{tmp_path / name}", languages) for code, name in (("es", "a.tsv"), ("de", "b.tsv"))
    ]
    options = replace(PLAIN, languages=languages, temperature=2.0, vocab_size=200)
    report = prepare(sources, tmp_path / "s.h5", options, work=PrepareWork(sizes=SMALL)).report
    assert [each.kept for each in report.sources] == [1360, 340]  # weights 40 and 10 of 1,700 pairs
    assert (report.sources[1].repeated, report.sources[0].dropped["over the cap"]) == (240, 240)
    pairs = store_texts(tmp_path / "s.h5")
    german = [i for i, (_, b) in enumerate(pairs) if {"eins", "zwei", "drei", "vier"} & set(b.split())]
    assert len(german) == 340
    counts = Counter(pairs[i] for i in german)
    assert set(counts.values()) == {3, 4} and list(counts.values()).count(4) == 40
    assert abs(np.mean(german) - 850) < 150  # spread over the whole store
    assert PairStore(tmp_path / "s.h5").settings["temperature"] == 2.0


def test_a_text_of_several_languages_needs_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="ambiguous language, one of es, de"):
        parse_source("x.tsv", ("en", "es-de"))
    assert parse_source("de-en:x.tsv", ("en", "es-de")).swapped


def test_a_second_run_redoes_what_changed_and_nothing_else(tmp_path: Path) -> None:
    sources = [
        parse_source(write_text(tmp_path / f"{name}.tsv", seed=i), PLAIN.languages) for i, name in enumerate("ab")
    ]

    def tasks(options: PrepareSettings = PLAIN, texts: int = 2, force: str | None = None) -> dict[str, int]:
        work = PrepareWork(tmp_path / "work", True, force, sizes=SMALL)
        times = prepare(sources[:texts], tmp_path / "s.h5", options, overwrite=True, work=work).times
        return {each.name: each.tasks for each in times if each.tasks}

    first = tasks()
    assert list(first) == ["read", "clean", "deduplicate", "plan", "vocabulary", "encode", "store"]
    content = (tmp_path / "s.h5").read_bytes()
    assert tasks() == {}
    assert list(tasks(replace(PLAIN, vocab_size=100))) == ["vocabulary", "encode", "store"]
    assert list(tasks(replace(PLAIN, max_pieces=7, vocab_size=100))) == ["encode", "store"]
    assert "read" not in tasks(replace(PLAIN, lower_case=False))
    assert list(tasks(texts=1)) == ["clean", "deduplicate", "plan", "vocabulary", "encode", "store"]
    assert tasks() == {
        "read": 1,
        **{name: first[name] for name in ("deduplicate", "plan", "vocabulary", "encode", "store")},
        "clean": first["clean"] // 2,
    }
    assert (tmp_path / "s.h5").read_bytes() == content
    assert list(tasks(force="encode")) == ["encode", "store"]
    assert list(tasks(force="read")) == list(first)
    (tmp_path / "s.h5").unlink()
    assert list(tasks()) == ["store"]
    with pytest.raises(SettingsError, match="no stage 'sort'; there are read, clean"):
        tasks(force="sort")
    os.utime(tmp_path / "a.tsv", (1, 1))
    assert tasks()["read"] == 1


def test_rejects_are_written_by_reason(tmp_path: Path) -> None:
    text = write_text(tmp_path / "a.tsv", 300)
    with Path(text).open("a") as handle:
        handle.write("Too  short\tes  corto\n" + "the row number 0\tTHE SAME\n" * 3)
    options = replace(
        PLAIN,
        cleaning=parse_cleaning([{"length": {"min_length": 2}}, {"duplicates": {"on": ["pair", "first"]}}], "test"),
    )
    source = parse_source(text, PLAIN.languages)
    report = prepare(
        [source], tmp_path / "s.h5", options, work=PrepareWork(rejects=tmp_path / "out", sizes=SMALL)
    ).report
    files = {path.name: path.read_text().split("\n")[:-1] for path in (tmp_path / "out").iterdir()}
    assert set(files) == {"duplicate.tsv", "repeated-first-side.tsv"}
    assert files["duplicate.tsv"] == ["the row number 0\tTHE SAME"] * 2
    assert len(files["repeated-first-side.tsv"]) == report.total.dropped["repeated first side"] == 151
    assert report.total.kept == len({a for a, _ in store_texts(tmp_path / "s.h5")}) == 151


def test_rejects_are_rows_as_they_were_read_and_change_nothing_in_the_store(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    rows = [(f"Row Number {i}", f"这是 第 {i} 行 哦", f"0.{i}") for i in range(40)]
    again = [("ROW number 3", "这是 第 3 行 哦", "0.9"), ("Row Number 4", "另外 第 4 行", "0.8"), ("Kurz", "嗨", "0")]
    path.write_text("".join("\t".join(row) + "\n" for row in [*rows, *again]), encoding="utf-8")
    filters: list[object] = ["length", {"duplicates": {"on": ["first", "pair"]}}]
    options = replace(
        PLAIN, languages=("en", "zh"), segmentation=Segmentation.JIEBA, cleaning=parse_cleaning(filters, "test")
    )
    source = TextSource((str(path),), ("en", "zh"), further_columns=1)
    prepare([source], tmp_path / "s.h5", options, work=PrepareWork(rejects=tmp_path / "out", sizes=SMALL))
    prepare([source], tmp_path / "t.h5", options)
    assert (tmp_path / "s.h5").read_bytes() == (tmp_path / "t.h5").read_bytes()
    dropped = (tmp_path / "out" / "repeated-first-side.tsv").read_text(encoding="utf-8").split("\n")[:-1]
    both = [{rows[3], again[0]}, {rows[4], again[1]}]  # which of two stays is not laid down
    assert sorted(len(pair & {tuple(row.split("\t")) for row in dropped}) for pair in both) == [1, 1]
    assert (tmp_path / "out" / "too-short.tsv").read_text(encoding="utf-8") == "Kurz\t嗨\t0\n"


def test_copies_none_drops_every_copy(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("a b c\td e f\na b c\td e f\n" + "".join(f"x y {i}\tz w {i}\n" for i in range(60)))
    options = replace(
        PLAIN,
        vocab_size=30,
        cleaning=parse_cleaning(["length", {"duplicates": {"on": "pair", "copies": "none"}}], "test"),
    )
    report = prepare([parse_source(str(tmp_path / "a.tsv"), PLAIN.languages)], tmp_path / "s.h5", options).report
    assert (report.total.kept, report.total.dropped["duplicate"]) == (60, 2)
    assert "a b c" not in dict(store_texts(tmp_path / "s.h5"))


def test_a_pipe_is_read_once_and_by_this_process(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = Path(write_text(tmp_path / "a.tsv")).read_bytes()
    writer = threading.Thread(target=lambda: pipe.write_bytes(content))
    writer.start()
    work = PrepareWork(executor=LocalExecutor(2), sizes=SMALL)
    prepare([parse_source(str(pipe), PLAIN.languages)], tmp_path / "pipe.h5", PLAIN, work=work)
    writer.join()
    prepare([parse_source(str(tmp_path / "a.tsv"), PLAIN.languages)], tmp_path / "file.h5", PLAIN)
    assert store_texts(tmp_path / "pipe.h5") == store_texts(tmp_path / "file.h5")


def test_only_one_run_works_in_a_folder(tmp_path: Path) -> None:
    source = parse_source(write_text(tmp_path / "a.tsv"), PLAIN.languages)
    with locked(tmp_path / "work"):
        with pytest.raises(ParagramError, match="another run is using it"):
            prepare([source], tmp_path / "s.h5", PLAIN, work=PrepareWork(tmp_path / "work"))
        assert (tmp_path / "work").is_dir()
    prepare([source], tmp_path / "s.h5", PLAIN, work=PrepareWork(tmp_path / "work"))
    assert not (tmp_path / "work").exists()


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), atomic(tmp_path / "x") as handle:
        handle.write(b"half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    write_metadata(tmp_path / "x", {"a": 1})
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_filter_that_misses_a_column_says_where(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one two three\tun deux trois\tword\n" * 5)
    options = replace(PLAIN, cleaning=parse_cleaning([{"paraphrase_score": {"low": 0.1}}], "test"))
    source = TextSource((str(tmp_path / "a.tsv"),), ("en", "es"), further_columns=1)
    with pytest.raises(TextError, match=r"a\.tsv: among rows 1\.\.\d+: paraphrase_score: 'word'"):
        prepare([source], tmp_path / "s.h5", options)


KILL = """
import os, signal, sys
from pathlib import Path
from st_paragram.tools.preparation.prepare import PrepareWork, prepare
from st_paragram.tools.preparation.settings import PrepareSettings
from st_paragram.tools.preparation.pipeline import Sizes
import st_paragram.tools.preparation.{module} as module
from st_paragram.core.text.parallel import parse_source

original = module.{function}
calls = []
def dies(*arguments, **more):
    calls.append(1)
    if len(calls) == {call}:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **more)
module.{function} = dies
languages = ("en", "es")
options = PrepareSettings(languages, vocab_size=120, character_coverage=1.0)
sizes = Sizes(shard_rows=200, task_bytes=8000)
prepare([parse_source(sys.argv[1], languages)], sys.argv[2], options, work=PrepareWork(sizes=sizes))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "function", "call"),
    [
        ("read_stage", "write_metadata", 3),
        ("clean_stage", "write_rows", 2),
        ("clean_stage", "write_metadata", 3),
        ("deduplicate_stage", "write_rows", 4),
        ("plan_stage", "write_metadata", 1),
        ("vocabulary_stage", "train_vocabulary", 1),
        ("encode_stage", "write_metadata", 3),
        ("store_stage", "write_metadata", 1),
    ],
)
def test_a_killed_run_goes_on_to_the_same_store(module: str, function: str, call: int, tmp_path: Path) -> None:
    text = write_text(tmp_path / "a.tsv")
    code = KILL.format(module=module, function=function, call=call)
    killed = subprocess.run([sys.executable, "-c", code, text, str(tmp_path / "s.h5")], check=False)
    assert killed.returncode == -signal.SIGKILL
    source = parse_source(text, PLAIN.languages)
    times = prepare([source], tmp_path / "s.h5", PLAIN, overwrite=True, work=PrepareWork(sizes=SMALL)).times
    done_before = {"plan_stage": 3, "vocabulary_stage": 4, "encode_stage": 5, "store_stage": 6}.get(module, 0)
    assert all(each.tasks == 0 for each in times[:done_before])
    prepare([source], tmp_path / "whole.h5", PLAIN)
    assert (tmp_path / "s.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"a.tsv", "s.h5", "whole.h5"}


def test_workers_end_with_a_process_that_was_killed(tmp_path: Path) -> None:
    code = (
        "import os, signal, time\n"
        "from st_paragram.tools.stages.executors import _start_worker\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "if __name__ == '__main__':\n"
        "    pool = ProcessPoolExecutor(1, get_context('spawn'), initializer=_start_worker, initargs=(os.getpid(),))\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    pool.submit(time.sleep, 600)\n"
        "    time.sleep(0.2)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(code)
    parent = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
    worker = int(parent.stdout)
    for _ in range(100):
        if not _alive(worker):
            break
        threading.Event().wait(0.1)
    assert not _alive(worker)


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_task_raises_comes_out(workers: int, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="workers is 0"):
        LocalExecutor(0)
    with pytest.raises(ZeroDivisionError):
        LocalExecutor(workers).run([Failing(tmp_path)])


def test_a_dead_worker_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ParagramError, match="use fewer workers"):
        LocalExecutor(2).run([Failing(tmp_path, deadly=True)])


@dataclass(frozen=True)
class Failing(Stage):
    """A stage whose tasks fail."""

    name = "failing"
    deadly: bool = False

    def digests(self) -> list[str]:
        return ["any"]

    def results(self) -> list[Path]:
        return [self.folder() / str(task) for task in range(3)]

    def run(self, task: int) -> None:
        if self.deadly:
            os._exit(1)
        raise ZeroDivisionError
