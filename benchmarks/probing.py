r"""Probing: properties of a sentence that a linear classifier can predict from frozen embeddings
(EMNLP 2020).

    python benchmarks/probing.py p-sp-mini bgt-es --senteval senteval/probing --text sentences.txt
    python benchmarks/probing.py bgt-es bgt-es/language-es --bitext en-es.tsv.xz --lang es
    python benchmarks/probing.py bgt-es bgt-es/language-en --treebank UD_English-EWT
    python benchmarks/probing.py bgt-es --information held-out.tsv --lang es

`--senteval FOLDER` has SentEval's files (sentence_length.txt, tree_depth.txt, word_content.txt,
...), rows `tr|va|te TAB label TAB text`. `--text FILE` makes tasks from its lines: sentence length
in words, number of punctuation marks, first punctuation mark, and word content (which word of
medium frequency occurs). `--bitext FILE` makes them from the English side, and gender from a
Spanish or French side: are its articles those of the other gender? `--treebank FOLDER` makes number
of the subject, number of the object, and tree depth from Universal Dependencies. The classifier is
a logistic regression on standardized features; its regularization is chosen on the validation
split. `majority` is the accuracy of the most frequent label. `--information FILE` prints instead
the likelihood of pairs under generative models, and the information in their latent variables.
"""

from __future__ import annotations

import argparse
import random
import re
import string
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from st_paragram import GenerativeEncoder, load, parse_source
from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.formatting import hundredths, markdown_table
from st_paragram.core.text.parallel import read_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.core.text.words import split_words
from st_paragram.errors import EvaluationError, TextError
from st_paragram.families.bgt.likelihood import information

STRENGTHS = (0.25, 1.0, 4.0)  # three of SentEval's 2^-2 ... 2^3
LENGTHS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))  # SentEval's bins, in words
MOST_MARKS, LEAST = 11, 10  # largest label for the number of marks; minimum sentences per label
FIRST_RANK, WORDS = 2001, 100  # ranks by frequency and number of the words of word content
SHALLOWEST, DEEPEST = 3, 8  # depths beyond these count as these
SHORTEST = 5  # words and marks of a sentence whose depth is asked
ID, LEMMA, PART, FEATURES, HEAD, RELATION = 0, 2, 3, 5, 6, 7  # columns of CoNLL-U
RELATIONS = {"subject number": "nsubj", "object number": "obj"}
#: Language -> article -> that of the other gender.
ARTICLES = {
    "es": {"el": "la", "la": "el", "los": "las", "las": "los"},
    "fr": {"le": "la", "la": "le", "un": "une", "une": "un"},
}


@dataclass(frozen=True)
class Example:
    """A sentence with its label; examples of one group, such as one noun, are in one split."""

    label: str
    text: str
    group: str = ""


Examples = list[Example]
Task = tuple[Examples, Examples, Examples]  # for training, validation and test


def senteval_tasks(folder: Path, sizes: list[int], rng: random.Random) -> dict[str, Task]:
    """Read the tasks of SentEval's files, with at most the numbers of rows in `sizes` per split."""
    tasks = {}
    for path in sorted(folder.glob("*.txt")):
        parts: dict[str, Examples] = {"tr": [], "va": [], "te": []}
        for number, line in enumerate(read_lines(str(path)), start=1):
            split, *rest = line.split("\t")
            if split not in parts or len(rest) < 2:
                raise TextError(f"{path}: row {number} is not `tr|va|te TAB label TAB text`")
            parts[split].append(Example(rest[0], rest[-1]))
        tasks[path.stem] = _drawn(list(parts.values()), sizes, rng)
    return tasks


def text_tasks(sentences: Iterable[str], sizes: list[int], rng: random.Random) -> dict[str, Task]:
    """Make tasks from distinct sentences."""
    texts = list(dict.fromkeys(sentences))
    labeled: dict[str, Examples] = {"sentence length": [], "number of marks": [], "first mark": []}
    for text in texts:
        words = len(text.split())
        for low, high in LENGTHS:
            if low <= words <= high:
                labeled["sentence length"].append(Example(f"{low}-{high}", text))
        marks = [character for character in text if character in string.punctuation]
        if marks:
            labeled["number of marks"].append(Example(str(min(len(marks), MOST_MARKS)), text))
            labeled["first mark"].append(Example(marks[0], text))
    tasks = {name: divided(examples, sizes, rng) for name, examples in labeled.items()}
    tasks["word content"] = divided(word_examples(texts), sizes, rng, balanced=True)
    return tasks


def bitext_tasks(path: str, language: str, sizes: list[int], rng: random.Random) -> dict[str, Task]:
    """Make tasks from the English of a bitext, and gender from the other language."""
    pairs = list(read_pairs(parse_source(path, ("en", language))))
    tasks = text_tasks((english for english, _ in pairs), sizes, rng)
    if language in ARTICLES:
        examples = gender_examples((other for _, other in pairs), language, rng)
        tasks["gender"] = divided(examples, sizes, rng, balanced=True)
    else:
        print(f"gender: left out, only for {' and '.join(ARTICLES)}", file=sys.stderr)
    return tasks


def word_examples(texts: Sequence[str]) -> Examples:
    """Return the texts with exactly one of the words of medium frequency, which is the label."""
    words_of_texts = [set(split_words(text.lower())) for text in texts]
    counts = Counter(chain.from_iterable(words_of_texts))
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    chosen = set(ranked[FIRST_RANK - 1 : FIRST_RANK - 1 + WORDS])
    examples = []
    for text, words in zip(texts, words_of_texts, strict=True):
        matches = sorted(chosen & words)
        if len(matches) == 1:
            examples.append(Example(matches[0], text))
    return examples


def gender_examples(sentences: Iterable[str], language: str, rng: random.Random) -> Examples:
    """Return lower-cased sentences with articles, which are swapped in a random half of them.

    Pronouns that are spelled like articles (Spanish `los`) are swapped, too.
    """
    articles = ARTICLES[language]
    pattern = re.compile(rf"\b({'|'.join(articles)})\b")
    texts = [text for text in dict.fromkeys(map(str.lower, sentences)) if pattern.search(text)]
    rng.shuffle(texts)
    examples = []
    for number, text in enumerate(texts):
        swapped = pattern.sub(lambda match: articles[match[0]], text)
        group = min(text, swapped)  # the same if both forms are in the text
        own = number % 2 == 0
        examples.append(Example("own" if own else "swapped", text if own else swapped, group))
    return examples


def treebank_tasks(folder: Path, sizes: list[int], rng: random.Random) -> dict[str, Task]:
    """Make the tasks of a treebank of Universal Dependencies.

    As in SentEval, number is that of the only subject or object of the main clause, if it is a
    noun, and no noun is in two splits. Depth is of dependencies; length does not matter for it.
    """
    examples: dict[str, Examples] = {name: [] for name in (*RELATIONS, "tree depth")}
    for text, words in read_treebank(folder):
        for name, relation in RELATIONS.items():
            examples[name] += number_examples(text, words, relation)
        if len(words) >= SHORTEST:
            label = min(max(depth(words), SHALLOWEST), DEEPEST)
            examples["tree depth"].append(Example(str(label), text))
    return {name: divided(rows, sizes, rng, balanced=True) for name, rows in examples.items()}


def read_treebank(folder: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each sentence's text and its words, as the columns of a folder's CoNLL-U files."""
    paths = sorted(folder.rglob("*.conllu"))
    if not paths:
        raise EvaluationError(
            f"{folder}: no *.conllu files; download a treebank such as UD_English-EWT from"
            " https://universaldependencies.org and give its folder"
        )
    for path in paths:
        text = ""
        words: list[list[str]] = []
        for number, line in enumerate(chain(read_lines(str(path)), [""]), start=1):
            columns = line.split("\t")
            if line.startswith("# text = "):
                text = line.removeprefix("# text = ")
            elif columns[ID].isdigit():  # neither a contraction (6-7) nor an empty node (7.1)
                if len(columns) != 10:
                    raise TextError(f"{path}: row {number} is not CoNLL-U; download the file again")
                words.append(columns)
            elif words and not line:
                yield text, words
                words = []


def number_examples(text: str, words: Sequence[Sequence[str]], relation: str) -> Examples:
    """Return the sentence with the number of the only noun with a relation to its root, if any."""
    roots = [word[ID] for word in words if word[HEAD] == "0"]
    of_roots = [word for word in words if word[HEAD] in roots]
    nouns = [word for word in of_roots if word[RELATION].partition(":")[0] == relation]
    if len(nouns) != 1 or nouns[0][PART] != "NOUN":
        return []
    numbers = {"Number=Sing", "Number=Plur"}.intersection(nouns[0][FEATURES].split("|"))
    return [Example(number, text, nouns[0][LEMMA].casefold()) for number in numbers]


def depth(words: Sequence[Sequence[str]]) -> int:
    """Count the words on the longest path from the root to a leaf."""
    levels = 0
    level = ["0"]  # the head of the root
    while level := [word[ID] for word in words if word[HEAD] in level]:
        levels += 1
    return levels


def divided(
    examples: Examples, sizes: list[int], rng: random.Random, balanced: bool = False
) -> Task:
    """Divide examples into splits in proportion to `sizes`; rare labels are left out.

    Groups, and texts that differ only in case, are never divided. `balanced` splits have equally
    many sentences of each label.
    """
    counts = Counter(example.label for example in examples)
    frequent = [example for example in dict.fromkeys(examples) if counts[example.label] >= LEAST]
    rng.shuffle(frequent)
    groups = defaultdict(list)
    for example in frequent:
        groups[example.group or example.text.casefold()].append(example)
    parts: list[Examples] = [[] for _ in sizes]
    filled: Counter[tuple[int, str]] = Counter()  # split and label -> sentences
    for group in groups.values():
        label = group[0].label
        fill = [filled[split, label] / size for split, size in enumerate(sizes)]
        split = fill.index(min(fill))
        parts[split] += group
        filled.update((split, example.label) for example in group)
    if balanced:
        parts = [_balanced(part, size) for part, size in zip(parts, sizes, strict=True)]
    return _drawn(parts, sizes, rng)


def _balanced(examples: Examples, size: int) -> Examples:
    """Return equally many examples of each label, at most `size` in all."""
    by_label = defaultdict(list)
    for example in examples:
        by_label[example.label].append(example)
    most = min([size // max(len(by_label), 1), *map(len, by_label.values())])
    return list(chain.from_iterable(rows[:most] for rows in by_label.values()))


def _drawn(parts: list[Examples], sizes: list[int], rng: random.Random) -> Task:
    train, valid, test = (
        rng.sample(part, min(size, len(part))) for part, size in zip(parts, sizes, strict=True)
    )
    return train, valid, test


def with_labels(tasks: dict[str, Task]) -> dict[str, Task]:
    """Return the tasks with at least two labels in each split; report the others."""
    kept = {}
    for name, parts in tasks.items():
        if min(len({example.label for example in part}) for part in parts) > 1:
            kept[name] = parts
        else:
            print(f"{name}: left out, too few sentences for three splits", file=sys.stderr)
    return kept


def probe(model: str, tasks: dict[str, Task]) -> dict[str, float]:
    """Return the accuracy on the test split of each task."""
    encoder = load_encoder(model)
    accuracies = {}
    for name, parts in tasks.items():
        vectors = []
        labels = []
        for part in parts:
            texts = [example.text for example in part]
            vectors.append(encoder.encode(texts, show_progress_bar=False))
            labels.append([example.label for example in part])
        # -1: only for training
        fold = PredefinedSplit(np.repeat([-1, 0], [len(parts[0]), len(parts[1])]))
        pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        search = GridSearchCV(pipeline, {"logisticregression__C": STRENGTHS}, cv=fold, refit=False)
        search.fit(np.concatenate(vectors[:2]), labels[0] + labels[1])
        best = pipeline.set_params(**search.best_params_).fit(vectors[0], labels[0])
        accuracies[name] = float(best.score(vectors[2], labels[2]))
    return accuracies


def main() -> int:
    """Make tasks, probe every model and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--senteval", type=Path, metavar="FOLDER", help="SentEval's probing files")
    texts = parser.add_mutually_exclusive_group()
    texts.add_argument("--text", type=Path, metavar="FILE", help="one sentence per line")
    texts.add_argument("--bitext", metavar="FILE", help="rows `english TAB other`")
    parser.add_argument("--lang", metavar="CODE", help="other language of the pairs")
    parser.add_argument("--treebank", type=Path, metavar="FOLDER", help="Universal Dependencies")
    parser.add_argument("--information", metavar="FILE", help="held-out rows `english TAB other`")
    parser.add_argument(
        "--sizes", type=int, nargs=3, default=[10_000, 1_000, 2_000], help="split sizes"
    )
    arguments = parser.parse_args()
    if (arguments.bitext or arguments.information) and not arguments.lang:
        raise EvaluationError("the pairs need --lang CODE, such as es")
    if arguments.information:
        pairs = list(read_pairs(parse_source(arguments.information, ("en", arguments.lang))))
        for name in arguments.models:
            model = load(name)
            if not isinstance(model, GenerativeEncoder):
                raise EvaluationError(f"{name}: not from `st-paragram train bgt`; leave it out")
            estimates = information(model, pairs)
            rows = [[quantity, f"{nats:.1f}"] for quantity, nats in estimates.items()]
            print(markdown_table([f"{name}, {len(pairs):,} pairs", "nats"], rows))
        return 0
    rng = random.Random(0)
    sizes = arguments.sizes
    tasks: dict[str, Task] = {}
    if arguments.senteval:
        tasks |= senteval_tasks(arguments.senteval, sizes, rng)
    if arguments.text:
        tasks |= text_tasks(read_lines(str(arguments.text)), sizes, rng)
    if arguments.bitext:
        tasks |= bitext_tasks(arguments.bitext, arguments.lang, sizes, rng)
    if arguments.treebank:
        tasks |= treebank_tasks(arguments.treebank, sizes, rng)
    tasks = with_labels(tasks)
    if not tasks:
        raise EvaluationError("no tasks; give --senteval, --text, --bitext or --treebank")
    scores = {model: probe(model, tasks) for model in arguments.models}
    rows = []
    for name, (train, valid, test) in tasks.items():
        frequent = Counter(example.label for example in train).most_common(1)[0][0]
        majority = sum(example.label == frequent for example in test) / len(test)
        parts = f"{len(train)} / {len(valid)} / {len(test)}"
        accuracies = [hundredths(accuracies[name]) for accuracies in scores.values()]
        rows.append([name, parts, hundredths(majority), *accuracies])
    print(markdown_table(["task: accuracy x 100", "sentences", "majority", *scores], rows))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("probing", main))
