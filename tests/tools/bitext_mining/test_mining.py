"""Mining, compared with a plain search, whatever the shards and interruptions."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from st_paragram import Encoder
from st_paragram.cli.main import main
from st_paragram.errors import MiningError, ParagramError, TextError
from st_paragram.tools.bitext_mining import miner
from st_paragram.tools.bitext_mining.candidates import Candidates
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.miner import mine
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.neighbors import inexact, vectors
from st_paragram.tools.neighbors.settings import VectorType
from st_paragram.tools.neighbors.vectors import pack

pytest.importorskip("faiss")
MODEL, PLAIN = "p-sp-mini", MiningSettings(neighbors=3, margin=Margin.RATIO)


@pytest.fixture
def texts(tmp_path, pairs) -> list[str]:
    """Both sides of the pairs, in other orders, with blank, short and repeated lines among them."""
    paths = []
    for side, name in enumerate("ab"):
        odd = ["", "  ", "-", pairs[0][side], pairs[1][side].replace(" ", "  ")]
        lines = [pair[side] for pair in pairs[:400]] + odd
        random.Random(side).shuffle(lines)
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text("".join(f"{line}\n" for line in lines))
    return list(map(str, paths))


def distinct(path: str) -> list[str]:
    lines = [" ".join(line.split()) for line in Path(path).read_text().split("\n")]
    return [line for line in dict.fromkeys(lines) if sum(map(str.isalnum, line)) >= 2]


def units(sentences: list[str]) -> np.ndarray:
    rows = Encoder(MODEL).encode(sentences)
    stored = (
        (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16).astype(np.float64)
    )
    return stored / np.linalg.norm(stored, axis=1, keepdims=True)


def plain(source: list[str], target: list[str], k: int) -> list[tuple[float, str, str]]:
    """Ratio margins, best first, each sentence once: all in memory, with sorted lists."""
    cosines = units(source) @ units(target).T
    near = [np.argsort(-cosines, axis=1)[:, :k], np.argsort(-cosines.T, axis=1)[:, :k]]
    means = [
        np.take_along_axis(c, n, 1).mean(axis=1)
        for c, n in zip((cosines, cosines.T), near, strict=True)
    ]
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


def test_pairs_are_those_of_a_plain_search(texts, tmp_path):
    report = mine(texts, tmp_path / "p.tsv", MODEL, PLAIN)
    rows = rows_of(tmp_path / "p.tsv")
    expected = plain(distinct(texts[0]), distinct(texts[1]), 3)
    assert {row[1:] for row in rows} == {row[1:] for row in expected}
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    np.testing.assert_allclose([row[0] for row in rows], [row[0] for row in expected], atol=1e-3)
    counts = report.counts[0]
    assert (counts.lines, counts.blank, counts.near_empty) == (405, 2, 1)
    assert counts.sentences == len(distinct(texts[0])) == counts.lines - 3 - counts.repeated
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b.txt", "p.tsv"}


@pytest.mark.parametrize("index", ["auto", "Flat", "HNSW8", "IVF4,PQ8x4fs"])
@pytest.mark.parametrize("paraphrase", [False, True])
def test_shards_change_nothing_and_flat_indexes_find_all(
    texts, tmp_path, index, paraphrase, monkeypatch
):
    settings = replace(PLAIN, index=index, recall=0.5, paraphrase=paraphrase)
    texts = texts[: 2 - paraphrase]
    report = mine(texts, tmp_path / "one.tsv", MODEL, settings)
    if index == "Flat":
        mine(texts, tmp_path / "own.tsv", MODEL, replace(settings, index="auto"))
        assert (tmp_path / "own.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
        assert {searched.effort.recall_at_k for searched in report.searched} == {1}
    monkeypatch.setattr(miner, "_QUERIES", 64)
    monkeypatch.setattr(vectors, "SHARD", 50)
    mine(texts, tmp_path / "two.tsv", MODEL, settings)
    assert (tmp_path / "one.tsv").read_bytes() == (tmp_path / "two.tsv").read_bytes()


def test_a_folder_that_is_named_stays_and_what_changed_is_made(texts, tmp_path):
    def made(settings: MiningSettings) -> list[str]:
        before = set(folder.iterdir()) if folder.exists() else set()
        mine(texts, tmp_path / "p.tsv", MODEL, settings, overwrite=True, work=folder.parent)
        return sorted(
            {path.name.split("-")[0] for path in set(folder.iterdir()) - before} - {"in", ".made"}
        )

    folder = tmp_path / "work" / "st_paragram.work"
    assert made(PLAIN) == ["neighbors", "sentences", "vectors"]
    content = (tmp_path / "p.tsv").read_bytes()
    assert made(replace(PLAIN, margin=Margin.DISTANCE, threshold=0.1)) == []
    assert made(replace(PLAIN, neighbors=2)) == ["neighbors"]
    assert made(replace(PLAIN, vector_type=VectorType.INT8)) == ["neighbors", "vectors"]
    assert made(replace(PLAIN, index="IVF4,Flat")) == ["index", "neighbors"]
    assert made(PLAIN) == [] and (tmp_path / "p.tsv").read_bytes() == content
    os.utime(texts[0], (1, 1))
    assert made(PLAIN) == ["neighbors", "sentences", "vectors"]
    for path in folder.glob("neighbors-*/*.npz"):
        path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(MiningError, match=r"000000000\.npz: damaged .*; remove it and start again"):
        mine(texts, tmp_path / "q.tsv", MODEL, PLAIN, work=folder.parent)


def test_paraphrases_of_one_text(texts, tmp_path):
    settings = replace(PLAIN, paraphrase=True, margin=Margin.ABSOLUTE, candidates=Candidates.ALL)
    mine(texts[:1], tmp_path / "p.tsv", MODEL, settings)
    sentences = distinct(texts[0])
    cosines = units(sentences) @ units(sentences).T
    np.fill_diagonal(cosines, -2)
    expected = set()
    for row, near in enumerate(np.argsort(-cosines, axis=1)[:, :3]):
        expected |= {tuple(sorted((row, int(other)))) for other in near}
    rows = rows_of(tmp_path / "p.tsv")
    assert {(a, b) for _, a, b in rows} == {(sentences[i], sentences[j]) for i, j in expected}
    assert len(rows) == len(expected)
    mine(texts[:1], tmp_path / "m.tsv", MODEL, replace(settings, candidates=Candidates.MAX))
    once = [text for row in rows_of(tmp_path / "m.tsv") for text in row[1:]]
    assert len(once) == len(set(once))


@pytest.mark.parametrize("side", [0, 1])
def test_a_short_text_is_mined_in_a_long_one(texts, tmp_path, monkeypatch, side):
    monkeypatch.setattr(inexact, "_EXACT_WORK", 0)
    lines = Path(texts[side]).read_text().split("\n")
    Path(texts[side]).write_text("".join(f"{line}\n" for line in lines[:30]))
    report = mine(texts, tmp_path / "p.tsv", MODEL, PLAIN)
    assert {searched.index for searched in report.searched} == {"IVF8,PQ64x4fs"}


def test_ids_come_out_in_place_of_sentences(texts, tmp_path):
    mine(texts, tmp_path / "plain.tsv", MODEL, PLAIN)
    first = []  # id of the first line with a sentence
    for name, path in zip("ab", map(Path, texts), strict=True):
        lines = path.read_text().split("\n")[:-1]
        path.write_text("".join(f"{name}-{i}\t{line}\n" for i, line in enumerate(lines)))
        first.append(
            {" ".join(line.split()): f"{name}-{i}" for i, line in reversed(list(enumerate(lines)))}
        )
    mine(texts, tmp_path / "ids.tsv", MODEL, replace(PLAIN, with_ids=True))
    expected = [
        (score, first[0][a], first[1][b]) for score, a, b in rows_of(tmp_path / "plain.tsv")
    ]
    assert rows_of(tmp_path / "ids.tsv") == expected


def test_thresholds_and_frequent_sentences(texts, tmp_path):
    mine(texts, tmp_path / "all.tsv", MODEL, PLAIN)
    middle = rows_of(tmp_path / "all.tsv")[50][0]
    mine(texts, tmp_path / "some.tsv", MODEL, replace(PLAIN, threshold=middle - 1e-9))
    assert 45 <= len(rows_of(tmp_path / "some.tsv")) <= 55
    report = mine(texts, tmp_path / "rare.tsv", MODEL, replace(PLAIN, most_repeats=1))
    assert report.counts[0].boilerplate >= 4 and report.counts[0].repeated == 0
    assert report.counts[0].lines == report.counts[0].sentences + report.counts[0].boilerplate + 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n-\n", r"a\.txt: no sentences in 3 lines"),
        (
            "გამარჯობა\n".encode(),
            r"a\.txt: too few distinct sentences with a token that the model knows",
        ),
        (b"good line\n\xff\xfe bad\n", r"a\.txt: line 2 is not UTF-8 \(byte 0xff\)"),
    ],
)
def test_texts_that_cannot_be_mined(texts, tmp_path, content, message):
    Path(texts[0]).write_bytes(content)
    with pytest.raises((MiningError, TextError), match=message) as caught:
        mine(texts, tmp_path / "p.tsv", MODEL, PLAIN)
    assert "\n" not in str(caught.value)
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "b.txt"}


@pytest.mark.parametrize("index", ["auto", "Flat"])
@pytest.mark.parametrize("margin", ["distance", "ratio", "absolute"])
def test_few_sentences_have_fewer_neighbors(texts, tmp_path, caplog, index, margin):
    many = Path(texts[1]).read_text(encoding="utf-8")
    settings = MiningSettings(neighbors=30, index=index, margin=margin)
    for count in (1, 2, 5):
        Path(texts[0]).write_text("\n".join(many.splitlines()[:count]), encoding="utf-8")
        for order in (texts, texts[::-1]):
            report = mine(order, tmp_path / "p.tsv", MODEL, settings, overwrite=True)
            rows = rows_of(tmp_path / "p.tsv")
            assert report.pairs == len(rows) == count and all(
                np.isfinite(score) for score, _, _ in rows
            )
            assert {(one, other) for _, one, other in rows} == {
                (line, line) for line in many.splitlines()[:count]
            }
        assert (
            f"a.txt: too few sentences for 30 neighbors each; {count} used instead" in caplog.text
        )
    paraphrases = replace(settings, paraphrase=True, candidates="all")
    mine(texts[:1], tmp_path / "q.tsv", MODEL, paraphrases)
    assert len(rows_of(tmp_path / "q.tsv")) == 10  # all pairs of 5 sentences
    Path(texts[0]).write_text("the same again\n" * 50)
    with pytest.raises(MiningError, match=r"a\.txt: too few distinct sentences with a token that"):
        mine(texts[:1], tmp_path / "r.tsv", MODEL, paraphrases)


def test_refusals(texts, tmp_path):
    (tmp_path / "old").write_text("old")
    for given, output, settings, message in (
        (texts[:1], "p.tsv", PLAIN, "1 text given, 2 needed"),
        (
            texts,
            "p.tsv",
            replace(PLAIN, index="IVFx"),
            "cannot be built from 356 sentences: could not parse",
        ),
        (texts, "p.tsv", replace(PLAIN, index="IVF4096,Flat"), "has 4,096 lists, but there are"),
        (texts, "old", PLAIN, r"old exists; choose another name or give --overwrite"),
    ):
        with pytest.raises(ParagramError, match=message):
            mine(given, tmp_path / output, MODEL, settings)
    assert (tmp_path / "old").read_text() == "old"


def test_an_interrupted_run_goes_on_to_the_same_file(texts, tmp_path, monkeypatch):
    """Wherever a result is complete and about to take its name: of both texts, vectors, indexes,
    neighbors; pairs.
    """
    settings, replaced = replace(PLAIN, index="IVF4,Flat"), Path.replace
    mine(texts, tmp_path / "whole.tsv", MODEL, settings)
    for call in range(1, 12):
        output, calls, embedded = tmp_path / f"{call}.tsv", [], []

        def stopping(path: Path, target: Path, calls=calls, call=call) -> Path:
            calls.append(target)
            if len(calls) == call:
                raise KeyboardInterrupt
            return replaced(path, target)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "replace", stopping)
            mine(texts, output, MODEL, settings)
        shards = len(list(tmp_path.glob(f".{call}.tsv.work/vectors-*/[!.]*.npy")))
        with monkeypatch.context() as patch:
            patch.setattr(
                vectors, "pack", lambda *given, seen=embedded: seen.append(1) or pack(*given)
            )
            mine(texts, output, MODEL, settings)
        assert (
            len(embedded) == 2 - shards
            and output.read_bytes() == (tmp_path / "whole.tsv").read_bytes()
        )


def run(*arguments: object) -> int:
    return main(["mine", *map(str, arguments)])


def test_the_command(texts, tmp_path, capfd):
    arguments = ["--model", MODEL, "--output", tmp_path / "p.tsv", "--neighbors", 3]
    assert run("--source", texts[0], "--target", texts[1], *arguments) == 0
    printed, told = capfd.readouterr()
    assert "source to target: exact" in told and "2 blank, 1 near-empty" in told
    assert printed == "" and told.endswith(f"p.tsv: {len(rows_of(tmp_path / 'p.tsv')):,} pairs\n")
    assert (
        run(
            "--source",
            texts[0],
            "--target",
            texts[1],
            *arguments[:2],
            "--output",
            "-",
            "--neighbors",
            3,
        )
        == 0
    )
    assert capfd.readouterr().out == (tmp_path / "p.tsv").read_text()
    assert (
        run(
            "--paraphrase",
            texts[0],
            *arguments,
            "--overwrite",
            "--margin",
            "absolute",
            "--index",
            "IVF4,Flat",
        )
        == 0
    )
    assert "among themselves: index IVF4,Flat, effort" in capfd.readouterr().err
    for wrong, seen in (
        (["--source", texts[0], *arguments], "--source"),
        (["a.txt", "b.txt"], "a.txt and b.txt"),
    ):
        assert run(*wrong) == 1
        missing = "give --source FILE and --target FILE, or --paraphrase FILE, and --output FILE"
        assert f"mine: {seen} given; {missing}\n" in capfd.readouterr().err
