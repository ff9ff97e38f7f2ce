"""Probing tasks from parallel text: length, word content, punctuation, and gender of the other language's articles.

Labels follow SentEval (Conneau et al. 2018) for length and word content, BGT (Wieting et al., EMNLP 2020) for the
others. Words are what stands between white space for length; for word content lower-cased letters and digits with
apostrophes inside.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from string import punctuation

from harness.quality.probing_tasks import Balance, Example, ProbingSettings, ProbingTask, Source, make_task

from st_paragram.core.text.parallel import parse_source, read_pairs
from st_paragram.errors import EvaluationError

#: Bins of sentence length, in words, both ends included: SentEval's. Longer and shorter sentences are left out.
LENGTH_BINS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))
#: The last label of the punctuation count, for this many marks and more.
MOST_MARKS = 11
#: Language -> articles that change places, masculine first.
ARTICLES = {"es": (("el", "la"), ("los", "las")), "fr": (("le", "la"), ("un", "une"))}

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def bitext_tasks(path: str, language: str | None, settings: ProbingSettings) -> tuple[list[ProbingTask], list[str]]:
    """Make the tasks of a bitext `english TAB other`, and say in notes which ones cannot be made.

    Args:
        path: plain, gzip, xz or bzip2.
        language: of the second column; None: unknown.
        settings: how large tasks are.

    Raises:
        TextError: the text cannot be read.
        EvaluationError: there are too few sentences for a task.
    """
    rows = sample(read_pairs(parse_source(path, ("en", language or "xx"))), settings.most_rows, settings.seed)
    english = [first for first, _ in rows]
    made = [
        ("sentence length", length_examples(english), Balance.EQUAL),
        ("word content", word_examples(english, settings.first_rank, settings.words), Balance.EQUAL),
        ("punctuation count", mark_count_examples(english), Balance.CAPPED),
        ("first punctuation", first_mark_examples(english), Balance.NATURAL),
    ]
    notes = []
    if language in ARTICLES:
        others = (other for _, other in rows)
        made.append(("gender", gender_examples(others, language, settings.seed), Balance.EQUAL))
    else:
        notes.append(f"gender is left out: no articles are known for {language or 'a bitext without --lang'}")
    return [make_task(name, Source.BITEXT, examples, settings, balance) for name, examples, balance in made], notes


def sample(rows: Iterable[tuple[str, str]], most: int, seed: int) -> list[tuple[str, str]]:
    """At most so many rows, each with the same chance, in one pass (reservoir sampling, Vitter's algorithm R)."""
    rng, kept = random.Random(seed), []
    for number, row in enumerate(rows):
        if number < most:
            kept.append(row)
        elif (place := rng.randrange(number + 1)) < most:
            kept[place] = row
    return kept


def length_examples(sentences: Iterable[str]) -> Iterator[Example]:
    """Sentences of 5 to 28 words; the label is the bin, `5-8` to `26-28`."""
    for text in sentences:
        words = len(text.split())
        for low, high in LENGTH_BINS:
            if low <= words <= high:
                yield Example(text, f"{low}-{high}")


def word_examples(sentences: Sequence[str], first_rank: int, words: int) -> Iterator[Example]:
    """Sentences that hold exactly one of so many words of medium frequency; the label is that word.

    Raises:
        EvaluationError: the text has not so many words.
    """
    counts = Counter(word for text in dict.fromkeys(sentences) for word in _words(text))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    chosen = set(ranked[first_rank - 1 : first_rank - 1 + words])
    if len(chosen) < words:
        needed = f"ranks {first_rank} to {first_rank + words - 1} are needed"
        raise EvaluationError(f"word content: the text has {len(counts)} words, {needed}; give more text")
    for text in sentences:
        held = chosen & set(_words(text))
        if len(held) == 1:
            yield Example(text, held.pop())


def mark_count_examples(sentences: Iterable[str]) -> Iterator[Example]:
    """Sentences with punctuation marks; the label is how many, `1` to `10` or `11+`."""
    for text in sentences:
        marks = sum(char in punctuation for char in text)
        if marks:
            yield Example(text, str(marks) if marks < MOST_MARKS else f"{MOST_MARKS}+")


def first_mark_examples(sentences: Iterable[str]) -> Iterator[Example]:
    """Sentences with punctuation marks; the label is the first one."""
    for text in sentences:
        mark = next((char for char in text if char in punctuation), None)
        if mark:
            yield Example(text, mark)


def gender_examples(sentences: Iterable[str], language: str, seed: int) -> Iterator[Example]:
    """Sentences with articles, in a random half of them all articles swapped; the label is `own` or `swapped`.

    Pronouns that look like articles (French `le`, Spanish `los`) are swapped too. A sentence and its counterpart are
    of one group.
    """
    both = [(text, swap_articles(text, language)) for text in dict.fromkeys(sentences)]
    both = [(own, swapped) for own, swapped in both if own != swapped]
    random.Random(seed).shuffle(both)
    for number, (own, swapped) in enumerate(both):
        group = min(own, swapped).casefold()
        yield Example(swapped, "swapped", group) if number % 2 else Example(own, "own", group)


def swap_articles(text: str, language: str) -> str:
    """The text with every article replaced by that of the other gender, in the same case (`La` -> `El`)."""
    other = {one: two for pair in ARTICLES[language] for one, two in (pair, pair[::-1])}
    pattern = rf"\b({'|'.join(other)})\b"
    return re.sub(pattern, lambda found: _like(found[0], other[found[0].lower()]), text, flags=re.IGNORECASE)


def _like(model: str, word: str) -> str:
    return word.upper() if model.isupper() else word.title() if model[0].isupper() else word


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
