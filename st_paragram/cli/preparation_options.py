"""Options that all commands share which make a pair store."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.cli.executor_options import add_executor_options, executor_from
from st_paragram.errors import SettingsError

if TYPE_CHECKING:
    from st_paragram.cleaning.config import Cleaning
    from st_paragram.preparation.prepare import Prepared, PrepareWork
    from st_paragram.preparation.settings import PrepareSettings
    from st_paragram.tokenizers.sentencepiece import SentencePieceTokenizer


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add options of the store and its vocabulary."""
    add = parser.add_argument_group("store").add_argument
    add("--overwrite", action="store_true", help="replace an output that exists")
    add("--seed", type=int, default=0, help="of the shuffle and the vocabulary (%(default)s)")
    add("--temperature", type=float, default=1.0, help="balance languages: shares ~ pairs ** (1 / T) (%(default)s)")
    add("--max-pieces", type=int, default=100, help="cut sentences at this many pieces (%(default)s)")
    add("--segment", choices=("none", "jieba"), default="none", help="word segmentation of Chinese (%(default)s)")
    add("--keep-case", action="store_true", help="do not lower-case the text")
    add("--drop-invalid", action="store_true", help="drop rows that are not UTF-8, do not stop there")
    add = parser.add_argument_group("vocabulary").add_argument
    add("--vocab", type=Path, metavar="FILE.model", help="use this sentencepiece model, train none")
    add("--vocab-size", type=int, default=50_000, help="pieces to train; little text gives fewer (%(default)s)")
    add("--character-coverage", type=float, help="default 0.9995, and 0.995 with Chinese or Japanese")
    add(
        "--sample-pairs",
        type=int,
        default=300_000,
        help="pairs to train it on, 4 KB of memory each (%(default)s)",
    )
    add("--max-sentence-bytes", type=int, default=4192, help="leave longer sentences out of it (%(default)s)")
    add("--vocab-threads", type=int, default=8, help="threads that train it; they shape it slightly (%(default)s)")


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Add options of how the work is done, which change nothing in the store."""
    add = parser.add_argument_group("work").add_argument
    add("--work", type=Path, metavar="DIR", help="keep results of stages here: later runs redo only what changed")
    add(
        "--force",
        metavar="STAGE",
        help="do this stage (read, clean, deduplicate, plan, vocabulary, encode, store) again, and those after it",
    )
    add("--rejects", type=Path, metavar="DIR", help="write the rows dropped here, one file for each reason")
    add_executor_options(parser)


def settings_from(arguments: argparse.Namespace, languages: tuple[str, str], cleaning: Cleaning) -> PrepareSettings:
    """The settings that the options describe."""
    from st_paragram.preparation.settings import PrepareSettings
    from st_paragram.tokenizers.sentencepiece import Segmentation

    return PrepareSettings(
        languages=languages,
        cleaning=cleaning,
        lower_case=not arguments.keep_case,
        segmentation=Segmentation(arguments.segment),
        drop_invalid=arguments.drop_invalid,
        temperature=arguments.temperature,
        vocab_size=arguments.vocab_size,
        character_coverage=arguments.character_coverage,
        sample_pairs=arguments.sample_pairs,
        max_sentence_bytes=arguments.max_sentence_bytes,
        vocab_threads=arguments.vocab_threads,
        max_pieces=arguments.max_pieces,
        seed=arguments.seed,
    )


def vocabulary_from(arguments: argparse.Namespace, settings: PrepareSettings) -> SentencePieceTokenizer | None:
    """The vocabulary that was given, if one was.

    Raises:
        SettingsError: It cannot be read.
    """
    from st_paragram.tokenizers.sentencepiece import SentencePieceTokenizer

    if arguments.vocab is None:
        return None
    try:
        model = arguments.vocab.read_bytes()
    except OSError as error:
        raise SettingsError(f"{arguments.vocab}: cannot be read ({error.strerror}); give a .model file") from error
    return SentencePieceTokenizer(model, settings.lower_case, settings.segmentation)


def work_from(arguments: argparse.Namespace, folder: Path | None = None) -> PrepareWork:
    """How to go about the work.

    Args:
        arguments: What was given.
        folder: Where results of stages are kept if `--work` does not say.
    """
    from st_paragram.preparation.prepare import PrepareWork

    kept = arguments.work or folder
    executor = executor_from(arguments, kept)
    return PrepareWork(kept, kept is not None, arguments.force, executor, arguments.rejects)


def write_report(prepared: Prepared, output: Path) -> None:
    """Print what was read, dropped and kept, and how long it took."""
    done = [f"{each.name} {each.seconds:.1f}" for each in prepared.times if each.tasks]
    sys.stdout.write(f"{prepared.report.table()}\nseconds: {', '.join(done) or 'none, all was done before'}\n")
    sys.stdout.write(f"{output}: {prepared.report.total.kept:,} pairs\n")
