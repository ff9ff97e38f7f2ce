r"""Style transfer: a generative model expresses the meaning of one sentence in the style of
another.

    python benchmarks/style_transfer.py bgt-es --pairs pairs.tsv --to en

Rows of the file are `source TAB style`: sources in either language of the model, styles in the
output language. Prints a Markdown table of the outputs, with the cosine between output and source,
the shares of output words that occur in source and style, the ratio of the smaller to the larger
number of words in output and style, and F1 of the style's punctuation marks; and the means.
"""

from __future__ import annotations

import argparse
import string
import sys
from collections import Counter
from typing import cast

from st_paragram import GenerativeEncoder, load
from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import markdown_table
from st_paragram.core.model_directory.find import SHIPPED
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.text.parallel import TextSource, read_pairs
from st_paragram.families.bgt.generate import generate
from st_paragram.families.bgt.settings import GenerationSettings
from st_paragram.tools.score_files import score_pairs

COLUMNS = [
    "cosine with source",
    "words of source",
    "words of style",
    "length of style",
    "marks of style",
]


def measures(output: str, source: str, style: str) -> list[float]:
    """All but the cosine, each 0 to 1."""
    plain = str.maketrans("", "", string.punctuation)
    words, of_source, of_style = (
        Counter(text.casefold().translate(plain).split()) for text in (output, source, style)
    )
    marks, wanted = (
        Counter(mark for mark in text if mark in string.punctuation) for text in (output, style)
    )
    lengths = sorted((words.total(), of_style.total()))
    return [
        *((words & other).total() / max(words.total(), 1) for other in (of_source, of_style)),
        lengths[0] / max(lengths[1], 1),
        2 * (marks & wanted).total() / ((marks + wanted).total() or 1) if marks or wanted else 1.0,
    ]


def main() -> int:
    """Generate, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", metavar="MODEL", help="model directory from st-paragram train bgt")
    parser.add_argument(
        "--pairs", required=True, metavar="FILE.tsv", help="rows `source TAB style`"
    )
    parser.add_argument("--to", metavar="LANG", help="output language (default: the model's first)")
    parser.add_argument(
        "--scorer", default=SHIPPED, metavar="MODEL", help="model for the cosines (%(default)s)"
    )
    add_setting_options(parser, GenerationSettings)
    arguments = parser.parse_args()
    settings = GenerationSettings(**given(arguments, GenerationSettings))
    rows = [
        pair
        for pair in read_pairs(TextSource((arguments.pairs,), ("source", "style")))
        if all(map(str.strip, pair))
    ]
    model = cast("GenerativeEncoder", load(arguments.model))
    outputs = list(generate(model, "transfer", rows, target=arguments.to, settings=settings))
    compared = ((output, source) for output, (source, _) in zip(outputs, rows, strict=True))
    cosines = [score for score, _, _ in score_pairs(load(arguments.scorer), compared)]
    texts = [[*row, output] for row, output in zip(rows, outputs, strict=True)]
    found = [
        [cosine, *measures(text[2], *text[:2])] for cosine, text in zip(cosines, texts, strict=True)
    ]
    made = [
        [*text, *(f"{value:.2f}" for value in values)]
        for text, values in zip(texts, found, strict=True)
    ]
    means = [f"{sum(column) / len(column):.3f}" for column in zip(*found, strict=True)]
    print(markdown_table(["source", "style", "output", *COLUMNS], made, left=3))
    print(f"\nMeans of {len(found)} pairs\n")
    print(markdown_table(COLUMNS, [means] if means else []))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("style_transfer", main))
