"""The best language to learn English from: vocabulary overlap and STS, as in figure 1 and table 5
of SP (ACL 2019).

    python benchmarks/language_choice.py --data eval \
        --text es=en-es.tsv fr=en-fr.tsv de=en-de.tsv ar=en-ar.tsv

Only rows whose English side occurs in all languages are used for training, so that only the
translations differ. Each language has a separate vocabulary. Either its pieces share rows with
equal English pieces (string), or no rows are shared (disjoint). The score is the mean of all sets
of STS 2012-2016, Pearson x 100 of the English side.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import cast

import numpy as np
from harness.output import print_growing
from harness.processes import command
from scipy.stats import pearsonr, permutation_test, spearmanr

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.models import load_encoder
from st_paragram.core.formatting import markdown_table
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import parse_source, read_pairs
from st_paragram.core.text.streams import read_lines
from st_paragram.core.tokenizers.bilingual import BilingualTokenizer
from st_paragram.errors import EvaluationError, TextError

PREPARE = ["--character-coverage", "0.9995", "--no-checks"]
TRAIN = ["--config", "sp2019", "--megabatch-size", "20", "--anneal-interval", "25"]


def same_english(texts: dict[str, str], folder: Path) -> dict[str, Path]:
    """Write a text for each language with the rows whose English all have, in one order, with one
    translation each.
    """
    rows = {
        language: dict(read_pairs(parse_source(text, ("en", language))))
        for language, text in texts.items()
    }
    common = sorted(set.intersection(*map(set, rows.values())))
    if len(common) < 100:
        raise TextError(
            f"{len(common)} English sentences in common among {', '.join(texts)}; give other texts"
        )
    files = {language: folder / f"en-{language}.tsv" for language in rows}
    for language, file in files.items():
        file.write_text(
            "".join(f"{english}\t{rows[language][english]}\n" for english in common),
            encoding="utf-8",
        )
    return files


def overlap(english: BilingualTokenizer, language: str) -> float:
    """Return the share of English tokens that are also tokens of the language."""
    first, second = (
        {each.piece(row) for row in range(len(each))}
        for each in (english, english.in_language(language))
    )
    return len((first & second) - {None}) / len(first - {None})


def sts(model: Path, data: Path) -> float:
    """Return the mean of Pearson's correlation x 100 over the sets of STS 2012-2016."""
    encoder, found = load_encoder(model), []
    for path in sorted(data.glob("sts201[2-6]/*.tsv")):
        grades, first, second = zip(
            *(line.split("\t") for line in read_lines(str(path))), strict=True
        )
        a, b = (encoder.encode(list(side), normalize_embeddings=True) for side in (first, second))
        found.append(
            100 * float(pearsonr(np.einsum("nd,nd->n", a, b), np.array(grades, float)).statistic)
        )
    return fmean(found)


def correlation(name: str, first: list[float], second: list[float]) -> list[str]:
    """Return Spearman's correlation x 100, the number of values, and the share of permutations as
    far from 0.
    """
    test = permutation_test(
        (first,), lambda x: spearmanr(x, second).statistic, permutation_type="pairings", rng=0
    )
    return [name, f"{100 * test.statistic:.1f}", str(len(first)), f"{test.pvalue:.3f}"]


def main() -> int:
    """Train, score, correlate and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--data",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder with sts2012/MSRpar.tsv, ...",
    )
    add(
        "--text",
        nargs="+",
        required=True,
        metavar="LANG=FILE",
        help="parallel texts, English first",
    )
    add(
        "--distances",
        metavar="FILE",
        help="rows `LANG TAB distance from English`, such as those of URIEL",
    )
    add("--seeds", nargs="+", type=int, default=[1, 2, 3], help="(%(default)s)")
    add("--vocab-size", default=4000, help="tokens per language (%(default)s; the paper: 20,000)")
    add("--epochs", default=20, help="(%(default)s)")
    arguments = parser.parse_args()
    if not any(arguments.data.glob("sts201[2-6]/*.tsv")):
        raise EvaluationError(
            f"{arguments.data}: no STS files; add files such as sts2012/MSRpar.tsv"
        )
    scores: dict[str, dict[str, float]] = {"string": {}, "disjoint": {}}
    overlaps: dict[str, float] = {}

    def rows(folder: Path) -> Iterator[list[str]]:
        texts = dict(each.split("=", 1) for each in arguments.text)
        for language, text in same_english(texts, folder).items():
            cells = []
            for sharing, means in scores.items():
                store, model, found = folder / f"{language}.{sharing}.h5", folder / "model", []
                options = [
                    "--sharing",
                    sharing,
                    "--vocab-size",
                    arguments.vocab_size,
                    "--output",
                    store,
                    *PREPARE,
                ]
                command("prepare", "--lang", language, "--text", text, *options).run()
                for seed in arguments.seeds:
                    options = [
                        "--output",
                        model,
                        "--overwrite",
                        "--epochs",
                        arguments.epochs,
                        "--seed",
                        str(seed),
                    ]
                    command(
                        "train", "bitext", "--lang", language, "--data", store, *TRAIN, *options
                    ).run()
                    found.append(sts(model, arguments.data))
                means[language] = fmean(found)
                cells.append(f"{fmean(found):.1f} ({min(found):.1f} - {max(found):.1f})")
            tokenizer = cast(
                "BilingualTokenizer", PairStore(folder / f"{language}.string.h5").tokenizer()
            )
            overlaps[language] = overlap(tokenizer, language)
            yield [language, f"{overlaps[language]:.3f}", *cells]

    with tempfile.TemporaryDirectory() as folder:
        print_growing(
            ["language", "overlap", "STS, string: mean (range)", "STS, disjoint"],
            rows(Path(folder)),
        )
    distances = (
        dict(line.split("\t") for line in read_lines(arguments.distances))
        if arguments.distances
        else {}
    )
    measures = {"overlap": overlaps}
    if distances:
        measures["distance"] = {language: float(distances[language]) for language in overlaps}
    table = []
    for name, values in measures.items():
        table += [
            correlation(f"{name}, {key}", [*values.values()], [*means.values()])
            for key, means in scores.items()
        ]
    print(f"\n{markdown_table(['with STS', 'Spearman x 100', 'languages', 'p'], table)}")
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("language_choice", main))
