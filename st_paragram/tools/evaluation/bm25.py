"""BM25 (Robertson et al. 1994), by bm25s: what questions find by their words alone.

k1 = 1.5, b = 0.75, Lucene's form. Words are runs of letters and digits in lower case; a character of a script written
without spaces (Chinese, Japanese, Thai) is a word. Nothing is stemmed, no word left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import numpy as np
import regex

from st_paragram.core.extras import require
from st_paragram.tools.evaluation.answer_task import AnswerScores, AnswerTask, Scores, answer_scores

_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[\p{L}\p{M}\p{N}--\p{Han}\p{Thai}]+", regex.V1)


def words(text: str) -> list[str]:
    """The words of a text."""
    return _WORD.findall(text.lower())


def bm25_scores(task: AnswerTask) -> AnswerScores:
    """Rank a task's sentences and, where there are contexts, its paragraphs, which are separate documents.

    Raises:
        MissingExtraError: bm25s is not installed.
    """
    questions = [words(text) for text in task.questions]
    paragraphs = task.paragraphs is not None
    of_paragraphs = _index(sorted(set(task.contexts)), questions) if paragraphs else None  # in the order of numbers
    return answer_scores(task, _index(task.answers, questions), of_paragraphs)


def _index(documents: Sequence[str], questions: Sequence[list[str]]) -> Callable[[slice], Scores]:
    module = require("bm25s", "retrieval", "BM25")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it reports every index
    index = module.BM25(k1=1.5, b=0.75, method="lucene")
    # With a word that no one writes, so that texts without any words can be indexed, too.
    index.index([[*words(text), "\0"] for text in documents], show_progress=False)
    known = index.vocab_dict

    def scores(block: slice) -> Scores:
        found = [[word for word in question if word in known] for question in questions[block]]
        return np.stack([index.get_scores(each) if each else np.zeros(len(documents)) for each in found])

    return scores
