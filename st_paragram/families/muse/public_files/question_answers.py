"""Questions and answers, in the form of SQuAD and in lists of frequent questions.

The form is that of SQuAD 1.1 or 2.0 (MLQA, TyDi QA GoldP, ARCD, TQuAD, CMRC 2018). Lists are TSV, CSV or JSON lines
with columns `question` and `answer`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from st_paragram.core.files import read_json
from st_paragram.errors import DAMAGED, TextError, one_line, short
from st_paragram.families.muse.public_files.named_columns import named_rows
from st_paragram.families.muse.public_files.rows import UNREADABLE, ConvertReport, ConvertSettings
from st_paragram.families.muse.public_files.sentence_spans import sentence_spans, span_around, words_around
from st_paragram.tools.cleaning.unsegmented_scripts import is_unsegmented

_FORM = "`data`, a list of articles with `paragraphs`, each of `context` and `qas` with `question` and `answers`"
_COLUMNS = {
    "question": ("question", "questions", "query"),
    "answer": ("answer", "answers", "response"),
    "context": ("context", "paragraph"),
}
_FEWEST_WORDS = 4  # of the sentences that stand for an answer: "Yes." alone is none
_MOST_CHARACTERS = 2000  # in which they are looked for; what has no four words there is no text


def squad_rows(
    path: Path, language: str, settings: ConvertSettings, report: ConvertReport
) -> Iterator[tuple[str, str, str]]:
    """Yield question, the sentence of the paragraph that holds the answer, and the paragraph around it.

    Of several answers the first is taken. Questions without an answer are left out and counted.

    Raises:
        TextError: the file cannot be read, or is not of this form.
    """
    try:
        articles = read_json(path)["data"]
        for context, question in _questions(articles):
            report.read += 1
            if not str(question.get("id", "")).startswith(settings.id_prefix):
                report.left_out["another id"] += 1
            elif not question.get("answers"):
                report.left_out["without an answer"] += 1
            elif (row := _row(context, question, settings)) is None:
                report.left_out["answer not in its paragraph"] += 1
            else:
                yield row
    except OSError as error:
        raise TextError(f"{path}: {(error.strerror or 'unreadable').lower()}; check the path") from error
    except DAMAGED as error:
        raise TextError(f"{path}: not in the form of SQuAD ({one_line(error)}); it has {_FORM}") from error


def _questions(articles: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for article in articles:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield paragraph["context"], question


def _row(context: str, question: dict[str, Any], settings: ConvertSettings) -> tuple[str, str, str] | None:
    asked, answer = question["question"], question["answers"][0]
    if not isinstance(asked, str):
        raise TypeError(f"{short(asked)} is not a question")
    text, begin = answer["text"].strip(), int(answer["answer_start"])
    if not text or not context.startswith(text, max(begin, 0)):
        begin = context.find(text) if text else -1
    if begin < 0:
        return None
    first, last = span_around(context, begin, begin + len(text))
    return asked, context[first:last], words_around(context, first, last, settings.context_words)


def faq_rows(
    path: Path, language: str, settings: ConvertSettings, report: ConvertReport
) -> Iterator[tuple[str, str, str]]:
    """Yield question, the first sentence of the answer, and the context: the column of that name, or the whole answer.

    Further sentences are taken to the first until there are four words. An answer that is no longer has no context.

    Raises:
        TextError: the file is not readable, or lacks a column.
    """
    for row in named_rows(path, _COLUMNS, ("question", "answer")):
        report.read += 1
        if row is None:
            report.left_out[UNREADABLE] += 1
            continue
        answer = row["answer"].strip()
        first = _first_sentences(answer)
        around = row.get("context") or (answer if len(answer) > len(first) else "")
        begin = max(around.find(first), 0)
        yield row["question"], first, words_around(around, begin, begin + len(first), settings.context_words)


def _first_sentences(answer: str) -> str:
    for _, end in sentence_spans(answer):
        if end > _MOST_CHARACTERS:
            break
        part = answer[:end]
        if len(part.split()) >= _FEWEST_WORDS or (is_unsegmented(part) and len(part) >= 2 * _FEWEST_WORDS):
            return part
    return answer
