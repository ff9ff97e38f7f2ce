"""Probing tasks from Universal Dependencies: number of subject and object, and depth of the tree.

Number is that of SentEval (Conneau et al. 2018): of the subject or direct object of the main clause where it is a noun,
with no noun (lemma) in two splits. Depth is that of the dependency tree, while SentEval's is that of a constituency
tree with length held apart; it is not here, so that length helps to guess depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.quality.probing_tasks import Balance, Example, ProbingSettings, ProbingTask, Source, make_task

from st_paragram.core.extras import require
from st_paragram.errors import DAMAGED, EvaluationError, one_line, short

#: Depths beyond these count as these.
SHALLOWEST, DEEPEST = 3, 8
#: Shorter sentences, in words and marks, are left out for depth.
SHORTEST = 5
#: The relation of the target noun to the root of the sentence, by the name of the task.
RELATIONS = {"subject number": "nsubj", "object number": "obj"}

_NUMBERS = ("Sing", "Plur")


@dataclass(frozen=True)
class Word:
    """A syntactic word of a sentence.

    Attributes:
        place: in the sentence, from 1.
        head: the place of the word it depends on; 0 for the root.
        relation: to the head, such as nsubj, without a subtype as in nsubj:pass.
        part: of speech, a tag of Universal Dependencies.
        number: Sing, Plur, another value of that feature, or None.
        lemma: lower-cased.
    """

    place: int
    head: int
    relation: str
    part: str
    number: str | None
    lemma: str


def conllu_tasks(folder: Path, settings: ProbingSettings) -> list[ProbingTask]:
    """Make the tasks of all *.conllu files beneath a folder.

    Raises:
        EvaluationError: there are no such files, one cannot be read, or there are too few sentences for a task.
        MissingExtraError: conllu is not installed.
    """
    examples: dict[str, list[Example]] = {name: [] for name in (*RELATIONS, "tree depth")}
    for text, words in read_sentences(folder):
        for name, relation in RELATIONS.items():
            found = number_example(text, words, relation)
            if found is not None:
                examples[name].append(found)
        if len(words) >= SHORTEST:
            examples["tree depth"].append(Example(text, depth_label(depth(text, words))))
    return [make_task(name, Source.UD, found, settings, Balance.EQUAL) for name, found in examples.items()]


def read_sentences(folder: Path) -> Iterator[tuple[str, list[Word]]]:
    """Yield text and words of every sentence, files in the order of their names.

    Raises:
        EvaluationError: there are no files, or one is not CoNLL-U; the message names it.
    """
    conllu = require("conllu", extra="probing", purpose="reading Universal Dependencies")
    paths = sorted(folder.rglob("*.conllu"))
    if not paths:
        raise EvaluationError(f"{folder}: no *.conllu files; give the folder of a Universal Dependencies treebank")
    for path in paths:
        try:
            with path.open(encoding="utf-8") as lines:
                for sentence in conllu.parse_incr(lines):
                    yield _text(sentence), _words(sentence)
        except (conllu.exceptions.ParseException, *DAMAGED) as error:
            raise EvaluationError(f"{path}: not CoNLL-U ({one_line(error)}); fix the file or take it out") from error


def number_example(text: str, words: Sequence[Word], relation: str) -> Example | None:
    """The number, Sing or Plur, of the only noun with a relation to the root, its lemma as the group.

    None where several words, another part of speech or none stand in that relation, or the number is another.
    """
    roots = {word.place for word in words if word.head == 0}
    found = [word for word in words if word.head in roots and word.relation == relation]
    if len(found) != 1 or found[0].part != "NOUN" or found[0].number not in _NUMBERS:
        return None
    return Example(text, found[0].number, found[0].lemma)


def depth(text: str, words: Sequence[Word]) -> int:
    """Words on the longest way from the root to a leaf; 1 for a sentence of one word.

    Raises:
        EvaluationError: heads do not make a tree.
    """
    heads = {word.place: word.head for word in words}
    return max(_steps(text, place, heads) for place in heads)


def depth_label(value: int) -> str:
    """`3-` for 3 and less, `4` to `7`, `8+`."""
    if value <= SHALLOWEST:
        return f"{SHALLOWEST}-"
    return str(value) if value < DEEPEST else f"{DEEPEST}+"


def _steps(text: str, place: int, heads: Mapping[int, int]) -> int:
    """Words from a place to the root, both included."""
    steps = 0
    while place:
        if place not in heads or steps > len(heads):
            raise EvaluationError(f"tree depth: the heads of {short(text)} do not make a tree; fix the treebank")
        place, steps = heads[place], steps + 1
    return steps


def _text(sentence: Any) -> str:  # noqa: ANN401 - of conllu
    """What the file gives, or the words with spaces between."""
    words = (token["form"] for token in sentence if isinstance(token["id"], int))
    return str(sentence.metadata.get("text") or " ".join(words))


def _words(sentence: Iterable[dict[str, Any]]) -> list[Word]:
    """Without ranges of contracted words and without empty nodes, whose ids are no integers."""
    return [_word(token) for token in sentence if isinstance(token["id"], int)]


def _word(token: dict[str, Any]) -> Word:
    number = (token["feats"] or {}).get("Number")
    relation = token["deprel"].partition(":")[0]
    return Word(token["id"], int(token["head"]), relation, token["upos"], number, token["lemma"].casefold())
