"""Error rate of finding translations: `python benchmarks/tatoeba.py MODEL... --data DIR [--languages spa deu ...]`.

DIR holds the Tatoeba test sets (Artetxe and Schwenk, TACL 2019) as `spa-eng.tsv`, rows `foreign TAB English`, or as
first published. Instead, `--data FILE.tsv...` scores any files of two columns. Errors are x 100, by nearest neighbour
among all sentences of the other side: by cosine, and by margin (ratio, k = 4). Needs faiss: `st_paragram[mining]`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

from sentence_transformers import SentenceTransformer

from st_paragram.bitext_mining.margin import DEFAULT_K
from st_paragram.cli.main import run_reporting_errors
from st_paragram.data.text import TextSource
from st_paragram.errors import SettingsError
from st_paragram.evaluation.correlation import embed
from st_paragram.evaluation.models import load_model, random_model
from st_paragram.evaluation.published import TATOEBA
from st_paragram.evaluation.record import new_record, write_record
from st_paragram.evaluation.tatoeba import RetrievalScores, retrieval_scores
from st_paragram.evaluation.tatoeba_files import Translations, read_translations, tatoeba_sets
from st_paragram.tables import hundredths, markdown_table

HEAD = (
    "language",
    "pairs",
    "cosine: to English",
    "from English",
    "mean",
    "margin: to",
    "from",
    "mean",
    "accuracy",
    "F1",
)
Scores = dict[str, RetrievalScores]


def main() -> int:
    """Score every model on every language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", nargs="+", required=True, metavar="DIR|FILE.tsv")
    parser.add_argument("--languages", nargs="+", metavar="CODE", help="ISO 639-3 or e.g. es; default: all in DIR")
    parser.add_argument("--k", type=int, default=DEFAULT_K, help="neighbours in a margin's background (%(default)s)")
    parser.add_argument("--untrained", action="store_true", help="add random embeddings, N(0, 1), seed 0")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()

    data = [read_translations(source, code) for code, source in _sources(arguments.data, arguments.languages).items()]
    models: dict[str, Callable[[], SentenceTransformer]] = {}
    if arguments.untrained:
        models["untrained"] = lambda: random_model(load_model(arguments.models[0]))
    models |= {name: lambda name=name: load_model(name) for name in arguments.models}
    print("## Tatoeba: errors x 100 of the nearest neighbour; accuracy and F1 x 100 as mteb counts them\n")
    scores, results = {}, {}
    for name, load in models.items():
        model = load()
        start = time.perf_counter()
        scores[name] = {pairs.language: _score(model, pairs, arguments.k) for pairs in data}
        seconds = time.perf_counter() - start
        print(f"### {name}: {seconds:.1f} s\n\n{_table(scores[name])}\n")
        results[name] = {"seconds": seconds, "languages": {key: row.figures for key, row in scores[name].items()}}
    if shared := [language for language in TATOEBA[0].scores if language in scores[arguments.models[0]]]:
        print(f"## Tatoeba: mean error x 100 by cosine beside published rows\n\n{_published_table(scores, shared)}")
    if arguments.json:
        facts = {"files": arguments.data, "k": arguments.k, "languages": [pairs.language for pairs in data]}
        write_record(new_record("tatoeba", arguments.models, facts, results), arguments.json)
    return 0


def _sources(data: list[str], languages: list[str] | None) -> dict[str, TextSource]:
    if len(data) == 1 and not Path(data[0]).is_file():
        return tatoeba_sets(data[0], languages)
    if languages:
        raise SettingsError("--languages chooses among the test sets of one folder, --data names files; drop one")
    if folders := [path for path in data if Path(path).is_dir()]:
        raise SettingsError(f"--data takes one folder or files; {folders[0]} is a folder among {len(data)} paths")
    stems = [Path(path).stem.removesuffix("-eng") for path in data]
    names = stems if len(set(stems)) == len(stems) else data
    return {name: TextSource((path,), ("first", "second")) for name, path in zip(names, data, strict=True)}


def _score(model: SentenceTransformer, pairs: Translations, k: int) -> RetrievalScores:
    return retrieval_scores(embed(model, pairs.first), embed(model, pairs.second), k)


def _table(scores: Scores) -> str:
    rows = [[language, str(row.pairs), *map(hundredths, _figures(row))] for language, row in scores.items()]
    if len(rows) > 1:
        means = (fmean(column) for column in zip(*map(_figures, scores.values()), strict=True))
        rows.append([f"mean of {len(scores)}", str(sum(row.pairs for row in scores.values())), *map(hundredths, means)])
    return markdown_table(HEAD, rows)


def _figures(row: RetrievalScores) -> list[float]:
    return [*row.cosine.figures.values(), *row.margin.figures.values(), row.accuracy, row.f1]


def _published_table(scores: dict[str, Scores], languages: list[str]) -> str:
    rows = {row.label: [row.scores[language] for language in languages] for row in TATOEBA}
    rows |= {name: [own[language].cosine.mean for language in languages] for name, own in scores.items()}
    cells = [[name, *map(hundredths, row), hundredths(fmean(row))] for name, row in rows.items()]
    return markdown_table(["model", *languages, "mean"], cells)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("tatoeba", main))
