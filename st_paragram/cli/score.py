"""`st-paragram score`: scores of pairs of sentences, and where to cut them."""

from __future__ import annotations

import argparse
import sys
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from st_paragram.core.files import check_output, output_files
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.margin import Margin
from st_paragram.tools.bitext_mining.settings import MarginSettings
from st_paragram.tools.options.common import (
    add_model_option,
    check_input,
    is_standard_output,
    model_folder,
    output_name,
    say,
    standard_output,
)

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.tools.bitext_mining.score_report import LabelledPairs
    from st_paragram.tools.score_files import Scorer

DESCRIPTION = (
    "Score pairs of sentences. The file (plain, gz, xz, bz2, zip with one file inside, or - for standard input) has "
    "rows `first TAB second`, or is a table of which --columns names two columns. The output has rows `score TAB "
    "first TAB second` in the same order. The score is the cosine or, with a background, a margin."
)
EPILOG = """\
A cosine means little by itself, because some sentences are close to everything. A margin compares it with the mean
cosine of both sentences with their k nearest neighbors of the other language, which is called the background of the
pair (Artetxe and Schwenk, 2019). The cosine is divided by that mean (--margin ratio), or the mean is subtracted from it
(--margin distance).

The neighbors are looked for in sentences of both languages that you name. With --background self, these are the two
sides of the file, and of the labeled pairs. The partner of a sentence is then one of its neighbors, as in mining.
--background-source and --background-target take two texts with one sentence on each line, or two folders that
`st-paragram index` has made, which saves embedding the texts each time.

  st-paragram score pairs.tsv --output scored.tsv --background self --sort
  st-paragram score pairs.csv --columns english spanish | sort -rn | head
  st-paragram score pairs.tsv --output scored.tsv --background-source mono.en --background-target mono.es \\
      --labels sample.tsv --precision 0.95 --plot scores.png

With --labels, the command suggests three thresholds: the lowest one at which the share of good pairs in the sample
reaches --precision; the lowest one at which the lower end of the 95 % interval of that share reaches it, too
("surely"); and the one with the best F1 (the harmonic mean of precision and recall). The sample must be drawn at random
from the file. Recall is the share of the sample's good pairs that are kept.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("file", metavar="PAIRS.tsv", help="the pairs, rows `first TAB second`")
    add_model_option(parser)
    add(
        "--columns",
        nargs=2,
        metavar="NAME",
        help="for a table (CSV, JSON lines, Parquet, or TSV with a header): columns of the two sentences, by "
        "name; numbers from 1 for a CSV or TSV without a header",
    )
    add("--output", metavar="Y.tsv", help="output file (default, and `-`: standard output)")
    add("--overwrite", action="store_true", help="replace existing outputs")
    add(
        "--sort",
        action="store_true",
        help="write the best pairs first (takes 40 bytes of memory per pair, and twice the disk space)",
    )
    margin = parser.add_argument_group("margin (with a background; without one, the score is the cosine)")
    add = margin.add_argument
    add("--background", choices=("self",), help="use the two sides of the file itself as background")
    add(
        "--background-source",
        metavar="TEXT",
        help="background of the first side: a text, or a folder from st-paragram index",
    )
    add("--background-target", metavar="TEXT", help="background of the second side")
    add_setting_options(margin, MarginSettings, only=("margin", "k", "index", "memory"))
    add = parser.add_argument_group("threshold").add_argument
    add(
        "--labels",
        metavar="GOLD.tsv",
        help="labeled sample, rows `label TAB first TAB second`, 1 for good pairs, 0 for bad pairs",
    )
    add(
        "--precision",
        type=float,
        default=0.95,
        help="share of good pairs that a threshold must reach (default: %(default)s)",
    )
    add("--plot", type=Path, metavar="FILE.png", help="file for a histogram of the scores")


def run(arguments: argparse.Namespace) -> int:
    """Score the pairs and say what was done.

    Raises:
        ParagramError: Text, model, settings or output are refused.
    """
    settings = _settings(arguments)
    labelled = _check_files(arguments)
    folder = model_folder(arguments)
    with output_files(_file(arguments), arguments.plot, overwrite=arguments.overwrite):
        return _score(arguments, settings, labelled, folder)


def _file(arguments: argparse.Namespace) -> Path | None:
    """The file to make; None for standard output."""
    return None if is_standard_output(arguments.output) else Path(arguments.output)


def _source(arguments: argparse.Namespace) -> TextSource:
    """The pairs.

    Raises:
        TextError: They are a table, and no columns are named.
    """
    from st_paragram.core.text.parallel import TextSource, with_columns

    source = TextSource((arguments.file,), ("first", "second"))
    return with_columns([source], [arguments.columns] if arguments.columns else [])[0]


def _score(
    arguments: argparse.Namespace, settings: MarginSettings, labelled: LabelledPairs | None, folder: Path
) -> int:
    import numpy as np

    from st_paragram.core.encoding.models import load_encoder
    from st_paragram.tools.score_files import score_file, score_pairs, score_to_stream

    source, output = _source(arguments), _file(arguments)
    model = load_encoder(folder)
    kept = array("d") if arguments.plot or labelled else None
    sample = None
    with _scorer(arguments, source, folder, settings, labelled.pairs if labelled else []) as scorer:
        if labelled:
            sample = np.round([score for score, _, _ in score_pairs(model, labelled.pairs, scorer=scorer)], 6)
        if output is None:
            with standard_output() as stream:
                report = score_to_stream(model, source, stream, scorer, kept, arguments.sort)
        else:
            report = score_file(model, source, output, arguments.overwrite, scorer, kept, arguments.sort)
    say(f"{output_name(output)}: {counted(report.pairs, 'pair')}; {report.blank:,} with a blank side")
    if kept is None:
        return 0
    from st_paragram.tools.bitext_mining.score_report import plot, suggest, table

    scores = np.frombuffer(kept)
    cuts = suggest(sample, labelled.right, arguments.precision, scores) if labelled and sample is not None else []
    if cuts:
        print(table(cuts), file=sys.stderr if output is None else sys.stdout)
    if arguments.plot:
        label = f"{settings.margin.value} margin, k = {settings.k}" if _has_background(arguments) else "cosine"
        plot(scores, arguments.plot, label, cuts, sample, labelled.right if labelled else None)
        say(f"{arguments.plot}: histogram of {counted(len(scores), 'score')}")
    return 0


def _check_files(arguments: argparse.Namespace) -> LabelledPairs | None:
    """Refuse files that are not there, or must not be replaced; returns the labeled pairs, if there are any."""
    if output := _file(arguments):
        check_output(output, arguments.overwrite)
    if arguments.plot:
        from st_paragram.core.figures import check_plots

        check_plots()
        check_output(arguments.plot, arguments.overwrite)
    check_input(arguments.file)
    _source(arguments)  # a table without names of columns is refused before a model is loaded
    for background in (arguments.background_source, arguments.background_target):
        if background and not Path(background).is_dir():  # an index folder
            check_input(background)
    if not arguments.labels:
        return None
    from st_paragram.tools.bitext_mining.score_report import read_labels

    return read_labels(arguments.labels)


def _work(output: Path) -> Path:
    """The folder for the background, next to the output."""
    return output.with_name(f".{output.name}.work")


def _has_background(arguments: argparse.Namespace) -> bool:
    return bool(arguments.background or arguments.background_source or arguments.background_target)


def _settings(arguments: argparse.Namespace) -> MarginSettings:
    files = arguments.background_source, arguments.background_target
    if not 0 < arguments.precision <= 1:
        raise SettingsError(f"precision is {arguments.precision}; give a share above 0, at most 1")
    if any(files) and not all(files):
        raise SettingsError("a background has two sides; give both --background-source and --background-target")
    if any(files) and arguments.background:
        raise SettingsError("--background self and background texts exclude each other; give one")
    values = given(arguments, MarginSettings)
    settings = MarginSettings(**({} if _has_background(arguments) else {"margin": Margin.ABSOLUTE}) | values)
    if settings.margin is not Margin.ABSOLUTE and not _has_background(arguments):
        raise SettingsError(
            f"--margin {settings.margin.value} needs a background; give --background self, or --background-source and "
            "--background-target"
        )
    if settings.margin is Margin.ABSOLUTE and _has_background(arguments):
        raise SettingsError("--margin absolute uses no background; leave one of the two out")
    return settings


@contextmanager
def _scorer(
    arguments: argparse.Namespace,
    source: TextSource,
    model: Path,
    settings: MarginSettings,
    others: list[tuple[str, str]],
) -> Iterator[Scorer]:
    if not _has_background(arguments):
        from st_paragram.tools.score_files import cosines

        yield cosines
        return
    from st_paragram.tools.bitext_mining import background

    with ExitStack() as stack:
        output = _file(arguments) or Path(stack.enter_context(TemporaryDirectory(prefix="st-paragram-")), "scores")
        work = _work(output)
        if arguments.background:
            yield stack.enter_context(background.of_pairs(source, model, settings, work, others))
        else:
            texts = arguments.background_source, arguments.background_target
            yield stack.enter_context(background.opened(*texts, model, settings, work))
