"""`evaluate` on the user's own data: what it prints and writes, on models without torch."""

import json

import pytest
from support.without import run_without

from st_paragram.cli.main import main
from st_paragram.tools.evaluation.benchmarks import own_run_types, report
from st_paragram.tools.evaluation.record import read_records

COMMAND = "from st_paragram.cli.main import main\nraise SystemExit(main(sys.argv[1:]))"
MINI = "p-sp-mini"


@pytest.fixture(scope="module")
def data(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("own")
    rows = list(dict.fromkeys(pairs))[:60]
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in rows))
    (folder / "few.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in rows[:10]))
    graded = [f"{one}\t{rows[n // 2][1]}\t{n % 5}\n" for n, (one, _) in enumerate(rows)]
    (folder / "graded.tsv").write_text("".join(graded))
    (folder / "queries.tsv").write_text("".join(f"q{n}\t{one}\n" for n, (one, _) in enumerate(rows[:20])))
    (folder / "corpus.tsv").write_text("".join(f"d{n}\t{one}\n" for n, (_, one) in enumerate(rows)))
    (folder / "qrels.tsv").write_text("".join(f"q{n}\td{n}\t1\n" for n in range(20)))
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The same model with fewer components."""
    folder = tmp_path_factory.mktemp("models") / "short"
    assert main(["export", MINI, str(folder), "--dim", "12"]) == 0
    return folder


def options(data):
    retrieval = [part for name in ("queries", "corpus", "qrels") for part in (f"--{name}", data / f"{name}.tsv")]
    return ["--pairs", data / "pairs.tsv", data / "few.tsv", "--graded", data / "graded.tsv", *retrieval]


def test_all_of_it_without_torch_and_scipy(data, other, tmp_path):
    file = tmp_path / "own.json"
    done = run_without(COMMAND, ["evaluate", MINI, other, *options(data), "--json", file])
    assert done.returncode == 0, done.stderr
    records = read_records(file)
    assert [record.benchmark for record in records] == list(own_run_types())
    for record in records:
        assert list(record.run.models) == [MINI, str(other)]
        assert all(part in done.stdout for part in report(record.run))  # what is read back is what was printed
        first, second = (of.files for of in record.run.models.values())
        assert not any(of.differences for of in first.values()) and all(of.differences for of in second.values())
    few = records[0].run.models[MINI].files[str(data / "few.tsv")]
    assert "mining F1" not in few.figures and "no mining" in "".join(records[0].run.notes)
    assert "(published" not in done.stdout and f"### Differences to {MINI} x 100: paired bootstrap" in done.stdout


def test_the_same_twice_and_one_model_has_no_differences(data, capsys):
    for _ in range(2):
        assert main(["evaluate", MINI, "--pairs", str(data / "pairs.tsv")]) == 0
    first, second = capsys.readouterr().out.split("## Your translations")[1:]
    assert first == second and "Differences" not in first


def test_a_model_against_itself_differs_in_nothing(data, tmp_path):
    file = tmp_path / "own.json"
    mini = read_records_of(["evaluate", MINI, f"./{MINI}", *options(data)], file, data)
    for record in mini:
        for of in record.run.models[f"./{MINI}"].files.values():
            assert {(found.difference, found.p_value) for found in of.differences.values()} == {(0.0, 1.0)}


def read_records_of(words, file, data):
    copy = data / MINI
    if not copy.is_dir():
        assert main(["get", MINI, "--output", str(copy)]) == 0
    words = [str(copy) if word == f"./{MINI}" else str(word) for word in words]
    assert main([*words, "--json", str(file)]) == 0
    text = file.read_text().replace(str(copy), f"./{MINI}")
    file.write_text(text)
    return read_records(file)


def test_refusals_are_one_line(data, tmp_path, capsys):
    pairs, graded = str(data / "pairs.tsv"), str(data / "graded.tsv")
    table = tmp_path / "pairs.csv"
    table.write_text("en,es\na,b\nc,d\n")
    for words, message in (
        (["--pairs", str(tmp_path / "none.tsv")], "none.tsv: no such file; check the path"),
        (["--queries", pairs], "give --corpus and --qrels, too"),
        (["--graded", graded, "--distractors", pairs, pairs], "give --pairs, too"),
        (["--pairs", pairs, "--graded", graded, "--columns", "1", "2"], "score the two in two runs"),
        (["--pairs", pairs, "--columns", "1"], "1 column, where 2 are needed"),
        (["--pairs", str(table)], "--columns NAME"),
        (["--graded", pairs], "row 1 has 2 columns"),
    ):
        assert main(["evaluate", MINI, *words]) == 1, words
        errors = capsys.readouterr().err
        assert message in errors and errors.count("\n") == 1
    assert main(["evaluate", MINI, "--pairs", str(table), "--columns", "en", "es"]) == 0


def test_records_of_figures_without_a_number_are_read(data, tmp_path, capsys):
    same = tmp_path / "same.tsv"
    same.write_text("1\ta cat\ta cat\n2\ta dog\ta dog\n")
    file = tmp_path / "same.json"
    assert main(["evaluate", MINI, "--graded", str(same), "--json", str(file)]) == 0
    assert "| - | - |" in capsys.readouterr().out
    assert (
        json.loads(file.read_text())["run"]["models"][MINI]["files"][str(same)]["figures"]["Pearson"]["value"] is None
    )
    assert read_records(file)[0].run.models[MINI].files[str(same)].figures["Pearson"].value is None
