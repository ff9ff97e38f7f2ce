"""Semantic and answer retrieval: measures by hand, tasks of sets, towers, BM25, and runs on made sets."""

import runpy
import sys
from math import log2
from pathlib import Path

import numpy as np
import pytest

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError
from st_paragram.tools.evaluation import retrieval
from st_paragram.tools.evaluation.benchmarks import Request
from st_paragram.tools.evaluation.files import RetrievalSet
from st_paragram.tools.evaluation.retrieval import (
    ANSWER,
    SEMANTIC,
    Task,
    answer_measures,
    average_precision,
    bm25,
    make_task,
    ranking_measures,
    read,
    retrieval_sets,
    right_ranks,
    score,
    search,
    words,
)
from st_paragram.tools.evaluation.scores import read_scores

SCRIPT = Path(__file__).parents[3] / "data_prep" / "make_retrieval_set.py"


def at(*degrees):
    """Unit vectors at these angles."""
    angles = np.deg2rad(np.array(degrees, np.float64))
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def rows(*numbers):
    return np.array(numbers, np.int64)


def write(folder, queries, corpus, qrels):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("queries", queries), ("corpus", corpus), ("qrels", qrels)):
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8", newline="\n")
    return folder


# --- rankings


def test_average_precision_by_hand():
    # hits at ranks 1, 3 and 4; a fourth one is not among the ranked
    assert average_precision([7, 2, 5, 9, 4], {5, 7, 9, 30}) == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 4)
    assert average_precision([1, 2], {3}) == 0 and average_precision([3], {3}) == 1
    # more than 100 relevant ones: all of the first 100 are, of 102
    assert average_precision(list(range(100)), set(range(102))) == pytest.approx(100 / 102)


def test_the_query_itself_is_no_candidate_and_the_ranks_are_cut():
    corpus = at(0, 10, 25, 90)
    assert search(corpus[[0, 3]], corpus, [{0}, {3}], 100) == [[1, 2, 3], [2, 1, 0]]
    assert search(corpus[[0, 3]], corpus, [set(), {3}], 2) == [[0, 1], [2, 1]]


def test_ranking_measures_by_hand():
    relevant = {7: 2, 8: 1, 9: 1}
    gained = 2 / log2(3) + 1 / log2(5)
    best = 2 / log2(2) + 1 / log2(3) + 1 / log2(4)

    def figures(ranked, grades):
        return list(ranking_measures(ranked, grades).values())

    assert figures([0, 7, 1, 8, *range(20, 120)], relevant) == pytest.approx([gained / best, 2 / 3, 2 / 3, 1 / 2])
    assert figures([*range(20, 30), 9], relevant) == pytest.approx([0, 0, 1 / 3, 0])
    assert figures([7, 9, 8], relevant) == [1, 1, 1, 1]
    assert figures(list(range(20)), dict.fromkeys(range(20), 1)) == pytest.approx([1, 0.5, 1, 1])


def test_a_query_is_known_by_its_id_or_its_text():
    corpus = {"a": "one", "b": "two", "c": "one", "d": "three"}
    found = make_task(RetrievalSet("x", {"a": "one", "q": "two"}, corpus, [""] * 4, [{1: 1, 2: 1}, {3: 1}]), SEMANTIC)
    assert (found.itself, found.relevant) == ([{0, 2}, {1}], [{1}, {3}])
    with pytest.raises(EvaluationError, match="query 'a' finds only itself"):
        make_task(RetrievalSet("x", {"a": "one"}, corpus, [""] * 4, [{2: 1}]), SEMANTIC)


def test_sets_are_found_and_told_apart(tmp_path):
    for name in ("xquad/es", "squad"):
        write(tmp_path / name, "q1\twho\nq2\twhere\n", "s1\tda\tda ba\ns2\tba\n", "q1\ts1\nq2\ts2\n")
    write(tmp_path / "quora", "a\tda\nb\tba\n", "a\tda\nc\tlo\nb\tba\n", "a\tb\nb\ta\n")
    # ids are shared, but they are those of other texts
    write(tmp_path / "numbers", "1\tda\n", "1\tlo\n2\tba\n", "1\t2\n")
    assert list(retrieval_sets(tmp_path, SEMANTIC)) == ["quora"]
    assert list(retrieval_sets(tmp_path, ANSWER)) == ["numbers", "squad", "xquad/es"]
    assert retrieval_sets(tmp_path / "quora", SEMANTIC) == {"quora": tmp_path / "quora"}


# --- semantic retrieval


def test_sets_are_made_of_pairs_and_scored(tmp_path, tiny, texts, monkeypatch, capsys):
    # A sentence and its double with another end have nearly one vector; all others are candidates alone.
    pairs, made = tmp_path / "pairs.tsv", tmp_path / "data" / "kept"
    pairs.write_text(f"{texts[0]}\t{texts[0]} {texts[0]}\n" + "".join(f"{text}\n" for text in texts[1:12]))
    monkeypatch.setattr(sys, "argv", ["make_retrieval_set", "--pairs", str(pairs), "--output", str(made)])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SCRIPT), run_name="__main__")
    assert ended.value.code == 0 and capsys.readouterr().out == "2 queries, 13 candidates\n"
    file = tmp_path / "scores.json"
    arguments = ["evaluate", str(tiny), "--data", str(made.parent)]
    assert main([*arguments, "--untrained", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert f"| {tiny} | 100.0 |" in printed and "kept has 2 queries and 13 documents." in printed
    assert "published" not in printed
    found = read_scores(file)
    assert [score.model for score in found] == [str(tiny), "untrained"] and found[0].value == 1
    assert main([*arguments, "--limit", "1"]) == 0 and "kept has 1 queries" in capsys.readouterr().out
    assert main([*arguments, "--limit", "0"]) == 1 and "a limit of 0 queries" in capsys.readouterr().err


def test_groups_are_the_closure_of_pairs(tmp_path):
    script = runpy.run_path(str(SCRIPT))
    corpus = dict.fromkeys("abcdefg", "")
    pairs = [("a", "c"), ("e", "c"), ("f", "b"), ("d", "d")]
    assert script["groups_of"](corpus, pairs) == [[0, 2, 4], [1, 5]] and script["groups_of"](corpus, []) == []
    texts, lists = tmp_path / "texts.txt", tmp_path / "test.txt"
    texts.write_text("1\tinstall ?\tbody\n2\thow to install\t\n3\tsound\n4\tno sound\tb\n5\tsound\tb\n6\tx\t\n")
    lists.write_text("1\t2\t3 2\t0.5 0.2\n4\t5\n")
    found, pairs = script["read_askubuntu"](texts, [lists])  # 3 and 5 have one title, and 6 is in no list
    assert found == {"1": "install ?", "2": "how to install", "3": "sound", "4": "no sound"}
    assert script["groups_of"](found, pairs) == [[0, 1], [2, 3]]


# --- answer retrieval


def task(questions, answers, right, contexts=None):
    none = [set() for _ in questions]
    return Task("t", ("t", "t"), questions, answers, contexts or [""] * len(answers), right, none)


def scored(made, scores):
    table = np.array(scores, np.float64)
    return answer_measures(made, lambda block: table[block])


def made_set(name, queries, corpus, relevant, contexts=None):
    corpus = {f"{name}-{row}": text for row, text in enumerate(corpus)}
    return RetrievalSet(name, queries, corpus, contexts or [""] * len(corpus), [{row: 1} for row in relevant])


def test_ranks_by_hand():
    scores = np.array([[0.1, 0.9, 0.5, 0.9], [0.9, 0.9, 0.5, 0.9], [0.3, 0.2, 0.1, 0.0]])
    # 0.5 is third; three of 0.9 share rank 2; the better of the last two right ones is second
    assert right_ranks(scores, [rows(2), rows(0), rows(1, 3)]).tolist() == [3, 2, 2]


def test_ties_share_their_mean_rank_and_are_no_hit():
    found = scored(task(["who"], ["a", "b", "c"], [{0}]), [[0.5, 0.5, 0.1]])
    assert found == {"P@1 sentence": 0, "MRR": pytest.approx(1 / 1.5)}
    # what differs behind the sixth digit is rounding, and a tie too
    assert scored(task(["who"], ["a", "b"], [{0}]), [[0.5, 0.4999999]])["MRR"] == pytest.approx(1 / 1.5)
    assert scored(task(["who"], ["a", "b"], [{0}]), [[0.5, 0.49999]])["P@1 sentence"] == 1
    with pytest.raises(EvaluationError, match="a score is not finite"):
        scored(task(["who"], ["a", "b"], [{0}]), [[np.nan, 0.1]])


def test_equal_questions_count_once_by_the_best_rank():
    made = task(["who", "where", "who"], ["a", "b", "c"], [{2}, {1}, {0}])
    found = scored(made, [[0.9, 0.5, 0.1]] * 3)
    assert found == {"P@1 sentence": 0.5, "MRR": pytest.approx((1 + 1 / 2) / 2)}


def test_equal_sentences_are_right_alike():
    asked = made_set("s", {"q": "who"}, ["yes", "no", "yes", "yes"], [0], ["one", "one", "two", "one"])
    found = make_task(asked, ANSWER)
    # the last row is the first one again; "yes" of the other paragraph is right as well
    assert found.corpus == ["yes", "no", "yes"] and found.contexts == ["one", "one", "two"]
    assert found.relevant == [{0, 2}]
    assert scored(found, [[0.1, 0.5, 0.9]]) == {"P@1 sentence": 1, "P@1 paragraph": 1, "MRR": 1}


def test_a_paragraph_is_that_of_the_best_sentence():
    made = task(["who", "where"], ["a", "b", "c", "d"], [{0}, {1}], ["p", "q", "p", "q"])
    # who: the best sentence is another one of the right paragraph; where: it is of the wrong one
    found = scored(made, [[0.5, 0.1, 0.9, 0.2], [0.9, 0.8, 0.1, 0.2]])
    assert found == {"P@1 sentence": 0, "P@1 paragraph": 0.5, "MRR": pytest.approx(1 / 2)}
    assert scored(made, [[0.9, 0.9, 0.1, 0.2]] * 2)["P@1 paragraph"] == 0  # equally good paragraphs share a rank
    assert "P@1 paragraph" not in scored(task(["who"], ["a", "b"], [{0}], ["p", " "]), [[0.9, 0.1]])


SPANISH = made_set("x/es", {"1": "quien", "2": "donde"}, ["da", "lo", "ba"], [1, 0])
ENGLISH = made_set("x/en", {"2": "where", "1": "who"}, ["there", "she"], [0, 1])


def test_questions_of_one_language_are_put_to_answers_of_another():
    found = make_task(SPANISH, ANSWER, ENGLISH)
    assert (found.name, found.sides) == ("x/es-en", ("x/es", "x/en"))
    assert found.queries == ["quien", "donde"] and found.corpus == ["there", "she"]
    assert found.relevant == [{1}, {0}]
    with pytest.raises(EvaluationError, match=r"query '2' of x/es is none of x/de; sets .* parallel"):
        make_task(SPANISH, ANSWER, made_set("x/de", {"1": "wer"}, ["sie"], [0]))


def test_models_with_towers_are_scored_both_ways(named):
    vectors = {"who": [1, 0], "she": [0, 1], "there": [0.9, 0.1]}
    made, plain = task(["who"], ["she", "there"], [{0}], ["right", "wrong"]), named(vectors)
    assert {one.model for one in score("m", plain, (ANSWER, [made, made]))} == {"m"}
    assert plain.calls == [["who"], ["she", "there"]]  # each side once, whatever the tasks
    towers = named(vectors)
    towers.encode_query = lambda texts, **_: np.array([[0, 1] for _ in texts], np.float32)
    towers.encode_answers = lambda texts, contexts: np.array([[0, 1] if of == "right" else [1, 0] for of in contexts])
    found = {one.model: one.value for one in score("m", towers, (ANSWER, [made])) if one.measure == "P@1 sentence"}
    assert found == {"m, shared": 0, "m, towers": 1}


def test_queries_in_another_language_look_among_the_english_sentences(tmp_path, named):
    write(tmp_path / "quora" / "en", "a\tcat\nb\tkitty\n", "a\tcat\nc\tdog\nb\tkitty\n", "a\tb\nb\ta\n")
    (tmp_path / "quora" / "es").mkdir()
    (tmp_path / "quora" / "es" / "queries.tsv").write_text("a\tgato\nb\tgatito\n")
    assert retrieval_sets(tmp_path, ANSWER) == {}
    _, tasks = data = read(Request([], SEMANTIC, tmp_path))
    assert [each.name for each in tasks] == ["quora/en", "quora/es-en"]
    assert (tasks[1].queries, tasks[1].itself, tasks[1].relevant) == (["gato", "gatito"], [{0}, {2}], [{2}, {0}])
    model = named({"cat": [1, 0], "kitty": [0.9, 0.1], "dog": [0, 1], "gato": [1, 0.1], "gatito": [0.1, 1]})
    # "gatito" finds "dog" before "cat"
    assert [one.value for one in score("m", model, data)] == [1, (1 + 1 / 2) / 2]


def test_bm25_finds_rare_words():
    assert words("Who's Müller-4?") == ["who", "s", "müller", "4"]
    assert words("北京is 大") == ["北", "京", "is", "大"] and words("!?") == []
    pytest.importorskip("bm25s")
    answers, questions = ["the moon is old", "the sun", "the moon"], ["old moon", "Sun!", "qqq"]
    made = task(questions, answers, [{0}, {1}, {2}])
    found = answer_measures(made, bm25(answers, questions))
    # "qqq" is nowhere: all have one score, and share rank 2
    assert found == {"P@1 sentence": pytest.approx(2 / 3), "MRR": pytest.approx((1 + 1 + 1 / 2) / 3)}
    assert bm25(["!", "?"], ["?"])(slice(0, 1)).tolist() == [[0, 0]]  # no word anywhere


def data(folder, texts):
    """Questions of two languages that are the words of their answers, and a set alone."""
    for language, part in (("en", texts[:6]), ("es", texts[6:12])):
        around = [f"{part[row // 2 * 2]} {part[row // 2 * 2 + 1]}" for row in range(6)]
        corpus = "".join(f"{language}{row}\t{text}\t{around[row]}\n" for row, text in enumerate(part))
        queries = "".join(f"{row}\t{text}\n" for row, text in enumerate(part))
        write(folder / "x" / language, queries, corpus, "".join(f"{row}\t{language}{row}\n" for row in range(6)))
    corpus = "".join(f"a{row}\t{text}\n" for row, text in enumerate(texts[:3]))
    write(folder / "alone", f"q\t{texts[0]}\n", corpus, "q\ta0\n")
    return folder


def test_tasks_of_a_folder(tmp_path, texts):
    folder = data(tmp_path, texts)

    def names(of, *languages):
        return [each.name for each in read(Request([], ANSWER, of, languages=languages))[1]]

    assert names(folder) == ["alone", "x/en", "x/es", "x/es-en"] and names(folder, "es") == ["alone", "x/es", "x/es-en"]
    with pytest.raises(EvaluationError, match=r"no set of fr, only x/en, x/es"):
        names(folder / "x", "fr")
    with pytest.raises(EvaluationError, match="no sets of questions"):
        names(tmp_path / "none")


def test_the_command_prints_and_writes(tmp_path, tiny, texts, capsys, monkeypatch):
    pytest.importorskip("bm25s")
    file, folder = tmp_path / "scores.json", data(tmp_path / "data", texts)
    command = ["evaluate", str(tiny), "--benchmarks", "answer-retrieval", "--data", str(folder)]
    assert main([*command, "--untrained", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "x 100, alone: 1 questions, 3 sentences\n\n| model | P@1 sentence | MRR |" in printed
    assert f"| {tiny} | 100.0 | 100.0 | 100.0 |" in printed and "| untrained |" in printed
    assert "published" not in printed
    found = read_scores(file)
    sets = ["alone", "x/en", "x/es", "x/es-en"]
    assert list(dict.fromkeys(score.set for score in found if score.model == str(tiny))) == sets
    assert list(dict.fromkeys(score.set for score in found if score.model == "BM25")) == sets[:-1]
    monkeypatch.setattr(retrieval.importlib.util, "find_spec", lambda name: None)
    assert main([*command, "--languages", "es"]) == 0
    printed = capsys.readouterr().out
    assert "x/en:" not in printed and "| BM25 |" not in printed and "bm25s is not installed" in printed
