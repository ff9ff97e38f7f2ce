"""Retrieval: sets of queries and documents, one search, and the measures of rankings; BM25 for comparison.

A set is a folder of `queries.tsv`, `corpus.tsv` and `qrels.tsv`, plain or compressed, see `files.read_retrieval_set`.
Semantic retrieval (Gillick et al. 2018; mUSE's task SR) has queries that are documents themselves: sentences look for
those that mean the same. In answer retrieval (ReQA, Ahmad et al. 2019; XQuAD-R, Roy et al. 2020) questions look for the
sentences that answer them; its ranks follow google/retrieval-qa-eval.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import regex
from numpy.typing import NDArray

from st_paragram.core.extras import require
from st_paragram.errors import EvaluationError, short
from st_paragram.tools.evaluation.files import RetrievalSet, packed, read_retrieval_set
from st_paragram.tools.evaluation.scores import DECIMALS, Floats
from st_paragram.tools.neighbors.exact import nearest_neighbors
from st_paragram.tools.neighbors.results import Vectors

Rows = NDArray[np.int64]
Scores = NDArray[np.floating]  # type: ignore[type-arg]

_LANGUAGE = re.compile(r"[a-z]{2}")
_BLOCK, _RANKED = 2048, 512  # queries searched, and questions ranked, at a time
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]|[\p{L}\p{M}\p{N}--\p{Han}\p{Thai}]+", regex.V1)


def retrieval_sets(data: str | Path, semantic: bool) -> dict[str, Path]:
    """The sets in a folder, two levels deep, by name; the folder itself may be one.

    Those named by a language ("es") have the folder around them in their names, "xquad_r/es". With `semantic` those
    whose queries are documents, otherwise the others.
    """
    data = Path(data)
    places = [data] if _is_set(data) else sorted(p for each in ("*", "*/*") for p in data.glob(each) if _is_set(p))
    found = {}
    for place in places:
        name = place.relative_to(data).as_posix() if place != data else data.resolve().name
        if _asks_itself(place) == semantic:
            found[f"{data.resolve().name}/{name}" if _LANGUAGE.fullmatch(name) else name] = place
    return found


def read_set(folder: Path, name: str) -> RetrievalSet:
    """Read the three files of a folder."""
    queries, corpus, qrels = map(_part, [folder] * 3, ("queries", "corpus", "qrels"))
    return read_retrieval_set(queries, corpus, qrels, name)


def language_of(name: str) -> str:
    """The language that a set of several is named by, "es" of "xquad_r/es"; empty if it is not."""
    last = name.rpartition("/")[2]
    return last if "/" in name and _LANGUAGE.fullmatch(last) else ""


def _part(folder: Path, name: str) -> Path:
    return packed(folder / f"{name}.tsv") or folder / f"{name}.tsv"


def _is_set(folder: Path) -> bool:
    return all(packed(folder / f"{name}.tsv") for name in ("queries", "corpus", "qrels"))


def _asks_itself(folder: Path) -> bool:
    from st_paragram.core.text.streams import read_lines

    query = next(iter(read_lines(str(_part(folder, "queries")))), "")
    return any(line.split("\t")[:2] == query.split("\t") for line in read_lines(str(_part(folder, "corpus"))))


def search(queries: Vectors, corpus: Vectors, itself: Sequence[set[int]], cut: int) -> list[list[int]]:
    """The first rows of the corpus for each query by cosine, exactly, without the rows that are the query itself.

    Args:
        queries: float32 (n, D), rows of length 1.
        corpus: float32 (m, D), rows of length 1.
        itself: for each query, rows of the corpus to leave out.
        cut: the most rows of a query.
    """
    wanted = min(cut + max(map(len, itself)), len(corpus))
    ranked: list[list[int]] = []
    for start in range(0, len(queries), _BLOCK):
        for row in nearest_neighbors(queries[start : start + _BLOCK], corpus, wanted).indices.tolist():
            own = itself[len(ranked)]
            ranked.append([each for each in row if each not in own][:cut])
    return ranked


def same_rows(found: RetrievalSet) -> list[set[int]]:
    """For each query the documents that are the query itself, by their id or their very text."""
    by_id, by_text = {key: row for row, key in enumerate(found.corpus)}, defaultdict[str, set[int]](set)
    for row, text in enumerate(found.corpus.values()):
        by_text[text].add(row)
    same = [by_text.get(text, set()) | ({by_id[key]} if key in by_id else set()) for key, text in found.queries.items()]
    for key, own, relevant in zip(found.queries, same, found.relevant, strict=True):
        if own.issuperset(relevant):
            raise EvaluationError(f"{found.name}: query {short(key)} finds only itself; drop it from queries")
    return same


def average_precision(ranked: Sequence[int], relevant: set[int]) -> float:
    """Sum of the precisions at the ranks of relevant documents, divided by the number of all relevant ones.

    As trec_eval counts it, e.g. `map_cut_100` for 100 ranked rows, also where more than 100 are relevant.
    """
    hits = np.isin(ranked, list(relevant))
    precisions = np.cumsum(hits) / np.arange(1, len(ranked) + 1)
    return float(precisions[hits].sum() / len(relevant))


def ranking_measures(ranked: Sequence[int], relevant: Mapping[int, int]) -> dict[str, float]:
    """nDCG@10, recall@10, recall@100 and the reciprocal rank of the first relevant document among ten.

    Gains are the grades, as in trec_eval and BEIR: DCG@10 is the sum of grade / log2(rank + 1) over the first ten
    ranks, nDCG@10 is its share of the DCG of the best order there is.
    """
    gains = [relevant.get(row, 0) for row in ranked[:10]]
    best = sorted(relevant.values(), reverse=True)[:10]
    recall = {cut: sum(row in relevant for row in ranked[:cut]) / len(relevant) for cut in (10, 100)}
    return {
        "nDCG@10": _discounted(gains) / _discounted(best),
        "recall@10": recall[10],
        "recall@100": recall[100],
        "MRR@10": next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0),
    }


def _discounted(gains: Sequence[int]) -> float:
    return float(np.array(gains, np.float64) @ (1 / np.log2(np.arange(len(gains)) + 2)))


def right_ranks(scores: Scores, right: Sequence[Rows]) -> Floats:
    """Rank of the best of the right candidates, from 1 on; those with equal scores share their mean rank.

    Args:
        scores: (b, m).
        right: of each row the candidates that are right.
    """
    best = np.array([row[places].max() for row, places in zip(scores, right, strict=True)])[:, None]
    better, equal = (scores > best).sum(1), (scores == best).sum(1)
    ranks: Floats = better + (equal + 1) / 2
    return ranks


def answer_measures(
    questions: Sequence[str], right: Sequence[Rows], contexts: Sequence[str], scores: Callable[[slice], Scores]
) -> dict[str, float]:
    """P@1 of the sentence, P@1 of its paragraph if all sentences have contexts, and the mean reciprocal rank.

    Of a question asked several times the best rank counts, once. A paragraph is as good as its best sentence.

    Args:
        questions: n texts.
        right: for each question the candidates that are right.
        contexts: of the m candidates.
        scores: of some of the questions and all candidates, (b, m).
    """
    known = all(context.strip() for context in contexts)
    numbers = np.unique(np.array(contexts), return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    starts = np.unique(numbers[order], return_index=True)[1]
    sentences, paragraphs = [], []
    for start in range(0, len(questions), _RANKED):
        block = slice(start, start + _RANKED)
        found = scores(block).round(DECIMALS)
        if not np.isfinite(found).all():
            raise EvaluationError("a score is not finite; the model is broken")
        sentences.append(right_ranks(found, right[block]))
        best = np.maximum.reduceat(found[:, order], starts, axis=1)
        paragraphs.append(right_ranks(best, [np.unique(numbers[rows]) for rows in right[block]]))
    ranks = _once(questions, np.concatenate(sentences))
    paragraph = {"P@1 paragraph": float((_once(questions, np.concatenate(paragraphs)) == 1).mean())} if known else {}
    return {"P@1 sentence": float((ranks == 1).mean()), **paragraph, "MRR": float((1 / ranks).mean())}


def _once(questions: Sequence[str], ranks: Floats) -> Floats:
    """The best rank of each different question."""
    found = dict[str, float]()
    for question, rank in zip(questions, ranks.tolist(), strict=True):
        found[question] = min(rank, found.get(question, rank))
    return np.array(list(found.values()))


def words(text: str) -> list[str]:
    """Runs of letters and digits in lower case; a character of a script written without spaces is a word."""
    return _WORD.findall(text.lower())


def bm25(documents: Sequence[str], questions: Sequence[str]) -> Callable[[slice], Scores]:
    """Scores by words alone (BM25, Robertson et al. 1994; k1 = 1.5, b = 0.75, Lucene's form), by bm25s."""
    module = require("bm25s", "retrieval", "BM25")
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it reports every index
    index = module.BM25(k1=1.5, b=0.75, method="lucene")
    # With a word that no one writes, so that texts without any words can be indexed, too.
    index.index([[*words(text), "\0"] for text in documents], show_progress=False)
    asked = [[word for word in words(text) if word in index.vocab_dict] for text in questions]

    def scores(block: slice) -> Scores:
        return np.stack([index.get_scores(each) if each else np.zeros(len(documents)) for each in asked[block]])

    return scores
