"""Options that all commands share which make a pair store."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.files import folder_for_file
from st_paragram.core.settings import add_setting_options, given
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import add_no_checks
from st_paragram.tools.options.executor import add_executor_options, executor_from

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
    from st_paragram.tools.cleaning.config import Cleaning
    from st_paragram.tools.preparation.prepare import Prepared, PrepareWork
    from st_paragram.tools.preparation.settings import PrepareSettings

_OF_THE_VOCABULARY = ("vocab_size", "character_coverage", "sample_pairs", "max_sentence_bytes", "vocab_threads")

# Measured with the default filters on two cores (docs/data.md, "Speed and memory"), a vocabulary of 50,000 pieces.


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add options of the store and its vocabulary."""
    from st_paragram.tools.preparation.settings import PrepareSettings

    group = parser.add_argument_group("store")
    group.add_argument("--overwrite", action="store_true", help="replace an existing output")
    add_setting_options(group, PrepareSettings, leave_out=_OF_THE_VOCABULARY)
    group = parser.add_argument_group("vocabulary")
    group.add_argument(
        "--vocab", type=Path, metavar="FILE.model", help="sentencepiece model to use instead of training one"
    )
    add_setting_options(group, PrepareSettings, only=_OF_THE_VOCABULARY)


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Add options of how the work is done, which change nothing in the store."""
    add = parser.add_argument_group("work").add_argument
    add(
        "--work",
        type=Path,
        metavar="DIR",
        help="folder for the results of all stages; later runs redo only what has changed",
    )
    add(
        "--force",
        metavar="STAGE",
        help="stage to repeat, with all later stages: read, clean, deduplicate, plan, vocabulary, encode or store",
    )
    add(
        "--rejects",
        type=Path,
        metavar="DIR",
        help="folder for dropped rows, one file per reason",
    )
    add(
        "--keep-text",
        type=Path,
        metavar="DIR",
        help="folder for the text of the pairs, in order, in a.txt and b.txt, for a teacher to embed",
    )
    add_executor_options(parser)
    add_no_checks(parser)


def settings_from(arguments: argparse.Namespace, languages: tuple[str, str], cleaning: Cleaning) -> PrepareSettings:
    """The settings that the options describe.

    Raises:
        SettingsError: One of them is refused.
    """
    from st_paragram.tools.preparation.settings import PrepareSettings

    return PrepareSettings(languages, cleaning, **given(arguments, PrepareSettings))


def vocabulary_from(arguments: argparse.Namespace, settings: PrepareSettings) -> SentencePieceTokenizer | None:
    """The vocabulary that was given, if one was.

    Raises:
        SettingsError: It cannot be read.
    """
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer

    if arguments.vocab is None:
        return None
    if wrong := folder_for_file(arguments.vocab, "a .model file"):
        raise SettingsError(f"{wrong}; name the file")
    try:
        model = arguments.vocab.read_bytes()
    except OSError as error:
        raise SettingsError(f"{arguments.vocab}: cannot be read ({error.strerror}); give a .model file") from error
    try:
        return SentencePieceTokenizer(model, settings.lower_case, settings.segmentation)
    except SettingsError as error:
        raise SettingsError(f"{arguments.vocab}: {error}") from error


def work_from(arguments: argparse.Namespace, folder: Path | None = None) -> PrepareWork:
    """How to go about the work.

    Args:
        arguments: What was given.
        folder: Where the results of stages are kept if `--work` does not say.
    """
    from st_paragram.tools.preparation.prepare import PrepareWork

    kept = arguments.work or folder
    executor = executor_from(arguments, kept)
    return PrepareWork(
        kept, kept is not None, arguments.force, executor, arguments.rejects, keep_text=arguments.keep_text
    )


def check_texts(arguments: argparse.Namespace, sources: Sequence[TextSource]) -> None:
    """Warn of what in texts looks like a mistake, unless `--no-checks` is given."""
    from st_paragram.tools.checks.suspicions import warn_of_suspicions

    if not arguments.no_checks:
        warn_of_suspicions(sources)


def write_report(prepared: Prepared, output: Path) -> None:
    """Print what was read, dropped and kept, and how long it took."""
    seconds: defaultdict[str, float] = defaultdict(float)  # of all stages of a name
    for each in prepared.times:
        if each.tasks:
            seconds[each.name] += each.seconds
    done = [f"{name} {spent:.1f}" for name, spent in seconds.items()]
    sys.stdout.write(f"{prepared.report.table()}\nseconds: {', '.join(done) or 'none, all was done before'}\n")
    sys.stdout.write(f"{output}: {prepared.report.total.kept:,} pairs\n")
