"""Questions and answers of files in the form of SQuAD 1.1 or 2.0 (MLQA, TyDi QA GoldP, ARCD, TQuAD, CMRC 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from st_paragram.core.damage import DAMAGED, one_line, short
from st_paragram.core.json_files import read_json
from st_paragram.errors import TextError
from st_paragram.families.muse.public_files.rows import ConvertReport, ConvertSettings
from st_paragram.families.muse.public_files.sentence_spans import span_around, words_around

_FORM = "`data`, a list of articles with `paragraphs`, each of `context` and `qas` with `question` and `answers`"


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
        raise TypeError(f"{short(asked)} is no question")
    text, begin = answer["text"].strip(), int(answer["answer_start"])
    if not text or not context.startswith(text, max(begin, 0)):
        begin = context.find(text) if text else -1
    if begin < 0:
        return None
    first, last = span_around(context, begin, begin + len(text))
    return asked, context[first:last], words_around(context, first, last, settings.context_words)
