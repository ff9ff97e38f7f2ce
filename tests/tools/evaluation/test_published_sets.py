import json

import pytest

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation import published_sets
from st_paragram.tools.evaluation.published_sets import is_published, set_digest, write_published_sets
from st_paragram.tools.evaluation.sts.catalogue import BENCHMARKS
from st_paragram.tools.evaluation.tatoeba import PUBLISHED

FIRST, SECOND = [f"Satz {n}!" for n in range(30)], [f"sentence {n}" for n in range(30)]
READ = published_sets._known


@pytest.fixture
def known(tmp_path, monkeypatch):
    """Digests of one Tatoeba set and one of STS."""
    grades = [n % 6 for n in range(30)]
    path = tmp_path / "known.json"
    digests = {"tatoeba/deu": set_digest(FIRST, SECOND), "2017/es-en": set_digest(FIRST, SECOND, grades)}
    write_published_sets(digests, path)
    monkeypatch.setattr(published_sets, "_known", lambda: READ(path))
    return grades


def test_order_sides_and_punctuation_do_not_matter(known):
    assert is_published("tatoeba/deu", SECOND[::-1], [text.replace("!", " .") for text in FIRST[::-1]])
    assert is_published("2017/es-en", FIRST, SECOND, [grade + 1e-7 for grade in known])
    assert is_published("tatoeba/fra", FIRST, SECOND) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [(FIRST[:-1], SECOND[:-1]), ([*FIRST, FIRST[0]], [*SECOND, SECOND[0]]), (["Satz", *FIRST[1:]], SECOND)],
)
def test_any_other_row_matters(known, first, second):
    assert is_published("tatoeba/deu", first, second) is False
    assert is_published("2017/es-en", FIRST, SECOND, [1.0, *known[1:]]) is False


def scored(folder, capsys, name):
    assert main(["evaluate", "p-sp-mini", "--data", str(folder), "--benchmarks", name]) == 0
    return capsys.readouterr().out


def test_published_figures_stand_next_to_published_data_alone(known, tmp_path, capsys):
    left_out = "Published figures are left out where the data are not the published test set: "
    folder = tmp_path / "data"
    for name in ("tatoeba", "sts2017"):
        (folder / name).mkdir(parents=True)
    for changed in (False, True):
        first = ["mein Satz" if changed else FIRST[0], *FIRST[1:]]
        rows = list(zip(first, SECOND, strict=True))
        (folder / "tatoeba" / "deu-eng.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows))
        graded = [f"{grade}\t{a}\t{b}\n" for grade, (a, b) in zip(known, rows, strict=True)]
        (folder / "sts2017" / "track4a.es-en.tsv").write_text("".join(graded))
        for name, key in (("tatoeba", "deu"), ("sts", "2017/es-en")):
            printed = scored(folder, capsys, name)
            assert ("(published, EMNLP 2022)" in printed) is not changed
            assert (f"{left_out}{key}." in printed) is changed


def test_the_installed_file_has_all_that_have_published_figures():
    names = set(READ(published_sets.PUBLISHED_SETS))
    assert {f"tatoeba/{code}" for code in PUBLISHED[0].scores if code != "average"} <= names
    expected = {info.key for benchmark in BENCHMARKS.values() for info in benchmark.sets}
    assert expected - names == {"2013/SMT"}  # may not be passed on: known by its number of pairs


def test_a_damaged_file_is_one_line(tmp_path):
    path = tmp_path / "broken.json"
    path.write_text(json.dumps([1]))
    with pytest.raises(EvaluationError, match=r"broken\.json: not readable"):
        READ(path)
