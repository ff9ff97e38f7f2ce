"""Published test sets are recognized by their content, whatever their files are called."""

import pytest

from st_paragram.tools.evaluation.benchmarks import benchmarks_in
from st_paragram.tools.evaluation.files import GradedPairs, Translations
from st_paragram.tools.evaluation.known_sets import (
    are_published,
    graded_digest,
    known_digests,
    name_of_graded,
    translations_digest,
)
from st_paragram.tools.evaluation.report import published_columns
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.sts_sets import INFOS, SMT, read

PAIRS = GradedPairs("x", ["A man sleeps.", "Rain"], ["A man is asleep", "Snow!"], [4.5, 1.0])


@pytest.fixture
def rows(texts):
    """Rows of a score and two sentences."""
    return [(number % 6, texts[number], texts[number + 1]) for number in range(30)]


def known(monkeypatch, name, rows):
    """Make rows a published set of STS."""
    grades, first, second = map(list, zip(*rows, strict=True))
    digest = graded_digest(GradedPairs(name, first, second, grades))
    monkeypatch.setitem(known_digests()["sts"], name, digest)


@pytest.mark.parametrize(
    ("first", "second", "grades", "is_same"),
    [
        (["rain", "a man sleeps ."], ["snow", "a man is asleep"], [1, 4.5], True),
        (["A man is asleep", "Rain"], ["A man sleeps.", "Snow"], [4.5, 1], True),
        (["A man sleeps.", "Rain"], ["A man is asleep", "Snow"], [4.5, 1.1], False),
        (["A man sleeps.", "Rain"], ["A man is awake", "Snow"], [4.5, 1], False),
        (["A man sleeps.", "Rain"], ["A man is asleep", "Snow"], [1, 4.5], False),
        (["A man sleeps."], ["A man is asleep"], [4.5], False),
        (
            ["A man sleeps.", "Rain", "Rain"],
            ["A man is asleep", "Snow", "Snow"],
            [4.5, 1, 1],
            False,
        ),
    ],
)
def test_order_case_and_punctuation_do_not_count(first, second, grades, is_same):
    other = GradedPairs("y", first, second, grades)
    assert (graded_digest(other) == graded_digest(PAIRS)) is is_same


def test_a_digest_is_the_sum_of_the_hashes_of_rows():
    parts = [
        GradedPairs("x", [a], [b], [g])
        for a, b, g in zip(PAIRS.first, PAIRS.second, PAIRS.grades, strict=True)
    ]
    total = sum(int(graded_digest(part), 16) for part in parts)
    assert int(graded_digest(PAIRS), 16) == total % 2**64


def test_all_sets_with_published_figures_have_a_digest():
    assert known_digests()["sts"].keys() == INFOS.keys() - {SMT}
    for benchmark in ("tatoeba", "ntrex"):
        assert set(known_digests()[benchmark]) == set(published_columns(benchmark)) - {"average"}
    every = [digest for digests in known_digests().values() for digest in digests.values()]
    assert len(set(every)) == len(every) == 34 + 6 + 8
    assert not name_of_graded(PAIRS)


def test_a_set_in_any_folder_has_published_figures(
    tmp_path, tiny, rows, write, evaluate, monkeypatch
):
    known(monkeypatch, "2017/en-en", rows)
    write(tmp_path / "my downloads" / "tracks.tsv", reversed(rows))
    write(tmp_path / "notes.tsv", "3 \tcells\tin a row\nand\ttwo\n")
    (tmp_path / "latin-1.tsv").write_bytes("3\tMu\u00f1eca\tni\u00f1a\n".encode("latin-1"))
    assert benchmarks_in(tmp_path) == ["sts"]
    printed, scores = evaluate(tiny, "--data", tmp_path)
    assert "SP 20k 300d, 1M OpenSubtitles (published, ACL 2019) | 84.5 |" in printed
    assert {score.set for score in scores} >= {"2017/en-en", "STS17/en-en"}


def test_a_name_makes_no_published_set(tmp_path, tiny, rows, write, evaluate, monkeypatch):
    known(monkeypatch, "2017/en-en", rows)
    changed = [(6, *rows[0][1:]), *rows[1:]]
    write(tmp_path / "sts2017" / "track5.en-en.tsv", changed)
    printed, _ = evaluate(tiny, "--data", tmp_path)
    assert "(published, " not in printed
    assert "not the published test set: 2017/en-en." in printed
    write(tmp_path / "elsewhere" / "track5.en-en.tsv", rows)
    assert read(Request([], data=tmp_path)).altered == []
    (tmp_path / "elsewhere" / "track5.en-en.tsv").rename(tmp_path / "other.tsv")
    write(tmp_path / "sts2017" / "track3.es-es.tsv", rows)  # the name of another set
    data = read(Request([], data=tmp_path))
    assert list(data.sets) == ["2017/en-en"] and data.altered == []


def test_sentences_and_grades_of_the_tasks_are_recognized(tmp_path, rows, write, monkeypatch):
    known(monkeypatch, "2012/OnWN", rows)
    # SentEval: tokenized, in lower case; rows without a grade are not scored
    texts = [(first.lower().replace(".", " ."), second) for _, first, second in rows]
    write(tmp_path / "test-gold" / "STS.input.surprise.OnWN.txt", [("not", "graded"), *texts])
    write(tmp_path / "test-gold" / "STS.gs.surprise.OnWN.txt", [("",), *[row[:1] for row in rows]])
    data = read(Request([], data=tmp_path))
    assert list(data.sets) == ["2012/OnWN"] and not data.altered


def test_translations_are_recognized(monkeypatch, tmp_path, tiny, texts, write, evaluate):
    rows = [(text, text.upper()) for text in texts[:20]]
    pairs = Translations("spa", *map(list, zip(*rows, strict=True)))
    monkeypatch.setitem(known_digests()["tatoeba"], "spa", translations_digest(pairs))
    assert are_published("tatoeba", pairs) and not are_published("ntrex", pairs)
    write(tmp_path / "spa-eng.tsv", rows)
    printed, _ = evaluate(tiny, "--data", tmp_path, "--benchmarks", "tatoeba")
    assert "| LASER (published, EMNLP 2022) |" in printed
    write(tmp_path / "spa-eng.tsv", [("changed", "changed"), *rows[1:]])
    printed, _ = evaluate(tiny, "--data", tmp_path, "--benchmarks", "tatoeba")
    assert "not the published test set: spa." in printed
