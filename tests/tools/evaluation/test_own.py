"""The user's own files: what is counted, and what `evaluate` prints and writes, on models without
torch.
"""

from math import cos, log2, sin

import numpy as np
import pytest
from support.without import HEAVY, run_without

from st_paragram.cli.main import main
from st_paragram.tools.evaluation.files import Translations
from st_paragram.tools.evaluation.own import (
    OwnData,
    found_documents,
    found_translations,
    score,
)
from st_paragram.tools.evaluation.retrieval_sets import RetrievalSet
from st_paragram.tools.evaluation.scores import read_scores

COMMAND = "from st_paragram.cli.main import main\nraise SystemExit(main(sys.argv[1:]))"
MINI = "p-sp-mini"
PACKAGES = [name for name in HEAVY if name != "scipy"]  # intervals need it


def at(**angles):
    return {name.replace("_", " "): [cos(angle), sin(angle)] for name, angle in angles.items()}


def test_translations_by_hand(named):
    # Second texts lie at 0, 1 and 2; the first ones at 0.1, 1.6 and 1.7: b looks nearest to C.
    model = named(at(a=0.1, b=1.6, c=1.7, A=0.0, B=1.0, C=2.0))
    data = Translations("x", ["a", "b", "c"], ["A", "B", "C"])
    found = found_translations(model, data)
    assert [of.tolist() for of in found.values()] == [[1, 0, 1], [1, 1, 1], [1, 0.5, 1]]
    values = {
        one.measure: (one.value, one.items)
        for one in score("m", model, OwnData({"x": data}, {}, {}))
    }
    means = {"P@1 to second": 2 / 3, "P@1 to first": 1, "P@1": 5 / 6}
    assert values == {measure: (pytest.approx(mean), 3) for measure, mean in means.items()}


def test_equal_texts_are_the_same_answer(named):
    # "Ja" and "ja  " are one text; x and y have the translation A, and A has two right answers; a
    # pair occurs again.
    pairs = [
        ("x", "A"),
        ("y", "a"),
        ("z", "Ja"),
        ("z", "ja "),
        ("w", "Cafe\u0301"),
        ("w", "CAF\u00c9"),
    ]
    model = named(at(x=0.3, y=0.1, z=1.0, w=2.0, A=0.0, Ja=1.0) | {"Cafe\u0301": [cos(2), sin(2)]})
    found = found_translations(model, Translations("x", *map(list, zip(*pairs, strict=True))))
    assert found["P@1"].tolist() == [1, 1, 1, 1]  # A finds y, and is right for x, too


def test_towers_are_used_and_a_query_is_not_its_own_document(named):
    model = named(at(one=0.0, two=2.0, three=1.1), at(one=0.1, B=0.3, C=2.1, D=1.0))
    # q1 is the first query itself, q3 has another text
    corpus = {"q1": "one", "b": "B", "c": "C", "q3": "D"}
    queries = {"q1": "one", "q2": "two", "q3": "three"}
    found = found_documents(
        model, RetrievalSet("x", queries, corpus, [""] * 4, [{1: 1}, {1: 1}, {3: 1}])
    )
    # B is the nearest of the first query but for itself, the third of the second (after C and D).
    np.testing.assert_allclose(found["MRR@10"], [1, 1 / 3, 1])
    np.testing.assert_allclose(found["nDCG@10"], [1, 1 / log2(4), 1])
    np.testing.assert_allclose(found["recall@10"], 1)


@pytest.fixture(scope="module")
def data(tmp_path_factory, pairs, write):
    folder = tmp_path_factory.mktemp("own")
    rows = list(dict.fromkeys(pairs))[:60]
    write(folder / "translations.tsv", rows)
    write(folder / "graded.tsv", [(one, rows[n // 2][1], n % 5) for n, (one, _) in enumerate(rows)])
    write(folder / "queries.tsv", [(f"q{n}", one) for n, (one, _) in enumerate(rows[:20])])
    write(folder / "corpus.tsv", [(f"d{n}", one) for n, (_, one) in enumerate(rows)])
    write(folder / "qrels.tsv", [(f"q{n}", f"d{n}", 1) for n in range(20)])
    return folder


def test_all_of_it_without_torch(data, tmp_path):
    file, other = tmp_path / "own.json", tmp_path / "short"
    assert main(["export", MINI, str(other), "--dim", "12"]) == 0
    files = [part for path in data.iterdir() for part in (f"--{path.name.partition('.')[0]}", path)]
    done = run_without(COMMAND, ["evaluate", MINI, other, *files, "--json", file], PACKAGES)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(f"### Differences from {MINI} x 100: paired bootstrap") == 3
    scores = read_scores(file)
    assert {score.benchmark for score in scores} == {
        "own-translations",
        "own-graded",
        "own-retrieval",
    }
    plain = [score for score in scores if not score.against]
    assert {score.model for score in plain} == {MINI, str(other)} and all(
        s.low <= s.value <= s.high for s in plain
    )
    compared = [score for score in scores if score.against]
    assert len(compared) * 2 == len(plain) and {score.against for score in compared} == {MINI}


def test_refusals_are_one_line(data, tmp_path, write, evaluate):
    pairs, graded, same = (
        data / "translations.tsv",
        data / "graded.tsv",
        [("a", "A"), ("b", "A")],
    )
    table = write(tmp_path / "pairs.csv", "en,es\na,b\nc,d\n")
    for arguments, message in (
        (
            ["--translations", tmp_path / "none.tsv"],
            "none.tsv: No such file or directory; check the path",
        ),
        (
            ["--translations", pairs, "--graded", graded, "--columns", "1", "2"],
            "score the two in separate runs",
        ),
        (["--translations", pairs, "--columns", "1"], "1 column given, 2 needed"),
        (["--translations", table], "--columns NAME"),
        (
            ["--translations", write(tmp_path / "same.tsv", same)],
            "2 pairs with 2 and 1 distinct texts; give at least",
        ),
        (["--graded", pairs], "row 1 has 2 columns"),
    ):
        assert message in evaluate(MINI, *arguments, refused=True)
    assert "Differences" not in evaluate(MINI, "--translations", table, "--columns", "en", "es")[0]


def test_a_prefix_names_the_languages_of_a_memory(tmp_path, evaluate):
    units = ""
    for first, second in (("One house.", "Una casa."), ("Two dogs.", "Dos perros.")):
        texts = (("en", first), ("es", second))
        segments = [f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in texts]
        units += f"<tu>{''.join(segments)}</tu>"
    memory = tmp_path / "memory.tmx"
    memory.write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>', encoding="utf-8")
    assert "needs its languages" in evaluate(MINI, "--translations", memory, refused=True)
    assert "2 pairs" in evaluate(MINI, "--translations", f"en-es:{memory}")[0]


def test_a_figure_that_does_not_exist_is_null(tmp_path, write, evaluate):
    same = write(tmp_path / "same.tsv", "1\ta cat\ta cat\n2\ta dog\ta dog\n")
    printed, scores = evaluate(MINI, "--graded", same)
    assert f"| {MINI} | undefined | undefined |" in printed and [
        score.value for score in scores
    ] == [None, None]


@pytest.mark.parametrize("content", ["mine", '{"name": "mine"}', '[{"name": "mine"}]'])
def test_only_a_file_of_scores_is_replaced(tmp_path, data, capsys, content):
    file = tmp_path / "package.json"
    file.write_text(content)
    command = [
        "evaluate",
        MINI,
        "--translations",
        str(data / "translations.tsv"),
        "--json",
        str(file),
    ]
    assert main(command) == 1
    assert (
        f"{file} exists and is not a file of scores; choose another name" in capsys.readouterr().err
    )
    assert file.read_text() == content
    file.unlink()
    assert [main(command) for _ in range(2)] == [0, 0] and read_scores(file)


def test_a_single_query_has_scores_without_an_interval(write, tmp_path, capsys):
    write(tmp_path / "q.tsv", [("q1", "the bus")])
    write(tmp_path / "c.tsv", [("d1", "the bus is late"), ("d2", "a dog")])
    write(tmp_path / "r.tsv", [("q1", "d1", 1)])
    files = [f"--{name}={tmp_path / name[0]}.tsv" for name in ("queries", "corpus")]
    assert main(["evaluate", MINI, *files, f"--qrels={tmp_path / 'r.tsv'}"]) == 0
    assert f"| {MINI} | 100.0 | 100.0 | 100.0 |" in capsys.readouterr().out
