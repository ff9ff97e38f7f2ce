"""`st-paragram score`: score pairs of sentences, and suggest thresholds."""

from __future__ import annotations

import argparse
import sys
from array import array
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from st_paragram.cli.options import (
    add_model_option,
    add_pair_option,
    add_pairs_options,
    check_input,
    is_standard_output,
    model_folder,
    output_name,
    pair_from,
    say,
    standard_output,
)
from st_paragram.core.folders import scratch_folder, temporary_folder
from st_paragram.core.formatting import counted
from st_paragram.core.outputs import check_output, output_files
from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MarginSettings

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource

DESCRIPTION = (
    "Score pairs of sentences. The file (plain, gz, xz, bz2, zip with one file inside, or - for"
    " standard input) has rows `first TAB second`, or is a table whose two columns --columns names,"
    " or TMX or XLIFF, whose languages --pair or a prefix as in en-es:memory.tmx names."
    " The output has rows `score TAB first TAB second` in the same order. The score is the cosine"
    " or, with a background, a margin."
)
EPILOG = """\
A cosine means little by itself, because some sentences are close to everything. A margin compares
it with the pair's background: the mean cosine of both sentences with their nearest neighbors in the
other language (Artetxe and Schwenk, 2019). The cosine is divided by the background (--margin
ratio), or the background is subtracted from it (--margin distance).

A pair with a side that is blank, or in which the model knows no token, has no similarity. Its score
is 0.000000, or -1.000000 with --margin distance. The command prints the number of such pairs.

You choose the sentences in which neighbors are searched. With --background self, these are the two
sides of the file and of the labeled pairs. The partner of a sentence is then one of its neighbors,
as in mining. --background-source and --background-target take two texts with one sentence per line.

  st-paragram score pairs.tsv --output scored.tsv --background self
  st-paragram score pairs.csv --columns english spanish | sort -rn | head
  st-paragram score pairs.tsv --output scored.tsv --background-source mono.en \\
      --background-target mono.es --labels sample.tsv --precision 0.95

With --labels, the command suggests three thresholds: the lowest at which the share of good pairs in
the sample reaches --precision; the lowest at which the lower end of the share's 95% confidence
interval also reaches it ("surely"); and the threshold with the best F1 (the harmonic mean of
precision and recall). The sample must be drawn at random from the file. Recall is the share of the
sample's good pairs that are kept.
"""

_PRECISION = 0.95


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="PAIRS.tsv", help="pairs, rows `first TAB second`")
    add_model_option(parser)
    add_pairs_options(parser)
    add_pair_option(parser)
    margin = parser.add_argument_group(
        "margin (with a background; without one, the score is the cosine)"
    )
    margin.add_argument(
        "--background", choices=("self",), help="use the two sides of the file itself as background"
    )
    margin.add_argument(
        "--background-source", metavar="TEXT", help="background text for the first side"
    )
    margin.add_argument(
        "--background-target", metavar="TEXT", help="background text for the second side"
    )
    add_setting_options(margin, MarginSettings, only=("neighbors", "margin", "index", "memory"))
    threshold = parser.add_argument_group("threshold")
    threshold.add_argument(
        "--labels",
        metavar="GOLD.tsv",
        help="labeled sample, rows `label TAB first TAB second`, 1 for good pairs, 0 for bad pairs",
    )
    threshold.add_argument(
        "--precision",
        type=float,
        help=f"share of good pairs that a threshold must reach (default: {_PRECISION})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Score the pairs and print the counts."""
    from st_paragram.core.text.parallel import with_columns
    from st_paragram.core.text.translation_files import tmx_languages

    settings = _settings(arguments)
    source, pair = _source(arguments)
    output = None if is_standard_output(arguments.output) else arguments.output
    if output:
        tmx_languages(output, pair)
        check_output(output, arguments.overwrite)
    for path in (*source.paths, arguments.background_source, arguments.background_target):
        if path is not None:
            check_input(path)
    (source,) = with_columns([source], arguments.columns)
    folder = model_folder(arguments)

    import numpy as np

    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.tools.bitext_mining.background import background_of_pairs, background_of_texts
    from st_paragram.tools.bitext_mining.threshold import read_labels, suggest, table
    from st_paragram.tools.score_files import cosines, score_file, score_pairs

    sample = list[tuple[str, str]]()
    labels = scores = None
    if arguments.labels:
        sample, labels = read_labels(arguments.labels)
        scores = array("d")
    with ExitStack() as stack:
        stack.enter_context(output_files(output, overwrite=arguments.overwrite))
        model = load_encoder(folder)
        scorer: Any = cosines
        if settings.margin is not Margin.ABSOLUTE:
            if output:
                work = stack.enter_context(temporary_folder(output))
            else:
                work = stack.enter_context(scratch_folder())
            if arguments.background:
                scorer = background_of_pairs(source, folder, settings, work, sample)
            else:
                scorer = background_of_texts(
                    arguments.background_source,
                    arguments.background_target,
                    model=folder,
                    settings=settings,
                    work=work,
                )
        sample_scores = [score for score, _, _ in score_pairs(model, sample, scorer=scorer)]
        target = output or stack.enter_context(standard_output())
        report = score_file(
            model,
            source,
            target,
            overwrite=arguments.overwrite,
            scorer=scorer,
            scores=scores,
            languages=pair,
        )
    unknown = ""
    if report.unknown:
        unknown = f", {report.unknown:,} with a side in which the model knows no token"
    say(
        f"{output_name(output)}: {counted(report.pairs, 'pair')}; {report.blank:,} with a blank"
        f" side{unknown}"
    )
    if labels is not None and scores is not None:
        precision = arguments.precision or _PRECISION
        thresholds = suggest(np.round(sample_scores, 6), labels, precision, np.frombuffer(scores))
        print(table(thresholds), file=sys.stderr if output is None else sys.stdout)
    return 0


def _source(arguments: argparse.Namespace) -> tuple[TextSource, tuple[str, str] | None]:
    """Return the pairs and their languages, if `--pair` or a prefix of the file names them."""
    from st_paragram.core.text.parallel import parse_source, prefix_of, source_of

    languages = pair_from(arguments)
    if languages is None:
        return source_of(arguments.file), prefix_of(arguments.file)
    return parse_source(arguments.file, languages), languages


def _settings(arguments: argparse.Namespace) -> MarginSettings:
    """Return the settings; without a background, the margin is ABSOLUTE."""
    precision = arguments.precision
    if precision is not None:
        if not 0 < precision <= 1:
            raise SettingsError(f"precision is {precision}; it must be above 0 and at most 1")
        if not arguments.labels:
            raise SettingsError(
                "--precision needs a labeled sample; give --labels, or leave it out"
            )
    source = arguments.background_source is not None
    target = arguments.background_target is not None
    if source != target or (source and arguments.background):
        raise SettingsError(
            "give --background self, or both --background-source and --background-target"
        )
    values = given(arguments, MarginSettings)
    if not (source or arguments.background):
        settings = MarginSettings(**{"margin": Margin.ABSOLUTE, **values})
        needing = [name for name in values if name != "margin"]
        if settings.margin is not Margin.ABSOLUTE:
            needing.append(f"margin {settings.margin.value}")
        for option in needing:
            raise SettingsError(f"--{option} needs a background; give --background self")
        return settings
    settings = MarginSettings(**values)
    if settings.margin is Margin.ABSOLUTE:
        raise SettingsError("--margin absolute uses no background; leave one out")
    return settings
