"""`st-paragram train`: train a model of one of the families."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from st_paragram.cli.options import (
    add_language_options,
    add_no_checks,
    add_task_options,
    check_tasks,
    languages_from,
    name_of_languages,
    task_folders,
)
from st_paragram.core.settings import add_setting_options, given, read_yaml
from st_paragram.errors import SettingsError, TextError

if TYPE_CHECKING:
    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.runs.run import TrainingRun

DESCRIPTION = (
    "Train a model. KIND is the kind of training (default: bitext). `st-paragram train KIND --help`"
    " shows the options of each kind."
)
EPILOG = ""

_CONTINUE = "Ctrl-C saves a checkpoint, and the same command with --resume continues from it.\n"
_BITEXT_EPILOG = f"""\
  st-paragram bitext --lang es          # makes data/en-es.h5 from public bitext
  st-paragram train bitext --lang es    # makes the model directory p-sp-es
  st-paragram train bitext --lang es --data mine.tsv.xz --config small --dim 500
  st-paragram train bitext --pair fr de --data mine.tsv.xz    # no English: p-sp-fr-de
  st-paragram train bitext --lang es --data mine.tsv.xz --encoder trigram --config sp2019
  st-paragram embed p-sp-es lines.txt --output lines.npy

{_CONTINUE}"""
_PARAPHRASE_EPILOG = f"""\
  st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
  st-paragram train paraphrase          # makes the model directory p-sp-en
  st-paragram embed p-sp-en lines.txt --output lines.npy

{_CONTINUE}"""
_BGT_EPILOG = f"""\
  st-paragram train bgt --lang es --data mine.tsv.xz    # makes bgt-es in about an hour
  st-paragram train bgt --lang fr --config bgt_paper    # the paper's sizes, for a GPU
  st-paragram train bgt --lang es --objective bilingual-trans --output trans-es
  st-paragram generate bgt-es --task translate --from en --to es FILE

{_CONTINUE}"""
_MUSE_EPILOG = f"""\
  st-paragram train muse --langs es de --bitext data/en-de-es.h5 --init p-sp-mul --dim 1024
  st-paragram train muse --architecture transformer --langs es --bitext texts --qa qa --nli nli
  st-paragram evaluate muse-cnn --data eval --benchmarks answer-retrieval nli

A folder for --bitext has files en-LANG.tsv. The folders of the other tasks have files LANG.tsv.
All files may also end in .gz or .xz. `data_prep/muse_data.py` makes such files from public data
sets.

{_CONTINUE}"""

_LANG = "language other than English, e.g. es"
_PAIRS = (
    "a pair store (.h5), a two-column text (repeatable), or `built-in` (default: data/en-{}.h5, or"
    " the built-in bitext if it does not exist)"
)
_BITEXT = (
    "a pair store (.h5) of all languages, a folder of files en-LANG.tsv (also .gz, .xz), texts"
    " LANG-LANG:FILE (repeatable), or `built-in` for one language (default: data/en-LANG.h5, or"
    " the built-in bitext if it does not exist)"
)


# Kinds of training.


def add_bitext_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of P-SP and SP on bitext."""
    parser.description = (
        "Train a model on sentences and their translations. It embeds a sentence as the mean of"
        " its tokens."
    )
    parser.epilog = _BITEXT_EPILOG
    add_language_options(parser, _LANG)
    _add_data_options(
        parser,
        data=_PAIRS.format("LANG"),
        output="p-sp-LANG; ENCODER-LANG with another --encoder",
    )
    settings = _add_settings(parser, "psp")
    about = (
        "train a model for each point of the paper's grid of dropout and M, and keep the best"
        " model; a given --dropout or --megabatch-size is kept"
    )
    settings.add_argument("--tune", action="store_true", help=about)


def add_paraphrase_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of P-SP and SP on English paraphrases."""
    parser.description = (
        "Train a model on English sentences and paraphrases. It embeds a sentence as the mean of"
        " its tokens."
    )
    parser.epilog = _PARAPHRASE_EPILOG
    _add_data_options(
        parser,
        data=_PAIRS.format("en"),
        output="p-sp-en; ENCODER-en with another --encoder",
    )
    _add_settings(parser, "psp", default_config="paraphrase")


def bitext_run(arguments: argparse.Namespace) -> TrainingRun:
    """Return the run of P-SP or SP on bitext that the options describe."""
    return _paraphrastic_run(arguments, languages_from(arguments))


def paraphrase_run(arguments: argparse.Namespace) -> TrainingRun:
    """Return the run of P-SP or SP on paraphrases that the options describe."""
    return _paraphrastic_run(arguments, ("en", "en"))


def _paraphrastic_run(arguments: argparse.Namespace, languages: tuple[str, str]) -> TrainingRun:
    encoder = getattr(arguments, "encoder", "sp")
    name = "p-sp" if encoder == "sp" else encoder
    return _training_run(
        arguments, "psp", languages, output=f"{name}-{name_of_languages(languages)}"
    )


def add_bgt_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of BGT."""
    parser.description = (
        "Train a bilingual generative transformer. It learns the meaning of a sentence by"
        " generating the sentence and its translation."
    )
    parser.epilog = _BGT_EPILOG
    add_language_options(parser, _LANG)
    _add_data_options(
        parser,
        data=_PAIRS.format("LANG"),
        output="bgt-LANG; OBJECTIVE-LANG with another --objective",
    )
    _add_settings(parser, "bgt")


def bgt_run(arguments: argparse.Namespace) -> TrainingRun:
    """Return the run of BGT that the options describe."""
    name = getattr(arguments, "objective", "bgt")
    languages = languages_from(arguments)
    return _training_run(
        arguments, "bgt", languages, output=f"{name}-{name_of_languages(languages)}"
    )


def add_muse_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of mUSE."""
    parser.description = (
        "Train a multilingual sentence encoder on several tasks. Questions and answers get separate"
        " towers."
    )
    parser.epilog = _MUSE_EPILOG
    about = "languages other than English, e.g. es de"
    parser.add_argument("--langs", nargs="+", required=True, metavar="LANG", help=about)
    add_task_options(parser.add_argument_group("tasks other than translation"))
    _add_data_options(
        parser, data=_BITEXT, output="muse-cnn or muse-transformer", option="--bitext"
    )
    _add_settings(parser, "muse")


def muse_run(arguments: argparse.Namespace) -> TrainingRun:
    """Return the run of mUSE that the options describe."""
    from st_paragram.families.muse.settings import MuseData
    from st_paragram.runs.families import MUSE

    languages, arguments.data = bitext_of_languages(arguments.langs, arguments.data)
    configured = read_yaml(MUSE.config_path(arguments.config or MUSE.default_config))
    architecture = configured.get("architecture", "cnn")  # checked later
    architecture = getattr(arguments, "architecture", architecture)
    folders = task_folders(arguments)
    check_tasks(given(arguments, MUSE.settings), folders)
    tasks = MuseData(folders, tuple(arguments.langs))
    return _training_run(
        arguments, "muse", ("en", languages), output=f"muse-{architecture}", more=tasks
    )


def bitext_of_languages(
    languages: Sequence[str], data: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """Return the languages in one word ("de-es") and the translations to train on.

    `data` is one pair store that covers the languages; or folders with `en-LANG.tsv` (or `.gz`,
    `.xz`); or texts as `LANG-LANG:FILE`; or empty, for the default store or the built-in bitext of
    one language.
    """
    from st_paragram.core.pair_store import PairStore

    texts: list[str] = []
    for item in data:
        if Path(item).is_dir():
            texts += [f"en-{language}:{_text_in(Path(item), language)}" for language in languages]
        else:
            texts.append(item)
    if len(texts) != 1 or not texts[0].endswith((".h5", ".hdf5")):
        return "-".join(sorted({*languages})), texts
    store = PairStore(texts[0])
    stored = {language for _, language in store.language_pairs}
    missing = sorted({*languages} - stored)
    if missing:
        raise SettingsError(
            f"{texts[0]}: no translations for {', '.join(missing)}, only for"
            f" {', '.join(sorted(stored))}; prepare them, or leave the language out of --langs"
        )
    return store.languages[1], texts


def _text_in(folder: Path, language: str) -> Path:
    for ending in ("", ".gz", ".xz"):
        path = folder / f"en-{language}.tsv{ending}"
        if path.is_file():
            return path
    raise TextError(
        f"{folder}: no translations for {language} (en-{language}.tsv, also .gz or .xz); add the"
        " file"
    )


@dataclass(frozen=True)
class Kind:
    """A kind of training."""

    about: str  # one line of help
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], TrainingRun]  # makes the run from given options


#: The kinds of training; the first is the default.
KINDS = {
    "bitext": Kind(
        "an averaging model (P-SP, SP) on sentences and their translations (EMNLP 2022, ACL 2019)",
        add_bitext_options,
        bitext_run,
    ),
    "paraphrase": Kind(
        "an averaging model on English paraphrases (EMNLP 2022)",
        add_paraphrase_options,
        paraphrase_run,
    ),
    "bgt": Kind(
        "a bilingual generative transformer, which can also generate sentences (EMNLP 2020)",
        add_bgt_options,
        bgt_run,
    ),
    "muse": Kind(
        "a multilingual dual encoder on translations, questions, responses and inference"
        " (ACL 2020)",
        add_muse_options,
        muse_run,
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """List the kinds; each has its own options."""
    parser.usage = "st-paragram train KIND ..."
    lines = [f"  {name:10}  {kind.about}" for name, kind in KINDS.items()]
    parser.epilog = "\n".join(["kinds:", *lines])


# Options of all kinds.


def _add_data_options(
    parser: argparse.ArgumentParser, *, data: str, output: str, option: str = "--data"
) -> None:
    """Add the options for data and output.

    `data` and `output` are the help of their options, and `option` is the name of the data option.
    """
    group = parser.add_argument_group("data and output")
    add = group.add_argument
    about = f"training data: {data}"
    add(option, dest="data", action="append", default=[], metavar="FILE", help=about)
    about = (
        "for tables (CSV, JSON lines, Parquet, or TSV with a header): columns of the two languages,"
        " once for all texts or once per text"
    )
    add("--columns", action="append", default=[], nargs=2, metavar="NAME", help=about)
    about = (
        "vocabulary size for text data (default: 8,000 to 50,000, depending on the number of pairs)"
    )
    add("--vocab-size", type=int, metavar="N", help=about)
    about = (
        "drop and count rows that are not UTF-8 or have a wrong number of columns, instead of"
        " refusing the text"
    )
    add("--drop-invalid", action="store_true", help=about)
    about = "processes for text preparation (default: %(default)s)"
    add("--workers", type=int, default=1, metavar="N", help=about)
    about = (
        "graded pairs to score during training, rows `grade TAB sentence TAB sentence` (default:"
        " built-in pairs)"
    )
    add("--dev", type=Path, metavar="FILE.tsv", help=about)
    about = "held-out translations in two columns; training reports the share found"
    add("--dev-bitext", type=Path, metavar="FILE.tsv", help=about)
    about = "allow --dev or --dev-bitext to be a known test set"
    add("--force-test-set", action="store_true", help=about)
    about = f"output model directory (default: {output})"
    add("--output", type=Path, metavar="DIR", help=about)
    add("--overwrite", action="store_true", help="replace an existing model directory")
    add("--resume", action="store_true", help="continue from the last checkpoint")
    add_no_checks(group)
    about = "print the inputs, outputs and settings, with what the run would refuse, and stop"
    parser.add_argument("--plan", action="store_true", help=about)


def _add_settings(
    parser: argparse.ArgumentParser, family_name: str, default_config: str | None = None
) -> Any:
    """Add the options for settings, and return their group."""
    from st_paragram.runs.families import FAMILIES

    family = FAMILIES[family_name]
    config = default_config or family.default_config
    about = f"Each option overrides the configuration. Defaults shown are from `{config}`."
    settings = parser.add_argument_group("settings", about)
    default = config
    if family.built_in_config != config:
        default += f"; {family.built_in_config} for the built-in bitext"
    names = ", ".join(family.configs)
    about = f"configuration: {names}, or a YAML file of settings (default: {default})"
    settings.add_argument("--config", metavar="NAME|FILE.yaml", help=about)
    defaults = read_yaml(family.config_path(config))
    add_setting_options(settings, family.settings, defaults=defaults)
    parser.set_defaults(default_config=config)
    return settings


def _training_run(
    arguments: argparse.Namespace,
    family: str,
    languages: tuple[str, str],
    *,
    output: str,
    more: Any = None,
) -> TrainingRun:
    from st_paragram.runs.families import FAMILIES
    from st_paragram.runs.run import TrainingRun

    return TrainingRun(
        language=languages,
        output=arguments.output or Path(output),
        data=arguments.data,
        config=arguments.config,
        default_config=arguments.default_config,
        family=family,
        more=more,
        overrides=given(arguments, FAMILIES[family].settings),
        vocab_size=arguments.vocab_size,
        drop_invalid=arguments.drop_invalid,
        workers=arguments.workers,
        checks=not arguments.no_checks,
        development=arguments.dev,
        translations=arguments.dev_bitext,
        force_test_set=arguments.force_test_set,
        resume=arguments.resume,
        overwrite=arguments.overwrite,
        columns=arguments.columns,
    )


# Running.


def run(arguments: argparse.Namespace) -> int:
    """Train, or print the plan; return the exit status."""
    training = KINDS[arguments.kind].run(arguments)
    is_tuned = getattr(arguments, "tune", False)
    if arguments.plan:
        from st_paragram.runs.plan import check_inputs, check_outputs, plan

        check_inputs(training)
        print(plan(training, is_tuned))
        check_outputs(training, is_tuned)
        return 0
    if is_tuned:
        from st_paragram.runs.tune import tune

        record = tune(training)
    else:
        from st_paragram.runs.run import run_training

        record = run_training(training)
    print(_summary(record, training))
    return 0


def _summary(record: TrainingRecord, training: TrainingRun) -> str:
    """Say what training has changed, and how long it took."""
    lines = [_outcome(record, training), *_task_outcomes(record)]
    lines.append(
        f"{record.seconds:.0f} s including evaluation and checkpoints,"
        f" {record.pairs_per_second:,.0f} pairs/s while training; model in {training.output}"
    )
    if training.source.built_in:
        lines.append(
            "The model was trained on the built-in bitext: a demonstration, not a usable model."
        )
    return "\n".join(lines)


def _task_outcomes(record: TrainingRecord) -> Iterator[str]:
    """Yield a line for each task with held-out rows: the mean accuracies over its languages."""
    accuracies: dict[str, dict[str, list[float]]] = {}  # task -> model -> those of languages
    for score in record.task_scores:
        task = score.task.split()[0]
        models = accuracies.setdefault(task, {})
        models.setdefault(score.model, []).append(score.accuracy)
    for task, models in accuracies.items():
        figures = []
        for model, values in models.items():
            figures.append(f"{100 * sum(values) / len(values):.1f} % {model}")
        yield f"held-out rows of {task}, right: {', '.join(figures)}"


def _outcome(record: TrainingRecord, training: TrainingRun) -> str:
    if record.discarded:
        return (
            f"the training was discarded: {record.discarded}; the model has its weights before"
            " training"
        )
    if record.translations:
        before, after = (100 * score.accuracy for score in record.translations)
        held_out = record.translations[0]
        first, second = training.languages
        kind = "paraphrases" if first == second else "translations"
        origin = f"pairs of {held_out.data}" if training.translations else "held-out pairs"
        return (
            f"{kind} found among {held_out.pairs:,} {origin}: {before:.1f} % before training,"
            f" {after:.1f} % after"
        )
    before, after = (100 * score.correlation.pearson for score in record.scores)
    hint = ""
    if not training.development:
        hint = " (rough built-in pairs, to show that it learns; use your own with --dev)"
    return (
        f"{record.scores[0].data}, Pearson x 100: {before:.1f} before training,"
        f" {after:.1f} after{hint}"
    )
