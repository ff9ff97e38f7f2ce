"""Preparation compared with a plain reference: a list, a set and the rules as documented."""

from __future__ import annotations

import dataclasses
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.text.parallel import parse_source
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import SettingsError, StoreError, TextError
from st_paragram.tools.cleaning.config import parse_cleaning
from st_paragram.tools.cleaning.known_sentences import KnownTestSentences
from st_paragram.tools.preparation import clean as cleaning_module
from st_paragram.tools.preparation import order, vocabulary
from st_paragram.tools.preparation import prepare as prepare_module
from st_paragram.tools.preparation.clean import Block, Cleaned, Cleaner
from st_paragram.tools.preparation.prepare import prepare, prepare_cached
from st_paragram.tools.preparation.report import COLUMNS, INVALID, NUL, PrepareReport
from st_paragram.tools.preparation.settings import PrepareSettings

EN_ES = ("en", "es")
PLAIN = PrepareSettings(EN_ES, vocab_size=300, character_coverage=1.0, max_pieces=1000)
Pairs = list[tuple[str, str]]


@cache
def corpus(count: int = 1500, seed: int = 0) -> Pairs:
    """Random sentences of 1 to 12 words, some empty, some repeated, some in other case or with odd
    spaces.
    """
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnoprstuv", k=rng.randint(1, 8))) for _ in range(300)]
    sides = [
        [" ".join(rng.choices(words, k=rng.randint(0, 12))) for _ in range(count)] for _ in range(2)
    ]
    pairs = list(zip(*sides, strict=True))
    pairs += [(a.upper(), b) for a, b in pairs[:200]]
    pairs += [(f" {a.replace(' ', '  ')}", b) for a, b in pairs[200:300]]
    pairs += [(b, a) for a, b in pairs[300:350]]
    return pairs


def write(path: Path, pairs: Pairs) -> Path:
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8", newline="\n")
    return path


def run(
    folder: Path,
    *texts: Pairs,
    options: PrepareSettings = PLAIN,
    name: str = "s.h5",
    **arguments: Any,
) -> tuple[PairStore, PrepareReport]:
    paths = [write(folder / f"{i}.tsv", pairs) for i, pairs in enumerate(texts)]
    sources = [parse_source(str(path), options.languages) for path in paths]
    report = prepare(sources, folder / name, options, **arguments)
    return PairStore(folder / name), report


def stored(store: PairStore) -> Pairs:
    rows = np.arange(len(store))
    return list(zip(store.texts("a", rows), store.texts("b", rows), strict=True))


def reference(pairs: Pairs) -> tuple[set[tuple[str, str]], Counter[str]]:
    """Filter and deduplicate in memory, with the default limits."""
    kept: set[tuple[str, str]] = set()
    dropped: Counter[str] = Counter()
    for a, b in pairs:
        pair = " ".join(a.lower().split()), " ".join(b.lower().split())
        if not all(pair):
            dropped["empty side"] += 1
        elif min(len(side.split()) for side in pair) < 3:
            dropped["too short"] += 1
        elif pair in kept:
            dropped["duplicate"] += 1
        else:
            kept.add(pair)
    return kept, dropped


def test_the_store_holds_what_the_reference_keeps(tmp_path: Path) -> None:
    kept, dropped = reference(corpus())
    store, report = run(tmp_path, corpus())
    pairs = stored(store)
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == kept
    assert +report.total.dropped == dropped
    assert min(dropped.values()) > 40  # the corpus tries every rule


def test_numbers_add_up_per_text_and_are_stored(tmp_path: Path) -> None:
    first, second = corpus()[:900], [*corpus()[500:], ("bad\0 row here", "x y z")]
    store, report = run(tmp_path, first, second)
    for source in [*report.sources, report.total]:
        assert source.rows == source.kept + source.dropped.total()
    assert [source.rows for source in report.sources] == [len(first), len(second)]
    # a pair of both texts stays with the first
    assert report.sources[0].kept == len(reference(first)[0])
    assert report.total.kept == len(store) == len(reference(first + second[:-1])[0])
    assert report.sources[1].dropped[NUL] == 1
    assert store.settings["report"] == report.as_json()
    assert report.pieces == tuple(len(store.take(side, np.arange(len(store)))[0]) for side in "ab")
    table = report.table().split("\n")
    assert table[0].split() == ["1", "2", "all"]
    assert table[1].split() == [
        "read",
        *(f"{len(text):,}" for text in (first, second, first + second)),
    ]
    assert ["-", "NUL", "byte", "0", "1", "1"] in [row.split() for row in table]
    assert f"{report.vocabulary_size:,} tokens in the vocabulary" in table
    texts = reference(first + second[:-1])[0]
    for number, language in enumerate(("en", "es")):
        characters, found = sum(len(pair[number]) for pair in texts), report.lengths[language]
        assert (found.sentences, found.pieces, found.characters) == (
            len(store),
            report.pieces[number],
            characters,
        )
        each = (
            f"{found.pieces / len(store):.1f} tokens per sentence, {characters / found.pieces:.2f}"
            " characters per token"
        )
        assert f"{language}: {each}" in table


def test_rows_that_cannot_be_used_are_dropped_on_demand_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.tsv", corpus())
    path.write_bytes(
        path.read_bytes() + b"only one column here\none two three\tuno dos tres\t0.9\n\xff\tx y z\n"
    )
    source = parse_source(str(path), EN_ES)
    with pytest.raises(TextError, match=r"line \d+ is not UTF-8.*--drop-invalid"):
        prepare([source], tmp_path / "s.h5", PLAIN)
    report = prepare([source], tmp_path / "s.h5", dataclasses.replace(PLAIN, drop_invalid=True))
    (numbers,) = report.sources
    assert (numbers.dropped[INVALID], numbers.dropped[COLUMNS]) == (1, 2)
    assert numbers.rows == numbers.kept + numbers.dropped.total()
    assert re.search(r"^- wrong number of columns +2$", report.table(), re.MULTILINE)


def test_neither_workers_nor_sizes_of_blocks_change_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, corpus(), name="one.h5")
    monkeypatch.setattr(cleaning_module, "BLOCK_ROWS", 170)
    run(tmp_path, corpus(), name="two.h5", workers=2)
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()


def test_the_order_depends_on_the_seed_alone(tmp_path: Path) -> None:
    pairs = corpus()
    again = random.Random(1).sample(pairs, len(pairs))
    orders = [
        stored(
            run(tmp_path, text, options=dataclasses.replace(PLAIN, seed=seed), name=f"{i}.h5")[0]
        )
        for i, (text, seed) in enumerate([(pairs, 0), (again, 0), (pairs, 1)])
    ]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert set(orders[0]) == set(orders[2])
    position = {pair: i for i, pair in enumerate(orders[0])}
    correlation = np.corrcoef([position[pair] for pair in orders[2]], range(len(orders[2])))[0, 1]
    assert abs(correlation) < 0.15  # about five standard deviations


def test_long_sentences_are_cut_and_counted(tmp_path: Path) -> None:
    store, report = run(tmp_path, corpus(), options=dataclasses.replace(PLAIN, max_pieces=7))
    whole = store.tokenizer().encode([text for pair in reference(corpus())[0] for text in pair])[1]
    assert max(np.diff(store.take("a", np.arange(len(store)))[1])) == 7
    assert report.cut_sentences == (np.diff(whole) > 7).sum() > 0
    assert store.max_length == 7
    described = {name: value for name, value in store.settings.items() if name != "report"}
    assert described == dataclasses.replace(PLAIN, max_pieces=7).as_json() | {
        "vocabulary_given": False
    }


def test_the_vocabulary_sees_the_first_pairs_and_is_as_large_as_those_left_can_teach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    asked: list[int] = []

    def train(sentences: Iterator[str], **options: Any) -> bytes:
        seen.extend(sentences)
        return train_vocabulary(seen, **options)

    monkeypatch.setattr(vocabulary, "train_vocabulary", train)
    monkeypatch.setattr(PrepareSettings, "pieces", lambda self, pairs: asked.append(pairs) or 300)
    store, report = run(
        tmp_path, corpus(), options=dataclasses.replace(PLAIN, vocab_size=None, sample_pairs=200)
    )
    assert seen == [text for pair in stored(store)[:200] for text in pair]
    assert asked == [len(store)] and len(store.tokenizer()) == report.vocabulary_size == 300


@pytest.mark.parametrize(
    "changes", [{}, {"tokens": "word"}, {"tokens": "trigram"}, {"sharing": "disjoint"}], ids=str
)
def test_texts_that_look_the_same_have_the_same_ids(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    pairs = [(f"{a} the coop\u00aderation in ٢٠٢٤", b) for a, b in corpus()]
    store, _ = run(tmp_path, pairs, options=dataclasses.replace(PLAIN, **changes))
    ids = [
        store.tokenizer().encode([text])[0].tolist()
        for text in ("cooperation 2024", "co\u200bop\u00aderation ۲۰۲۴")
    ]
    assert ids[0] == ids[1] and store.tokenizer().unknown_id not in ids[0]


def test_a_given_vocabulary_keeps_its_characters(tmp_path: Path) -> None:
    content = train_vocabulary([f"{a} coop\u00aderation" for a, _ in corpus()], 300, characters={})
    store, _ = run(tmp_path, corpus(), vocabulary=SentencePieceTokenizer(content))
    assert store.tokenizer() == SentencePieceTokenizer(content)
    plain, variant = (
        store.tokenizer().encode([text])[0].tolist()
        for text in ("cooperation", "coop\u00aderation")
    )
    assert plain != variant


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b")] * 10, r"0 of 10 rows left \(dropped: 10 too short\)"),
        ([("a b c", "d e f")] * 10, r"1 of 10 rows left \(dropped: 9 duplicate\)"),
    ],
)
def test_too_few_pairs_are_refused(pairs: Pairs, message: str, tmp_path: Path) -> None:
    with pytest.raises(TextError, match=r"0\.tsv: " + message):
        run(tmp_path, pairs, options=dataclasses.replace(PLAIN, vocab_size=50))
    assert [path.name for path in tmp_path.iterdir()] == ["0.tsv"]


MOMENTS = [
    ("clean.pack_rows", 9),
    ("clean.Buckets.sizes", 2),
    ("order.Buckets.add", 70),
    ("vocabulary.train_vocabulary", 1),
    ("prepare.PairStoreWriter.append", 20),
    ("prepare.columns_of", 5),
    # the other outputs have their names, the store does not
    ("prepare.PairStoreWriter.__exit__", 1),
]
KILL = """
import os, signal, sys
from itertools import count
from pkgutil import resolve_name
from st_paragram import PrepareSettings, parse_source, prepare
from st_paragram.tools.preparation import clean

clean.BLOCK_ROWS, clean._BLOCKS_BETWEEN_SAVES = 60, 2
place, _, name = f"st_paragram.tools.preparation.{sys.argv[1]}".rpartition(".")
place, calls = resolve_name(place), count(1)
original = getattr(place, name)
def dies(*arguments, **more):
    if next(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*arguments, **more)
setattr(place, name, dies)
settings = PrepareSettings(("en", "es"), vocab_size=300, character_coverage=1.0, max_pieces=1000)
source = parse_source("0.tsv", ("en", "es"))
prepare([source], "s.h5", settings, keep_text="text", rejects="rejects")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("function", "call"), MOMENTS)
def test_a_killed_run_goes_on_to_the_same_files(
    function: str, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "0.tsv", corpus())
    command = [sys.executable, "-c", KILL, function, str(call)]
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == -signal.SIGKILL
    clean, seen = Cleaner.__call__, []

    def watched(cleaner: Cleaner, block: Block) -> Cleaned:
        seen.append(block.first)
        return clean(cleaner, block)

    everything = {"keep_text": tmp_path / "text", "rejects": tmp_path / "rejects"}
    source = parse_source(str(tmp_path / "0.tsv"), EN_ES)
    with monkeypatch.context() as patch:
        patch.setattr(Cleaner, "__call__", watched)
        prepare([source], tmp_path / "s.h5", PLAIN, **everything)
    assert not seen or seen[0] > 1  # blocks that had been noted are not cleaned again
    whole = tmp_path / "whole"
    prepare([source], whole / "s.h5", PLAIN, keep_text=whole / "text", rejects=whole / "rejects")
    for name in (
        "s.h5",
        *(f"text/{side}.txt" for side in "ab"),
        "rejects/too-short.tsv",
        "rejects/duplicate.tsv",
    ):
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name
    assert {path.name for path in tmp_path.iterdir()} == {
        "0.tsv",
        "s.h5",
        "text",
        "rejects",
        "whole",
    }


def test_work_of_other_settings_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare_module, "PairStoreWriter", None)
    with pytest.raises(TypeError):
        run(tmp_path, corpus())
    assert (tmp_path / ".s.h5.work").is_dir()
    monkeypatch.undo()
    options = dataclasses.replace(PLAIN, lower_case=False)
    store, _ = run(tmp_path, corpus(), options=options)
    assert stored(store) == stored(run(tmp_path, corpus(), options=options, name="t.h5")[0])


def stopped(*_: Any, **__: Any) -> None:
    raise OSError(28, "No space left on device")


def cleaned_blocks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of the first rows of all blocks that are cleaned from now on."""
    clean, blocks = Cleaner.__call__, list[int]()

    def watched(cleaner: Cleaner, block: Block) -> Cleaned:
        blocks.append(block.first)
        return clean(cleaner, block)

    monkeypatch.setattr(Cleaner, "__call__", watched)
    return blocks


def test_settings_of_later_steps_do_not_clean_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(prepare_module, "PairStoreWriter", stopped)
        with pytest.raises(OSError, match="No space left"):
            run(tmp_path, corpus())
    blocks = cleaned_blocks(monkeypatch)
    paths = [parse_source(str(tmp_path / "0.tsv"), EN_ES)]
    later = dataclasses.replace(
        PLAIN, vocab_size=200, max_pieces=50, tokens="sentencepiece", vocab_threads=2
    )
    prepare(paths, tmp_path / "s.h5", later)
    assert blocks == []
    prepare(paths, tmp_path / "whole.h5", later)
    assert blocks and (tmp_path / "s.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()


def test_an_error_of_a_later_setting_keeps_the_cleaned_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sources = [
        parse_source(
            f"en-{code}:{write(tmp_path / f'{code}.tsv', corpus(count, seed))}", ("en", "es-de")
        )
        for code, count, seed in (("es", 1500, 0), ("de", 8, 1))
    ]
    monkeypatch.setattr(order, "MOST_COPIES", 20)
    options = dataclasses.replace(PLAIN, languages=("en", "es-de"), temperature=100)
    with pytest.raises(SettingsError, match=r"would be repeated .* times; choose a lower"):
        prepare(sources, tmp_path / "s.h5", options)
    assert f"completed work is kept in {tmp_path / '.s.h5.work'}" in caplog.text
    blocks = cleaned_blocks(monkeypatch)
    prepare(sources, tmp_path / "s.h5", dataclasses.replace(options, temperature=1))
    assert blocks == [] and not (tmp_path / ".s.h5.work").exists()
    with pytest.raises(SettingsError, match=r"a vocabulary of 8 tokens cannot .*; choose another"):
        prepare(sources[:1], tmp_path / "u.h5", dataclasses.replace(options, vocab_size=8))
    assert (tmp_path / ".u.h5.work").is_dir()
    with pytest.raises(SettingsError, match="workers is 0"):
        prepare(sources, tmp_path / "t.h5", options, workers=0)


def test_kept_text_and_dropped_rows_of_a_killed_run_are_replaced_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = {
        "keep_text": tmp_path / "text",
        "rejects": tmp_path / "rejects",
        "work": tmp_path / "work",
    }
    placed = {
        "text/a.txt",
        "text/b.txt",
        "rejects/too-short.tsv",
        "rejects/duplicate.tsv",
        "rejects/empty-side.tsv",
    }
    with monkeypatch.context() as patch:
        patch.setattr(PairStoreWriter, "__exit__", stopped)
        with pytest.raises(OSError, match="No space left"):
            run(tmp_path, corpus(), **outputs)
    assert all((tmp_path / name).is_file() for name in placed)
    source = [parse_source(str(tmp_path / "0.tsv"), EN_ES)]
    for name in sorted(placed):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(b"mine")
        with pytest.raises(StoreError, match=f"{name} exists; choose another folder for --"):
            prepare(source, tmp_path / "s.h5", PLAIN, **outputs)
        assert (tmp_path / name).read_bytes() == b"mine"
        (tmp_path / name).write_bytes(content)
    with pytest.raises(StoreError, match="exists; choose another folder for --keep-text"):
        prepare(source, tmp_path / "other.h5", PLAIN, **outputs)
    blocks = cleaned_blocks(monkeypatch)
    prepare(source, tmp_path / "s.h5", PLAIN, **outputs)
    assert blocks == [] and list((tmp_path / "work").iterdir()) == []
    with pytest.raises(StoreError, match="exists; choose another folder for --keep-text"):
        prepare(source, tmp_path / "t.h5", PLAIN, **outputs)
    prepare(source, tmp_path / "t.h5", PLAIN, overwrite=True, **outputs)


def test_all_outputs_may_be_in_one_folder(tmp_path: Path) -> None:
    of_another_run = tmp_path / ".x.npy.0123456789ab.part"
    of_another_run.touch()
    run(tmp_path, corpus(), keep_text=tmp_path, rejects=tmp_path, work=tmp_path)
    names = {"a.txt", "b.txt", "duplicate.tsv", "too-short.tsv", "empty-side.tsv"}
    assert {path.name for path in tmp_path.iterdir()} == {
        "0.tsv",
        "s.h5",
        of_another_run.name,
        *names,
    }


@pytest.mark.parametrize("text", [corpus(), [*corpus(), ("three\tcolumns", "here")]])
def test_a_folder_named_for_work_stays_with_everything_in_it(tmp_path: Path, text: Pairs) -> None:
    outcome: Any = (
        nullcontext() if text == corpus() else pytest.raises(TextError, match="has 3 columns")
    )
    (tmp_path / "precious").touch()
    with outcome:
        run(tmp_path, text, work=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} - {"s.h5"} == {"precious", "0.tsv"}


def test_a_bad_text_leaves_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path / "good.tsv", corpus())
    write(tmp_path / "bad.tsv", [*corpus(), ("three\tcolumns", "here")])
    sources = [parse_source(str(tmp_path / name), EN_ES) for name in ("good.tsv", "bad.tsv")]
    with pytest.raises(TextError, match=rf"bad.tsv: row {len(corpus()) + 1} has 3 columns"):
        prepare(sources, tmp_path / "s.h5", PLAIN, workers=2)
    with pytest.raises(SettingsError, match="0 texts"):
        prepare([], tmp_path / "s.h5", PLAIN)
    assert {path.name for path in tmp_path.iterdir()} == {"bad.tsv", "good.tsv"}


def test_the_cache_knows_texts_settings_and_files_of_filters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = parse_source(str(write(tmp_path / "a.tsv", corpus())), EN_ES)
    folder = tmp_path / "cache"
    path = prepare_cached([source], PLAIN, folder)
    made = path.stat().st_mtime_ns
    assert prepare_cached([source], PLAIN, folder, workers=2) == path
    assert path.stat().st_mtime_ns == made
    assert prepare_cached([source], dataclasses.replace(PLAIN, seed=1), folder) != path
    path.write_bytes(b"damaged")
    assert len(PairStore(prepare_cached([source], PLAIN, folder))) == len(reference(corpus())[0])
    os.utime(tmp_path / "a.tsv", (1, 1))
    assert prepare_cached([source], PLAIN, folder) != path
    assert len(list(folder.glob("*.h5"))) == 3
    assert not list(folder.glob(".*.work"))
    listed = dataclasses.replace(
        PLAIN, cleaning=parse_cleaning(["test_sets", "duplicates"], "test")
    )
    known = prepare_cached([source], listed, folder)
    monkeypatch.setattr(KnownTestSentences, "identity", lambda self: {"known": "another file"})
    assert prepare_cached([source], listed, folder) != known
    with pytest.raises(TextError, match="not a regular file"):
        prepare_cached([parse_source("-", EN_ES)], PLAIN, folder)


def test_settings_are_checked() -> None:
    for change, message in (
        ({"temperature": 0.5}, "temperature is 0.5; it must be greater than or equal to 1"),
        ({"seed": 1 << 32}, "seed is 4294967296; it must be less than"),
        ({"segmentation": "space"}, "segmentation is 'space'; it must be 'none'"),
        ({"languages": ("en", "")}, "languages is .*give two codes"),
        (
            {"tokens": "word", "segmentation": "jieba"},
            "segmentation is jieba, which needs tokens sentencepiece, not word",
        ),
        (
            {"sharing": "disjoint", "languages": ("en", "en")},
            "separate vocabularies need exactly two languages",
        ),
    ):
        with pytest.raises(SettingsError, match=message):
            dataclasses.replace(PLAIN, **change)


def test_coverage_follows_the_script() -> None:
    assert (
        PrepareSettings(("en", "zh_cn")).coverage
        == PrepareSettings(("en", "ja")).coverage
        == 0.9999
    )
    assert (
        PrepareSettings(("en", "ar-zh")).coverage
        == PrepareSettings(("en", "ar-ru")).coverage
        == 0.99995
    )
    assert PrepareSettings(("en", "ru")).coverage == 0.9995
    assert PrepareSettings(("en", "zh"), character_coverage=0.99).coverage == 0.99


def test_the_cache_waits_only_for_the_same_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, other = (
        parse_source(str(write(tmp_path / name, corpus(300, seed))), EN_ES)
        for seed, name in enumerate(("a.tsv", "b.tsv"))
    )
    options, folder = dataclasses.replace(PLAIN, vocab_size=60), tmp_path / "cache"
    path = prepare_cached([source], options, folder)
    taken, made = Event(), Event()

    def another_run() -> None:
        with FileLock(folder / f".{path.name}.lock"):
            taken.set()
            made.wait(20)
            time.sleep(0.2)

    thread = Thread(target=another_run)
    thread.start()
    assert taken.wait(20)
    prepare_cached([other], options, folder)
    assert "waiting" not in caplog.text
    made.set()
    assert prepare_cached([source], options, folder) == path
    thread.join()
    assert f"waiting for another run: another run is writing {path}" in caplog.messages
