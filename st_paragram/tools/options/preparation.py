"""Options that all commands share which make a pair store."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.core.files import folder_for_file
from st_paragram.core.plan import Needs, Plan
from st_paragram.core.settings import add_setting_options, given
from st_paragram.core.words import listed
from st_paragram.errors import SettingsError
from st_paragram.tools.options.common import add_no_checks, add_plan_option
from st_paragram.tools.options.executor import add_executor_options, executor_from

if TYPE_CHECKING:
    from st_paragram.core.text.parallel import TextSource
    from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
    from st_paragram.tools.cleaning.config import Cleaning
    from st_paragram.tools.preparation.prepare import Prepared, PrepareWork
    from st_paragram.tools.preparation.settings import PrepareSettings

_OF_THE_VOCABULARY = ("vocab_size", "character_coverage", "sample_pairs", "max_sentence_bytes", "vocab_threads")

# Measured with the default filters on two cores (docs/data.md, "Speed and memory"), a vocabulary of 50,000 pieces.
_PAIRS_A_SECOND, _PAIRS_A_SECOND_BY_MORE = 21_500, 28_000  # by one process; by two, and no more cores than that
_MEMORY = 245 * 10**6  # of a process
_VOCABULARY_SECONDS_A_PAIR, _VOCABULARY_MEMORY_A_PAIR = 58 / 300_000, 4000
_LANGUAGE_SECONDS_A_PAIR = 75e-6
_COPIES_OF_THE_TEXT = 4  # in the work folder; and one for each band of near duplicates
_STORED_A_PAIR = 92  # bytes: two sentences of 19 ids of 2 bytes, and two offsets


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
    add_plan_option(parser)


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


def preparation_plan(
    arguments: argparse.Namespace,
    sources: Sequence[TextSource],
    output: Path,
    settings: PrepareSettings,
    vocabulary: SentencePieceTokenizer | None,
    work: PrepareWork,
    coming: Mapping[TextSource, str] | None = None,
) -> Plan:
    """What a preparation would do.

    Args:
        arguments: What was given.
        sources: The texts.
        output: The store.
        settings: Of the preparation.
        vocabulary: The one that was given.
        work: How to go about it.
        coming: More texts, which are still to be downloaded, each with where it comes from.

    Raises:
        ParagramError: `prepare` would refuse it before or at the first rows of a text.
    """
    from st_paragram.tools.options.plans import PlannedText, planned_pairs, planned_work, planned_workers, total
    from st_paragram.tools.preparation.prepare import check_preparation

    coming = coming or {}
    checked = dataclasses.replace(settings, cleaning=_without_hub_models(settings.cleaning))
    check_preparation(sources, output, checked, vocabulary, arguments.overwrite, work, list(coming))
    texts = [planned_pairs(source, settings.drop_invalid) for source in sources]
    texts += [PlannedText(f"{source.name}: to be downloaded, {where}") for source, where in coming.items()]
    pairs, cleaning = total(text.rows for text in texts), settings.cleaning
    makes = [f"{output}: the pair store", planned_work(work, output)]
    if work.rejects:
        makes.append(f"{work.rejects}: the rows that were dropped")
    if work.keep_text:
        makes.append(f"{work.keep_text}: the text of the pairs, a.txt and b.txt")
    filters = [step.name for step in cleaning.steps] or ["none"]
    how = [
        f"languages {'-'.join(settings.languages)}, filters: {listed(filters)}",
        _vocabulary_in_words(arguments, settings, pairs),
        planned_workers(work.executor, [path for source in sources for path in source.paths]),
    ]
    needs = _needs(settings, total(text.bytes for text in texts), pairs, vocabulary is not None, work.workers)
    return Plan("prepare a pair store", [text.line for text in texts], makes, how, needs)


def _without_hub_models(cleaning: Cleaning) -> Cleaning:
    """The steps that can be made without fetching a model."""
    score = "paraphrase_score"
    steps = [step for step in cleaning.steps if step.name != score or _is_here(step.options.get("model"))]
    return dataclasses.replace(cleaning, steps=tuple(steps))


def _is_here(model: str | None) -> bool:
    from st_paragram.core.encoding.find import find_here

    return model is None or find_here(model) is not None


def _vocabulary_in_words(arguments: argparse.Namespace, settings: PrepareSettings, pairs: int | None) -> str:
    if arguments.vocab:
        return f"the vocabulary {arguments.vocab}"
    sample = f"trained on at most {settings.sample_pairs:,} pairs"
    if pairs is None and settings.vocab_size is None:
        return f"a vocabulary of {settings.tokens}, {sample}"
    return f"a vocabulary of at most {settings.pieces(pairs or 0):,} entries ({settings.tokens}), {sample}"


def _needs(
    settings: PrepareSettings, text: int | None, pairs: int | None, vocabulary_given: bool, workers: int
) -> Needs:
    """What a preparation takes; `text` in bytes, unpacked."""
    near = settings.cleaning.near_duplicates
    disk = seconds = None
    memory = workers * _MEMORY
    trained = settings.tokens == "sentencepiece" and not vocabulary_given
    if trained:
        memory = max(memory, _VOCABULARY_MEMORY_A_PAIR * min(pairs or settings.sample_pairs, settings.sample_pairs))
    if pairs is not None:
        seconds = pairs / (_PAIRS_A_SECOND if workers == 1 else _PAIRS_A_SECOND_BY_MORE)
        seconds += trained * _VOCABULARY_SECONDS_A_PAIR * min(pairs, settings.sample_pairs)
        if any(step.name == "language" for step in settings.cleaning.steps):
            seconds += _LANGUAGE_SECONDS_A_PAIR * pairs / workers
    if pairs is not None and text is not None:
        disk = (_COPIES_OF_THE_TEXT + (near.bands if near else 0)) * text + _STORED_A_PAIR * pairs
    return Needs(seconds, memory, disk)


def write_report(prepared: Prepared, output: Path) -> None:
    """Print what was read, dropped and kept, and how long it took."""
    seconds: defaultdict[str, float] = defaultdict(float)  # of all stages of a name
    for each in prepared.times:
        if each.tasks:
            seconds[each.name] += each.seconds
    done = [f"{name} {spent:.1f}" for name, spent in seconds.items()]
    sys.stdout.write(f"{prepared.report.table()}\nseconds: {', '.join(done) or 'none, all was done before'}\n")
    sys.stdout.write(f"{output}: {prepared.report.total.kept:,} pairs\n")
