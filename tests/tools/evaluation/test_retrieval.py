"""Semantic and answer retrieval: measures by hand, tasks of sets, towers, BM25, and runs on made
sets.
"""

import runpy
import sys
from math import log2
from pathlib import Path

import numpy as np
import pytest

from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation import answer_retrieval, semantic_retrieval
from st_paragram.tools.evaluation.answer_retrieval import (
    AnswerTask,
    answer_measures,
    bm25,
    right_ranks,
)
from st_paragram.tools.evaluation.ranking import average_precision, ranking_measures, search
from st_paragram.tools.evaluation.request import Request
from st_paragram.tools.evaluation.retrieval_sets import RetrievalSet
from st_paragram.tools.evaluation.retrieval_tasks import ANSWER, SEMANTIC, SetPair, find

SCRIPT = Path(__file__).parents[3] / "data_prep" / "make_retrieval_set.py"


@pytest.fixture
def make_set(write):
    """Write a set, a folder of three files, from ids and texts."""

    def make_set(folder, queries, corpus, qrels):
        for name, rows in (
            ("queries", queries.items()),
            ("corpus", corpus.items()),
            ("qrels", qrels),
        ):
            write(folder / f"{name}.tsv", rows)

    return make_set


# --- rankings


def test_average_precision_by_hand():
    # hits at ranks 1, 3 and 4; a fourth one is not among the ranked
    assert average_precision([7, 2, 5, 9, 4], {5, 7, 9, 30}) == pytest.approx(
        (1 / 1 + 2 / 3 + 3 / 4) / 4
    )
    assert average_precision([1, 2], {3}) == 0 and average_precision([3], {3}) == 1
    # more than 100 relevant ones: all of the first 100 are, of 102
    assert average_precision(list(range(100)), set(range(102))) == pytest.approx(100 / 102)


def test_the_query_itself_is_no_candidate_and_the_ranks_are_cut():
    angles = np.deg2rad([0, 10, 25, 90])
    corpus = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert search(corpus[[0, 3]], corpus, [{0}, {3}], 100) == [[1, 2, 3], [2, 1, 0]]
    assert search(corpus[[0, 3]], corpus, [set(), {3}], 2) == [[0, 1], [2, 1]]


@pytest.mark.parametrize(
    ("ranked", "relevant", "figures"),
    [
        (
            [0, 7, 1, 8, *range(20, 120)],
            {7: 2, 8: 1, 9: 1},
            [
                (2 / log2(3) + 1 / log2(5)) / (2 / log2(2) + 1 / log2(3) + 1 / log2(4)),
                2 / 3,
                2 / 3,
                1 / 2,
            ],
        ),
        ([*range(20, 30), 9], {7: 2, 8: 1, 9: 1}, [0, 0, 1 / 3, 0]),
        ([7, 9, 8], {7: 2, 8: 1, 9: 1}, [1, 1, 1, 1]),
        (list(range(20)), dict.fromkeys(range(20), 1), [1, 0.5, 1, 1]),
    ],
)
def test_ranking_measures_by_hand(ranked, relevant, figures):
    assert list(ranking_measures(ranked, relevant).values()) == pytest.approx(figures)


# --- semantic retrieval


def test_a_query_is_known_by_its_id_or_its_text():
    corpus = {"a": "one", "b": "two", "c": "one", "d": "three"}
    asked = RetrievalSet("x", {"a": "one", "q": "two"}, corpus, [""] * 4, [{1: 1, 2: 1}, {3: 1}])
    found = semantic_retrieval.make_task(SetPair(asked, asked))
    assert (found.itself, found.relevant) == ([{0, 2}, {1}], [{1}, {3}])
    alone = RetrievalSet("x", {"a": "one"}, corpus, [""] * 4, [{2: 1}])
    with pytest.raises(EvaluationError, match="query 'a' is its only relevant document"):
        semantic_retrieval.make_task(SetPair(alone, alone))


def test_sets_are_found_and_told_apart(tmp_path, make_set):
    for name in ("xquad/es", "squad"):
        make_set(
            tmp_path / name,
            {"q1": "who", "q2": "where"},
            {"s1": "da", "s2": "ba"},
            [("q1", "s1"), ("q2", "s2")],
        )
    make_set(
        tmp_path / "quora",
        {"a": "da", "b": "ba"},
        {"a": "da", "c": "lo", "b": "ba"},
        [("a", "b"), ("b", "a")],
    )
    # ids are those of other texts
    make_set(tmp_path / "numbers", {"1": "da"}, {"1": "lo", "2": "ba"}, [("1", "2")])
    assert list(find(tmp_path, SEMANTIC)) == ["quora"]
    assert list(find(tmp_path, ANSWER)) == ["numbers", "squad", "xquad/es"]
    assert find(tmp_path / "quora", SEMANTIC) == {"quora": tmp_path / "quora"}


def test_sets_are_made_of_pairs_and_scored(
    tmp_path, tiny, texts, write, evaluate, monkeypatch, capsys
):
    # A sentence and its double with another end have nearly one vector; all others are candidates
    # alone.
    rows = [(texts[0], f"{texts[0]} {texts[0]}"), *((text,) for text in texts[1:12])]
    pairs, made = write(tmp_path / "pairs.tsv", rows), tmp_path / "data" / "kept"
    monkeypatch.setattr(
        sys, "argv", ["make_retrieval_set", "--pairs", str(pairs), "--output", str(made)]
    )
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 0 and capsys.readouterr().out == "2 queries, 13 candidates\n"
    printed, scores = evaluate(tiny, "--data", made.parent, "--untrained")
    assert f"| {tiny} | 100.0 |" in printed and "kept has 2 queries and 13 documents." in printed
    assert "published" not in printed
    assert [score.model for score in scores] == [tiny, "untrained"] and scores[0].value == 1
    assert "kept has 1 queries" in evaluate(tiny, "--data", made.parent, "--limit", 1)[0]
    assert "the limit is 0 queries" in evaluate(
        tiny, "--data", made.parent, "--limit", 0, refused=True
    )


def test_groups_are_the_closure_of_pairs(tmp_path, write):
    script = runpy.run_path(str(SCRIPT))
    corpus = dict.fromkeys("abcdefg", "")
    pairs = [("a", "c"), ("e", "c"), ("f", "b"), ("d", "d")]
    assert (
        script["groups_of"](corpus, pairs) == [[0, 2, 4], [1, 5]]
        and script["groups_of"](corpus, []) == []
    )
    questions = (
        "1\tinstall ?\tbody\n2\thow to install\t\n3\tsound\n4\tno sound\tb\n5\tsound\tb\n6\tx\t\n"
    )
    lists = write(tmp_path / "test.txt", "1\t2\t3 2\t0.5 0.2\n4\t5\n")
    found, pairs = script["read_askubuntu"](write(tmp_path / "texts.txt", questions), [lists])
    # 3 and 5 have one title
    assert found == {"1": "install ?", "2": "how to install", "3": "sound", "4": "no sound"}
    assert script["groups_of"](found, pairs) == [[0, 1], [2, 3]]


def test_queries_in_another_language_look_among_the_english_sentences(
    tmp_path, named, make_set, write
):
    english = {"a": "cat", "b": "kitty"}
    make_set(tmp_path / "quora" / "en", english, {**english, "c": "dog"}, [("a", "b"), ("b", "a")])
    write(tmp_path / "quora" / "es" / "queries.tsv", [("a", "gato"), ("b", "gatito")])
    assert find(tmp_path, ANSWER) == {}
    tasks = semantic_retrieval.read(Request([], SEMANTIC, tmp_path))
    assert [each.name for each in tasks] == ["quora/en", "quora/es-en"]
    assert (tasks[1].queries, tasks[1].itself, tasks[1].relevant) == (
        ("gato", "gatito"),
        [{0}, {1}],
        [{1}, {0}],
    )
    model = named(
        {"cat": [1, 0], "kitty": [0.9, 0.1], "dog": [0, 1], "gato": [1, 0.1], "gatito": [0.1, 1]}
    )
    # "gatito" finds "dog" before "cat"
    scores = semantic_retrieval.score("m", model, tasks)
    assert [score.value for score in scores] == [1, (1 + 1 / 2) / 2]


def test_queries_without_a_translation_are_counted_and_not_scored(
    tmp_path, named, make_set, write, evaluate, tiny, texts, caplog
):
    english = dict(zip("abcd", texts, strict=False))
    closure = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    make_set(tmp_path / "data/quora/en", english, {**english, "e": texts[4]}, closure)
    translations = [("d", "cuatro"), ("a", "uno"), ("other", "otro")]
    write(tmp_path / "data/quora/es/queries.tsv", translations)
    tasks = semantic_retrieval.read(Request([], SEMANTIC, tmp_path / "data"))
    assert (tasks[1].name, tasks[1].queries, tasks[1].untranslated) == (
        "quora/es-en",
        ("uno", "cuatro"),  # in the order of the English queries
        2,
    )
    assert tasks[1].relevant == [{1}, {2}] and tasks[0].untranslated == 0
    assert "1 of 3 queries have no relevant document in quora/en and are left out" in caplog.text
    vectors = {text: [1, 0.1 * row] for row, text in enumerate(texts[:5])}
    model = named(vectors | {"uno": vectors[texts[1]], "cuatro": vectors[texts[2]]})
    scores = list(semantic_retrieval.score("m", model, tasks))
    # of the two translated queries, whose first hits are right
    assert (scores[1].value, scores[1].items, scores[1].untranslated) == (1, 2, 2)
    printed, scores = evaluate(tiny, "--data", tmp_path / "data")
    assert (
        "quora/en has 4 queries and 5 documents. quora/es-en has 2 queries and 5 documents (2"
        " without a translation left out)." in printed
    )
    assert [score.untranslated for score in scores] == [0, 2]
    alone = evaluate(tiny, "--data", tmp_path / "data/quora/es", refused=True)
    assert "only queries, and no English set next to it in the data; give --data" in alone
    write(tmp_path / "data/quora/es/queries.tsv", [("x", "uno")])
    assert "no id is that of a query of quora/en" in evaluate(
        tiny, "--data", tmp_path / "data", refused=True
    )


def test_bad_translations_are_left_out_where_the_set_is_made(
    tmp_path, tiny, texts, make_set, write, monkeypatch, capsys
):
    english = dict(zip("abcde", texts, strict=False))
    make_set(tmp_path / "en", english, english, [("a", "b")])
    write(tmp_path / "es.tsv", [(key, f"{key} en español") for key in "abcd"])
    # the model knows no token of c's; d has none
    back = write(tmp_path / "back.tsv", [("a", texts[0]), ("b", texts[1]), ("c", "\ue000")])
    output = tmp_path / "es"

    def run(*more):
        command = ["make", "--translations", tmp_path / "es.tsv", "--output", output, *more]
        monkeypatch.setattr(sys, "argv", list(map(str, command)))
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        return ended.value.code, *capsys.readouterr()

    judged = ("--back-translations", back, "--judge", tiny)
    assert run(*judged) == (
        0,
        "2 of 5 queries; left out: 2 without both translations, 1 with a cosine below 0.5\n",
        "",
    )
    assert (output / "queries.tsv").read_text("utf-8") == "a\ta en español\nb\tb en español\n"
    output = tmp_path / "fr"
    assert run(*judged, "--min-cosine", 1.1)[0] == 1
    assert "belong together; give all three" in run("--judge", tiny)[2]
    write(back, [("z", "?")])
    assert f"{back}: id 'z' is not an English query; correct the id" in run(*judged)[2]
    output = tmp_path / "nothing/es"
    assert f"{tmp_path / 'nothing/en'}: no queries.tsv; put the English set" in run(*judged)[2]


def test_good_translations_by_hand(named):
    script = runpy.run_path(str(SCRIPT))
    model = named({"q": [1, 0], "half": [1, 3**0.5], "less": [0.99, 3**0.5], "not": [-1, 0]})
    back = {"1": "q", "2": "half", "3": "less", "4": "not"}
    english = dict.fromkeys("1234", "q")
    assert script["good_translations"](model, english, back, 0.5) == ["1", "2"]


# --- answer retrieval


def task(questions, answers, right, contexts=None):
    contexts = tuple(contexts or [""] * len(answers))
    return AnswerTask("t", False, tuple(questions), tuple(answers), contexts, right)


def scored(made, scores):
    table = np.array(scores, np.float64)
    return answer_measures(made, lambda block: table[block])


def test_ranks_by_hand():
    scores = np.array([[0.1, 0.9, 0.5, 0.9], [0.9, 0.9, 0.5, 0.9], [0.3, 0.2, 0.1, 0.0]])
    # 0.5 is third; three of 0.9 share rank 2; the better of the last two right ones is second
    assert right_ranks(scores, [np.array(rows) for rows in ([2], [0], [1, 3])]).tolist() == [
        3,
        2,
        2,
    ]


@pytest.mark.parametrize(
    ("made", "scores", "figures"),
    [
        # ties share their mean rank and are no hit; what differs behind the sixth digit is
        # rounding, and a tie too
        (task(["who"], ["a", "b", "c"], [{0}]), [[0.5, 0.5, 0.1]], [0, 1 / 1.5]),
        (task(["who"], ["a", "b"], [{0}]), [[0.5, 0.4999999]], [0, 1 / 1.5]),
        (task(["who"], ["a", "b"], [{0}]), [[0.5, 0.49999]], [1, 1]),
        # equal questions count once, by the best rank
        (
            task(["who", "where", "who"], ["a", "b", "c"], [{2}, {1}, {0}]),
            [[0.9, 0.5, 0.1]] * 3,
            [0.5, 0.75],
        ),
        # who: the best sentence is another one of the right paragraph; where: it is of the wrong
        # one
        (
            task(["who", "where"], ["a", "b", "c", "d"], [{0}, {1}], ["p", "q", "p", "q"]),
            [[0.5, 0.1, 0.9, 0.2], [0.9, 0.8, 0.1, 0.2]],
            [0, 0.5, 0.5],
        ),
        # equally good paragraphs share a rank
        (task(["who"], ["a", "b"], [{0}], ["p", "q"]), [[0.9, 0.9]], [0, 0, 1 / 1.5]),
        (task(["who"], ["a", "b"], [{0}], ["p", " "]), [[0.9, 0.1]], [1, 1]),
    ],
)
def test_answer_measures_by_hand(made, scores, figures):
    names = (
        ["P@1 sentence", "P@1 paragraph", "MRR"] if len(figures) == 3 else ["P@1 sentence", "MRR"]
    )
    assert scored(made, scores) == dict(zip(names, map(pytest.approx, figures), strict=True))


def made_set(name, queries, corpus, relevant, contexts=None):
    corpus = {f"{name}-{row}": text for row, text in enumerate(corpus)}
    return RetrievalSet(
        name, queries, corpus, contexts or [""] * len(corpus), [{row: 1} for row in relevant]
    )


def test_equal_sentences_are_right_alike():
    asked = made_set(
        "s", {"q": "who"}, ["yes", "no", "yes", "yes"], [0], ["one", "one", "two", "one"]
    )
    found = answer_retrieval.make_task(SetPair(asked, asked))
    # the last row is the first one again; "yes" of the other paragraph is right as well
    assert found.sentences == ("yes", "no", "yes") and found.contexts == ("one", "one", "two")
    assert found.relevant == [{0, 2}]
    assert scored(found, [[0.1, 0.5, 0.9]]) == {"P@1 sentence": 1, "P@1 paragraph": 1, "MRR": 1}


def test_questions_of_one_language_are_put_to_answers_of_another():
    spanish = made_set("x/es", {"1": "quien", "2": "donde"}, ["da", "lo", "ba"], [1, 0])
    english = made_set("x/en", {"2": "where", "1": "who"}, ["there", "she"], [0, 1])
    found = answer_retrieval.make_task(SetPair(spanish, english))
    assert (found.name, found.questions) == ("x/es-en", ("quien", "donde"))
    assert (found.sentences, found.relevant) == (("there", "she"), [{1}, {0}])
    with pytest.raises(
        EvaluationError, match=r"query '2' of x/es is missing from x/de; give parallel sets"
    ):
        SetPair(spanish, made_set("x/de", {"1": "wer"}, ["sie"], [0]))


def test_models_with_towers_are_scored_both_ways(named):
    vectors = {"who": [1, 0], "she": [0, 1], "there": [0.9, 0.1]}
    made, plain = task(["who"], ["she", "there"], [{0}], ["right", "wrong"]), named(vectors)
    assert {one.model for one in answer_retrieval.score("m", plain, [made, made])} == {"m"}
    # once, whatever the tasks
    assert [call for call in plain.calls if "" not in call] == [["who"], ["she", "there"]]
    towers = named(vectors)
    towers.encode_query = lambda texts, **_: np.array(
        [[0, int(text == "who")] for text in texts], np.float32
    )
    towers.encode_answers = lambda texts, contexts: np.array(
        [[0, 1] if of == "right" else [1, 0] for of in contexts]
    )
    found = {
        one.model: one.value
        for one in answer_retrieval.score("m", towers, [made])
        if one.measure == "P@1 sentence"
    }
    assert found == {"m, shared": 0, "m, towers": 1}


def test_bm25_finds_rare_words():
    pytest.importorskip("bm25s")
    answers, questions = ["the moon is old", "the sun", "the moon"], ["old moon", "Sun!", "qqq"]
    found = answer_measures(task(questions, answers, [{0}, {1}, {2}]), bm25(answers, questions))
    # "qqq" is nowhere: all have one score, and share rank 2
    assert found == {
        "P@1 sentence": pytest.approx(2 / 3),
        "MRR": pytest.approx((1 + 1 + 1 / 2) / 3),
    }
    assert bm25(["!", "?"], ["?"])(slice(0, 1)).tolist() == [[0, 0]]  # no word anywhere


def test_the_command_prints_and_writes(tmp_path, tiny, texts, make_set, evaluate, monkeypatch):
    pytest.importorskip("bm25s")
    # questions are the words of their answers
    for language, part in (("en", texts[:6]), ("es", texts[6:12])):
        answers = {
            f"{language}{row}": f"{text}\tparagraph {row // 2}" for row, text in enumerate(part)
        }
        qrels = [(row, f"{language}{row}") for row in range(6)]
        make_set(tmp_path / "x" / language, dict(enumerate(part)), answers, qrels)
    make_set(
        tmp_path / "alone",
        {"q": texts[0]},
        {f"a{row}": texts[row] for row in range(3)},
        [("q", "a0")],
    )
    command = [tiny, "--benchmarks", "answer-retrieval", "--data", tmp_path]
    printed, scores = evaluate(*command, "--untrained")
    assert "x 100, alone: 1 questions, 3 sentences\n\n| model | P@1 sentence | MRR |" in printed
    assert f"| {tiny} | 100.0 | 100.0 | 100.0 |" in printed and "| untrained |" in printed
    assert "published" not in printed
    sets = ["alone", "x/en", "x/es", "x/es-en"]
    assert list(dict.fromkeys(score.set for score in scores if score.model == tiny)) == sets
    assert list(dict.fromkeys(score.set for score in scores if score.model == "BM25")) == sets[:-1]
    monkeypatch.setattr(answer_retrieval, "_has_bm25", lambda: False)
    printed, scores = evaluate(*command, "--languages", "es")
    assert list(dict.fromkeys(score.set for score in scores)) == ["alone", "x/es", "x/es-en"]
    assert "| BM25 |" not in printed and "bm25s is not installed" in printed
    refusal = evaluate(*command[:-1], tmp_path / "x", "--languages", "fr", refused=True)
    assert "no answer-retrieval data for fr (available: x/en, x/es)" in refusal
