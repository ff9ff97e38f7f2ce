"""Answer retrieval: ranks by hand, tasks of sets, towers, BM25, and runs on made sets."""

import numpy as np
import pytest

from st_paragram.cli.main import main
from st_paragram.errors import EvaluationError
from st_paragram.learning.models import directory as model_directory
from st_paragram.learning.models.sentence_transformers_encoder import pipeline
from st_paragram.learning.modules.token_embedding import SentencePieceEmbedding
from st_paragram.tools.evaluation import answer_retrieval
from st_paragram.tools.evaluation.answer_retrieval import AnswerRetrievalRun, read_answer_tasks, score_answers
from st_paragram.tools.evaluation.answer_task import AnswerTask, answer_scores, answer_task, right_ranks
from st_paragram.tools.evaluation.benchmarks import report
from st_paragram.tools.evaluation.bm25 import bm25_scores, words
from st_paragram.tools.evaluation.record import read_records
from st_paragram.tools.evaluation.retrieval_files import RetrievalSet, write_retrieval_set


def rows(*numbers):
    return np.array(numbers, np.int64)


def retrieval(name, queries, corpus, relevant, contexts=None):
    corpus = {f"{name}-{row}": text for row, text in enumerate(corpus)}
    return RetrievalSet(name, queries, corpus, tuple(contexts or [""] * len(corpus)), tuple(relevant))


def task(questions, answers, right, contexts=None):
    return AnswerTask("t", "t", "t", questions, answers, contexts or [""] * len(answers), right)


def scored(made, scores, of_paragraphs=None):
    table, other = np.array(scores, np.float64), of_paragraphs and np.array(of_paragraphs)
    return answer_scores(made, lambda block: table[block], (other is not None and (lambda block: other[block])) or None)


def test_ranks_by_hand():
    scores = np.array([[0.1, 0.9, 0.5, 0.9], [0.9, 0.9, 0.5, 0.9], [0.3, 0.2, 0.1, 0.0]])
    # 0.5 is third; three of 0.9 share rank 2; the better of the last two right ones is second
    assert right_ranks(scores, [rows(2), rows(0), rows(1, 3)]).tolist() == [3, 2, 2]


def test_ties_share_their_mean_rank_and_are_no_hit():
    found = scored(task(["who"], ["a", "b", "c"], [rows(0)]), [[0.5, 0.5, 0.1]])
    assert (found.sentence, found.reciprocal_rank) == (0, pytest.approx(1 / 1.5))
    # what differs behind the sixth digit is rounding, and a tie too
    assert scored(task(["who"], ["a", "b"], [rows(0)]), [[0.5, 0.4999999]]).reciprocal_rank == pytest.approx(1 / 1.5)
    assert scored(task(["who"], ["a", "b"], [rows(0)]), [[0.5, 0.49999]]).sentence == 1


def test_equal_questions_count_once_by_the_best_rank():
    made = task(["who", "where", "who"], ["a", "b", "c"], [rows(2), rows(1), rows(0)])
    found = scored(made, [[0.9, 0.5, 0.1], [0.9, 0.5, 0.1], [0.9, 0.5, 0.1]])
    assert (found.questions, found.candidates, found.sentence) == (2, 3, 0.5)
    assert found.reciprocal_rank == pytest.approx((1 + 1 / 2) / 2)


def test_equal_sentences_are_right_alike():
    queries = {"q": "who"}
    corpus = ["yes", "no", "yes", "yes"]
    found = answer_task(retrieval("s", queries, corpus, [rows(0)], ["one", "one", "two", "one"]))
    # the last row is the first one again; "yes" of the other paragraph is right as well
    assert found.answers == ["yes", "no", "yes"] and found.contexts == ["one", "one", "two"]
    assert [each.tolist() for each in found.right] == [[0, 2]]
    result = scored(found, [[0.1, 0.5, 0.9]])
    assert (result.sentence, result.paragraph) == (1, 1)


def test_a_paragraph_is_that_of_the_best_sentence():
    contexts = ["p", "q", "p", "q"]
    made = task(["who", "where"], ["a", "b", "c", "d"], [rows(0), rows(1)], contexts)
    # who: the best sentence is another one of the right paragraph; where: it is of the wrong one
    found = scored(made, [[0.5, 0.1, 0.9, 0.2], [0.9, 0.8, 0.1, 0.2]])
    assert (found.sentence, found.paragraph) == (0, 0.5)
    assert found.reciprocal_rank == pytest.approx(1 / 2)
    # paragraphs that are ranked by themselves
    assert scored(made, [[0.5, 0.1, 0.9, 0.2]] * 2, [[0.1, 0.2], [0.1, 0.2]]).paragraph == 0.5
    # equally good paragraphs share a rank
    assert scored(made, [[0.9, 0.9, 0.1, 0.2]] * 2).paragraph == 0
    assert scored(task(["who"], ["a", "b"], [rows(0)], ["p", " "]), [[0.9, 0.1]]).paragraph is None


def test_many_questions_are_ranked_block_by_block():
    generator = np.random.default_rng(0)
    table = generator.random((1100, 30))
    right = generator.integers(0, 30, 1100)
    found = scored(
        task([f"q{row}" for row in range(1100)], [f"a{row}" for row in range(30)], [rows(n) for n in right]), table
    )
    ranks = 1 + (table > table[np.arange(1100), right][:, None]).sum(1)
    assert found.sentence == pytest.approx((ranks == 1).mean()) and found.reciprocal_rank == pytest.approx(
        (1 / ranks).mean()
    )


def test_scores_that_are_not_finite_are_refused():
    with pytest.raises(EvaluationError, match="t: a score is not finite"):
        scored(task(["who"], ["a", "b"], [rows(0)]), [[np.nan, 0.1]])


SPANISH = retrieval("x/es", {"1": "quien", "2": "donde"}, ["da", "lo", "ba"], [rows(1), rows(0)])
ENGLISH = retrieval("x/en", {"2": "where", "1": "who"}, ["there", "she"], [rows(0), rows(1)])


def test_questions_of_one_language_are_put_to_answers_of_another():
    found = answer_task(SPANISH, ENGLISH)
    assert (found.name, found.asked, found.answered) == ("x/es-en", "x/es", "x/en")
    assert found.questions == ["quien", "donde"] and found.answers == ["there", "she"]
    assert [each.tolist() for each in found.right] == [[1], [0]]
    with pytest.raises(EvaluationError, match=r"question '2' of x/es is none of x/de; sets .* parallel"):
        answer_task(SPANISH, retrieval("x/de", {"1": "wer"}, ["sie"], [rows(0)]))


def test_tasks_of_a_folder(tmp_path):
    for each in (SPANISH, ENGLISH, retrieval("squad", {"1": "who"}, ["she"], [rows(0)])):
        write_retrieval_set(each, tmp_path / each.name)
    assert [each.name for each in read_answer_tasks(tmp_path)] == ["squad", "x/en", "x/es", "x/es-en"]
    assert [each.name for each in read_answer_tasks(tmp_path, ["es"])] == ["squad", "x/es", "x/es-en"]
    assert [each.name for each in read_answer_tasks(tmp_path / "x", ["en"])] == ["x/en"]
    with pytest.raises(EvaluationError, match=r"no set of fr, only x/en, x/es"):
        read_answer_tasks(tmp_path / "x", ["fr"])
    with pytest.raises(EvaluationError, match="no sets of questions"):
        read_answer_tasks(tmp_path / "none")


class Shared:
    """Stands for a model without towers; texts are names of vectors."""

    VECTORS = (("who", [1, 0]), ("she", [0, 1]), ("there", [0.9, 0.1]))

    def __init__(self):
        self.calls = []

    def encode(self, texts, **kwargs):
        self.calls.append(list(texts))
        vectors = np.array([dict(self.VECTORS)[text] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Towers(Shared):
    """With towers that turn questions to their answers, by the contexts."""

    def encode_query(self, texts, **kwargs):
        return np.array([[0, 1] for _ in texts], np.float32)

    def encode_answers(self, texts, contexts):
        return np.array([[0, 1] if around == "right" else [1, 0] for around in contexts], np.float32)


def test_models_with_towers_have_two_rows():
    made = task(["who"], ["she", "there"], [rows(0)], ["right", "wrong"])
    plain, towers = Shared(), Towers()
    assert list(score_answers(plain, [made, made]).ways) == ["shared"]
    assert plain.calls == [["who"], ["she", "there"]]  # each side once, whatever the tasks
    ways = score_answers(towers, [made]).ways
    assert {way: of["t"].sentence for way, of in ways.items()} == {"shared": 0, "towers": 1}
    run = AnswerRetrievalRun({"m": score_answers(towers, [made])})
    printed = "\n".join(report(run))
    assert "| m, shared | 0.0 | 0.0 | 50.0 |" in printed and "| m, towers | 100.0 | 100.0 | 100.0 |" in printed
    assert 'bm25s is not installed: pip install "st_paragram[retrieval]"' in printed


def test_words_of_bm25():
    assert words("Who's Müller-4?") == ["who", "s", "müller", "4"]
    assert words("北京is 大") == ["北", "京", "is", "大"] and words("!?") == []


def test_bm25_finds_rare_words_in_sentences_and_in_paragraphs():
    pytest.importorskip("bm25s")
    contexts = ["the moon is old . the moon", "the sun the moon", "the moon is old . the moon"]
    made = task(
        ["old moon", "Sun!", "qqq"], ["the moon is old", "the sun", "the moon"], [rows(0), rows(1), rows(2)], contexts
    )
    found = bm25_scores(made)
    # "qqq" is nowhere: all have one score, and share rank 2 of sentences and 1.5 of paragraphs
    assert found.sentence == pytest.approx(2 / 3) and found.reciprocal_rank == pytest.approx((1 + 1 + 1 / 2) / 3)
    assert found.paragraph == pytest.approx(2 / 3)
    assert bm25_scores(task(["?"], ["!", "?"], [rows(0)])).sentence == 0  # no word anywhere


def data(folder, texts):
    """Questions of two languages that are the words of their answers."""
    for language, part in (("en", texts[:6]), ("es", texts[6:12])):
        queries = {str(row): text for row, text in enumerate(part)}
        contexts = [f"{part[row // 2 * 2]} {part[row // 2 * 2 + 1]}" for row in range(6)]
        made = retrieval(f"x/{language}", queries, part, [rows(row) for row in range(6)], contexts)
        write_retrieval_set(made, folder / "x" / language)
    write_retrieval_set(retrieval("alone", {"q": texts[0]}, texts[:3], [rows(0)]), folder / "alone")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory, vocabulary):
    untrained = pipeline(SentencePieceEmbedding(vocabulary, 16), device="cpu")
    return model_directory.save(untrained, tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def texts(pairs):
    return list(dict.fromkeys(first for first, _ in pairs))[:12]


def test_the_command_prints_and_records(tmp_path, model, texts, capsys):
    pytest.importorskip("bm25s")
    file = tmp_path / "record.json"
    options = ("--data", str(data(tmp_path / "data", texts)), "--untrained", "--json", str(file))
    assert main(["evaluate", str(model), "--benchmarks", "answer-retrieval", *options]) == 0
    printed = capsys.readouterr().out
    assert "### alone: 1 questions, 3 sentences\n\n| model | P@1 sentence | P@1 paragraph | MRR |" in printed
    assert f"| {model} | 100.0 | - | 100.0 |" in printed and "| untrained | 100.0 | - | 100.0 |" in printed
    assert f"| {model} | same language | 100.0 | 100.0 | 100.0 |" in printed
    assert f"| {model} | English | - | " in printed and "| BM25 | same language |" in printed
    assert "| BM25 | English |" not in printed and "published" not in printed
    (record,) = read_records(file)
    assert list(record.run.models[str(model)].ways["shared"]) == ["alone", "x/en", "x/es", "x/es-en"]
    assert list(record.run.bm25) == ["alone", "x/en", "x/es"]
    assert all(part in printed for part in report(record.run))


def test_languages_are_chosen_and_bm25_may_be_missing(tmp_path, model, texts, monkeypatch, capsys):
    monkeypatch.setattr(answer_retrieval.importlib.util, "find_spec", lambda name: None)
    options = ["--data", str(data(tmp_path, texts)), "--languages", "es", "--benchmarks", "answer-retrieval"]
    assert main(["evaluate", str(model), *options]) == 0
    printed = capsys.readouterr().out
    assert "| model | answers in | es | mean |" in printed and "| BM25 |" not in printed
