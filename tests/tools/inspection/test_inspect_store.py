"""The inspection of a pair store, compared with plain counting; text, picture, JSON and the command."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from st_paragram.cli import inspect_store as command
from st_paragram.cli.main import build_parser
from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer, train_vocabulary
from st_paragram.errors import MissingExtraError, SettingsError, StoreError
from st_paragram.tools.inspection import scan
from st_paragram.tools.inspection.plot import plot
from st_paragram.tools.inspection.scan import inspect
from st_paragram.tools.inspection.statistics import QUANTILES, LabelUse
from st_paragram.tools.inspection.text import render

SCRIPT = Path(__file__).parents[3] / "data_prep" / "inspect_store.py"


def pieces(store: PairStore, side: str) -> list[list[int]]:
    ids, offsets = store.take(side, np.arange(len(store)))
    return [ids[start:end].tolist() for start, end in itertools.pairwise(offsets)]


def run(*arguments: object) -> int:
    return command.run(build_parser("inspect").parse_args(["inspect", *map(str, arguments)]))


@pytest.fixture
def odd_store(tmp_path, vocabulary) -> PairStore:
    """Sentences of every kind: unknown, at the limit of 6 pieces."""
    first = ["ba ce di", "Ω", "ba " * 20, "Ω Ω", "ce"]
    second = ["di ce ba fo", "ba", "fo " * 20, "gu ha", "Ж"]
    with PairStoreWriter(tmp_path / "odd.h5", ("en", "en"), vocabulary, 6) as writer:
        writer.append(*vocabulary.encode(first, 6), *vocabulary.encode(second, 6))
    return PairStore(tmp_path / "odd.h5")


@pytest.mark.parametrize("block", [64, 1 << 16])
def test_numbers_as_counted_plainly(store, monkeypatch, block) -> None:
    monkeypatch.setattr(scan, "_BLOCK", block)
    found = inspect(store, frequent=5)
    sides = [pieces(store, side) for side in "ab"]
    assert (found.pairs, found.size) == (700, store.path.stat().st_size)
    for side, rows in zip(found.sides, sides, strict=True):
        lengths = sorted(map(len, rows))
        assert Counter(lengths) == {n: count for n, count in enumerate(side.lengths.tolist()) if count}
        assert (side.pieces, side.mean) == (sum(lengths), pytest.approx(np.mean(lengths)))
        expected = np.quantile(lengths, QUANTILES, method="inverted_cdf").tolist()
        assert list(side.quantiles().values()) == expected
    counts = Counter(piece for rows in sides for row in rows for piece in row)
    tokenizer = store.tokenizer()
    (use,) = found.tokenizers
    assert (use.size, use.ordinary, use.used) == (len(store.tokenizer()), len(store.tokenizer()) - 3, len(counts))
    assert use.once == sum(count == 1 for count in counts.values())
    assert use.frequencies.sum() == sum(counts.values()) and (np.diff(use.frequencies) <= 0).all()
    named = {tokenizer.piece(piece): count for piece, count in counts.items()}
    assert [count for _, count in use.most_frequent] == sorted(named.values(), reverse=True)[:5]
    assert all(named[piece] == count for piece, count in use.most_frequent)
    joint = Counter((len(a), len(b)) for a, b in zip(*sides, strict=True))
    assert {(int(i), int(j)): int(found.joint[i, j]) for i, j in np.argwhere(found.joint)} == joint
    ratios = [len(b) / len(a) for a, b in zip(*sides, strict=True)]
    assert list(found.ratio.values()) == np.quantile(ratios, list(found.ratio), method="inverted_cdf").tolist()


def test_unknown_and_cut(odd_store) -> None:
    found = inspect(odd_store)
    assert [side.unknown for side in found.sides] == [0.4, 0.2]
    assert [side.at_limit for side in found.sides] == [
        sum(len(row) == 6 for row in pieces(odd_store, side)) / 5 for side in "ab"
    ]
    assert found.sides[0].at_limit > 0
    ratios = [len(b) / len(a) for a, b in zip(*(pieces(odd_store, side) for side in "ab"), strict=True)]
    assert list(found.ratio.values()) == np.quantile(ratios, list(found.ratio), method="inverted_cdf").tolist()
    text = render(found)
    assert "40.000 %" in text and "en (b) over en (a)" in text and "cut at 6 pieces" in text


def test_longer_than_the_joint_table(tmp_path, vocabulary) -> None:
    with PairStoreWriter(tmp_path / "long.h5", ("en", "xx"), vocabulary) as writer:
        texts = ["ba ce " * 400, "ba"], ["ba", "ba ce " * 900]
        writer.append(*vocabulary.encode(texts[0]), *vocabulary.encode(texts[1]))
    store = PairStore(tmp_path / "long.h5")
    found = inspect(store)
    assert found.sides[0].quantiles()[1.0] == len(pieces(store, "a")[0]) > 255
    assert found.joint.sum() == 2 and found.joint[255, 1:].sum() == 1
    assert found.sides[0].at_limit == 0
    render(found)
    plot(found, tmp_path / "long.png")


def test_examples(store, pairs) -> None:
    found = inspect(store, 7)
    assert len(found.examples) == 7
    assert [each.row for each in found.examples] == sorted({each.row for each in found.examples})
    assert all(pairs[each.row] == each.texts for each in found.examples)
    assert all((each.languages, each.label) == (("en", "xx"), None) for each in found.examples)
    assert inspect(store, 7).examples == found.examples != inspect(store, 7, seed=1).examples
    assert len(inspect(store, 10_000).examples) == 700
    assert "drawn at random" not in render(inspect(store, 0))
    with pytest.raises(SettingsError, match="-1 pairs"):
        inspect(store, -1)


def test_text(store) -> None:
    text = render(inspect(store, 2))
    lines = text.split("\n")
    assert lines[0].startswith(f"{store.path}: 700 pairs en-xx") and lines[-1] == ""
    assert "  note: made for tests" in lines and "2 pairs drawn at random" in lines
    assert not any(line != line.rstrip() for line in lines)
    assert lines[1] == "sentencepiece tokenizer, lower case; cut at 100 pieces, seed 0"
    for side in (0, 1):
        shares = [line.split("%") for line in lines if "#" in line]
        column = [float(cells[side].split()[-1]) for cells in shares]
        assert sum(column) == pytest.approx(100, abs=0.6)


@pytest.fixture
def mixed_store(tmp_path, vocabulary) -> PairStore:
    """A tokenizer of each side, two pairs of languages, labels."""
    other = SentencePieceTokenizer(train_vocabulary(["ba ce di fo gu ha je"] * 5, 30), lower_case=False)
    languages = [("en", "fr"), ("en", "en")]
    with PairStoreWriter(
        tmp_path / "mixed.h5", ("en", "fr"), (vocabulary, other), 6, None, 3, languages, np.int32
    ) as writer:
        first, second = ["ba ce", "di", "ce ce", "Ω"], ["ba ba ba", "ha", "Ω", "je"]
        parts = *vocabulary.encode(first, 6), *other.encode(second, 6)
        writer.append(*parts, np.array([0, 1, 0, 0]), np.array([2, 0, 2, 1]))
    return PairStore(tmp_path / "mixed.h5")


def test_two_tokenizers_languages_and_labels(mixed_store, tmp_path) -> None:
    found = inspect(mixed_store, 4, frequent=1)
    assert found.row_languages == {("en", "fr"): 3, ("en", "en"): 1}
    assert found.labels == LabelUse(0, 1.25, 2, {0: 1, 1: 1, 2: 2})
    assert [use.size for use in found.tokenizers] == [len(tokenizer) for tokenizer in mixed_store.tokenizers]
    for side, use in zip("ab", found.tokenizers, strict=True):
        counts = Counter(piece for row in pieces(mixed_store, side) for piece in row)
        counts.pop(mixed_store.tokenizer(side).unknown_id, None)
        assert use.most_frequent[0][1] == max(counts.values()) and use.used == len(counts)
    assert [side.unknown for side in found.sides] == [0.25, 0.25]
    assert [(each.languages, each.label) for each in found.examples] == [
        (("en", "fr"), 2),
        (("en", "en"), 0),
        (("en", "fr"), 2),
        (("en", "fr"), 1),
    ]
    lines = render(found).split("\n")
    head = "side a: sentencepiece tokenizer, lower case; side b: sentencepiece tokenizer, case as written"
    assert lines[1:3] == [f"{head}; cut at 6 pieces, seed 3", "languages of the pairs: en-fr 3, en-en 1"]
    assert sum(line.startswith(("Vocabulary of en:", "Vocabulary of fr:")) for line in lines) == 2
    start = lines.index("Labels from 0 to 2, mean 1.25")
    assert lines[start + 1] == "  0: 25.0 %, 1: 25.0 %, 2: 50.0 %"
    assert lines[lines.index("  1, label 0") + 1] == "    en  di"
    values = json.loads(json.dumps(found.as_json()))
    assert values["row_languages"] == [["en", "fr", 3], ["en", "en", 1]]
    assert values["labels"]["counts"] == {"0": 1, "1": 1, "2": 2} and len(values["tokenizers"]) == 2
    plot(found, tmp_path / "mixed.png")


def test_many_different_labels_are_not_counted_one_by_one(tmp_path, vocabulary) -> None:
    grades = np.linspace(0, 5, 201, dtype=np.float32)
    with PairStoreWriter(tmp_path / "s.h5", ("en", "en"), vocabulary, labels=np.float32) as writer:
        side = vocabulary.encode(["ba"] * 201)
        writer.append(*side, *side, labels=grades)
    use = inspect(PairStore(tmp_path / "s.h5")).labels
    assert (use.least, use.greatest, use.counts) == (0, 5, None) and use.mean == pytest.approx(2.5)


@pytest.mark.parametrize(
    "report",
    [
        {"sources": [{"name": "a.tsv", "rows": 12345, "kept": 7, "dropped": {"too short": 3, "too long": 0}}]},
        {"sources": [{"rows": "many", "dropped": ["x"]}, 3]},
        {"sources": None},
        [1],
        None,
    ],
)
def test_reports_of_any_kind(tmp_path, vocabulary, pairs, report) -> None:
    with PairStoreWriter(
        tmp_path / "s.h5", ("en", "xx"), vocabulary, 100, {"report": report, "x": ["y"] * 99}
    ) as writer:
        writer.append(*vocabulary.encode([a for a, _ in pairs[:9]]), *vocabulary.encode([b for _, b in pairs[:9]]))
    text = render(inspect(PairStore(tmp_path / "s.h5")))
    assert ("  a.tsv: 12,345 rows, 7 kept, 3 too short\n" in text) == ("12345" in str(report))


def test_picture(store, odd_store, tmp_path, monkeypatch) -> None:
    for number, found in enumerate((inspect(store), inspect(odd_store))):
        plot(found, tmp_path / "new" / f"{number}.png")
        assert (tmp_path / "new" / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "new").iterdir())) == 2
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"st_paragram\[plots\]"):
        plot(inspect(store), tmp_path / "none.png")


def test_command(store, tmp_path, capsys) -> None:
    assert run(store.path, "--pairs", 3, "--json", tmp_path / "s.json", "--plot", tmp_path / "s.png") == 0
    assert capsys.readouterr().out == render(inspect(PairStore(store.path), 3))
    values = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert (values["pairs"], values["languages"], len(values["examples"])) == (700, ["en", "xx"], 3)
    assert values["settings"] == {"note": "made for tests"} and sum(values["sides"][0]["lengths"]) == 700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.json", "s.png"]
    run(store.path, "--limit", 50)
    assert ": 50 pairs" in capsys.readouterr().out
    with pytest.raises(StoreError, match="not a readable pair store"):
        run(tmp_path / "none.h5")


def test_script(store) -> None:
    done = subprocess.run([sys.executable, SCRIPT, store.path, "--pairs", "1"], capture_output=True, text=True)
    assert done.returncode == 0 and "700 pairs" in done.stdout, done.stderr
