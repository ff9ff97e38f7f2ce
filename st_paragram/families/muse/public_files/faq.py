"""Questions and answers of lists of frequent questions: TSV, CSV or JSON lines with columns `question` and `answer`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from st_paragram.families.muse.public_files.named_columns import named_rows
from st_paragram.families.muse.public_files.rows import UNREADABLE, ConvertReport, ConvertSettings
from st_paragram.families.muse.public_files.sentence_spans import sentence_spans, words_around
from st_paragram.tools.cleaning.unsegmented_scripts import is_unsegmented

_COLUMNS = {
    "question": ("question", "questions", "query"),
    "answer": ("answer", "answers", "response"),
    "context": ("context", "paragraph"),
}
_FEWEST_WORDS = 4  # of the sentences that stand for an answer: "Yes." alone is none
_MOST_CHARACTERS = 2000  # in which they are looked for; what has no four words there is no text


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
