"""`st-paragram train`: train a model on bitext, or on paraphrases."""

from __future__ import annotations

import argparse
import logging
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.cli.training_options import FileHelp, add_training_options, training_run
from st_paragram.learning.training.processes import is_main_process
from st_paragram.learning.training.settings import TrainingSettings

if TYPE_CHECKING:
    from st_paragram.learning.training.families import AnySettings
    from st_paragram.learning.training.run import RunReport, TrainingRun
    from st_paragram.learning.training.training_data import TrainingData

DESCRIPTION = "Train a model. KIND is the kind of training; `st-paragram train KIND --help` shows the options of each."
EPILOG = ""

_BITEXT_EPILOG = """\
  st-paragram bitext --lang es                                     # makes data/en-es.h5 of public bitext
  st-paragram train bitext --lang es                               # makes the model directory p-sp-es
  st-paragram train bitext --lang es --data mine.tsv.xz --config small --dim 500
  st-paragram train bitext --lang es --data mine.tsv.xz --encoder trigram --config sp2019
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-es').encode(['hola']).shape)"

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""
_PARAPHRASE_EPILOG = """\
  st-paragram prepare --lang en --text paraphrases.tsv.xz --output data/en-en.h5
  st-paragram train paraphrase                                     # makes the model directory p-sp-en
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-en').encode(['hello']).shape)"

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""
_BGT_EPILOG = """\
  st-paragram train bgt --lang es --data mine.tsv.xz               # makes the model directory bgt-es, in an hour or so
  st-paragram train bgt --lang fr --config bgt_paper               # the paper's sizes, for a GPU
  st-paragram train bgt --lang es --objective bilingual-trans --output trans-es
  torchrun --nproc-per-node 2 --no-python st-paragram train bgt --lang es --device cpu
  st-paragram generate bgt-es --task translate --from en --to es FILE

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""
_MUSE_EPILOG = """\
  st-paragram train muse --architecture cnn --langs es de --bitext data/en-de-es.h5 --init p-sp-mul --dim 1024
  st-paragram train muse --architecture transformer --langs es --bitext texts --qa qa --responses responses --nli nli
  torchrun --nproc-per-node 2 --no-python st-paragram train muse --langs es --bitext data/en-es.h5 --device cpu
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('muse-cnn').encode_query(['who?']))"

A folder for --bitext has files en-LANG.tsv; the folders of the other tasks have files LANG.tsv (they may end in .gz or
.xz, too). Their rows are `question TAB answer TAB context` for --qa, `utterance TAB response` for --responses and
`label TAB premise TAB hypothesis` for --nli. `st-paragram tasks` makes such files out of public ones.

Ctrl-C saves a checkpoint, and the same command with --resume continues from it.
"""

_PAIRS = (
    "a pair store (.h5), a text of two columns (repeatable), or `built-in` (default: data/en-{}.h5, or the built-in "
    "bitext if there is no such file)"
)
_BITEXT = (
    "a pair store (.h5) with all the languages, a folder of files en-LANG.tsv (also .gz, .xz), texts LANG-LANG:FILE "
    "(repeatable), or `built-in` for one language (default: data/en-LANG.h5, or the built-in bitext if there is no "
    "such file)"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add a subcommand for each kind of training."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")

    def kind(name: str, about: str, description: str, epilog: str) -> argparse.ArgumentParser:
        layout = parser.formatter_class
        return kinds.add_parser(name, help=about, description=description, epilog=epilog, formatter_class=layout)

    add_bitext_options(
        kind(
            "bitext",
            "an averaging model (P-SP, SP) on sentences and their translations (EMNLP 2022, ACL 2019)",
            "Train a model that embeds a sentence as the mean of its pieces, on pairs of an English sentence and its "
            "translation.",
            _BITEXT_EPILOG,
        )
    )
    add_paraphrase_options(
        kind(
            "paraphrase",
            "an averaging model on English paraphrases (EMNLP 2022)",
            "Train a model that embeds a sentence as the mean of its pieces, on pairs of English sentences that mean "
            "the same.",
            _PARAPHRASE_EPILOG,
        )
    )
    add_bgt_options(
        kind(
            "bgt",
            "a bilingual generative transformer, which can also write sentences (EMNLP 2020)",
            "Train a bilingual generative transformer, which learns the meaning of a sentence by writing it and its "
            "translation.",
            _BGT_EPILOG,
        )
    )
    add_muse_options(
        kind(
            "muse",
            "a multilingual dual encoder on translations, questions, responses and inference (ACL 2020)",
            "Train an encoder of sentences in many languages on several tasks. Questions and answers get towers of "
            "their own.",
            _MUSE_EPILOG,
        )
    )


def run(arguments: argparse.Namespace) -> int:
    """Train; returns the exit status.

    Raises:
        ParagramError: The settings, the data or the output are refused.
    """
    return train_muse(arguments) if arguments.kind == "muse" else train_on_pairs(arguments)


def add_bitext_options(parser: argparse.ArgumentParser, default_config: str = "short") -> None:
    """Add the options of `train bitext`, for the command and for the recipes that do the same."""
    parser.add_argument("--lang", required=True, metavar="LANG", help="the language beside English, e.g. es")
    files = FileHelp(_PAIRS.format("LANG"), "p-sp-LANG; word-LANG, trigram-LANG or blstm-LANG with another --encoder")
    add_training_options(parser, default_config, files)


def add_paraphrase_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `train paraphrase`, for the command and for the recipe that does the same."""
    parser.set_defaults(lang="en")
    files = FileHelp(_PAIRS.format("en"), "p-sp-en; word-en, trigram-en or blstm-en with another --encoder")
    add_training_options(parser, "paraphrase", files, tuning=False)


def add_bgt_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `train bgt`, for the command and for the recipe that does the same."""
    from st_paragram.learning.training.families import GENERATIVE

    parser.add_argument("--lang", required=True, metavar="LANG", help="the language beside English, e.g. es")
    files = FileHelp(_PAIRS.format("LANG"), "bgt-LANG; with another --objective its name and LANG")
    add_training_options(parser, "bgt_small", files, tuning=False, family=GENERATIVE)


def add_muse_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `train muse`, for the command and for the recipe that does the same."""
    from st_paragram.learning.training.families import DUAL_ENCODERS

    parser.add_argument(
        "--langs", nargs="+", required=True, metavar="LANG", help="the languages beside English, e.g. es de"
    )
    tasks = parser.add_argument_group("tasks beside translation")
    for option, rows in (
        ("--qa", "question TAB answer TAB context"),
        ("--responses", "utterance TAB response"),
        ("--nli", "label TAB premise TAB hypothesis"),
    ):
        tasks.add_argument(option, type=Path, metavar="DIR", help=f"a folder of files LANG.tsv with rows `{rows}`")
    files = FileHelp(_BITEXT, "muse-cnn or muse-transformer", "--bitext")
    add_training_options(parser, "muse_small", files, tuning=False, family=DUAL_ENCODERS)


def train_muse(arguments: argparse.Namespace) -> int:
    """Train a dual encoder and print the scores; returns the exit status, errors as in `run`."""
    from st_paragram.learning.training.training_data import bitext_of_languages

    language, data = bitext_of_languages(arguments.langs, arguments.data)
    folders = {"qa": arguments.qa, "response": arguments.responses, "nli": arguments.nli}
    run = training_run(arguments, language)
    described = replace(
        run,
        output=arguments.output or Path(f"muse-{_architecture(run)}"),
        data=data,
        tasks={task: folder for task, folder in folders.items() if folder is not None},
        languages=tuple(arguments.langs),
    )
    return _trained(described)


def _architecture(run: TrainingRun) -> str:
    """What the settings say, before all of them are checked."""
    from st_paragram.core.settings import read_yaml
    from st_paragram.learning.training.settings import config_path

    path = config_path(run.config or run.default_config, run.family.configs)
    return str(run.overrides.get("architecture") or read_yaml(path).get("architecture", "cnn"))


def train_on_pairs(arguments: argparse.Namespace) -> int:
    """Train on bitext or paraphrases and print the scores; returns the exit status, errors as in `run`."""
    return _trained(training_run(arguments, arguments.lang))


def _trained(described: TrainingRun) -> int:
    from st_paragram.learning.training.checkpoints import finished
    from st_paragram.learning.training.run import run_training

    if not is_main_process():
        logging.getLogger().setLevel(logging.WARNING)  # the first process tells the rest
    try:
        report = run_training(described, _write_start)
    except KeyboardInterrupt:
        if is_main_process() and finished(described.checkpoints):
            print(
                f"a checkpoint is in {described.checkpoints}: the same command with --resume goes on", file=sys.stderr
            )
        raise
    if is_main_process():
        sys.stdout.write(f"{_lines(report, rough=described.development is None)}\n")
    return 0


def _write_start(data: TrainingData, settings: AnySettings) -> None:
    pairs = f"{len(data.store):,} pairs{data.left_out}"
    print(f"training on {data.description}: {pairs}, {settings.extent}", flush=True)


def _lines(report: RunReport, rough: bool) -> str:
    """The report as text; `rough`: the development pairs are the built-in ones."""
    name, best = report.development, report.best
    lines = [
        f"dropout {point.settings.dropout}  M {point.settings.megabatch_size}  {name} {100 * point.after.pearson:.1f}"
        for point in report.points
        if isinstance(point.settings, TrainingSettings)
    ]
    before, after = 100 * best.before.pearson, 100 * best.after.pearson
    hint = " (rough built-in pairs, to see that it learns; --dev takes your own)" if rough else ""
    lines.append(f"{name}, Pearson x 100: {before:.1f} before training, {after:.1f} after{hint}")
    for score in best.translations:
        lines.append(f"{score.data}, translations found {score.model}: {100 * score.accuracy:.1f} %")
    rate = f"{best.seconds:.0f} s with evaluation and checkpoints, {best.pairs_per_second:,.0f} pairs/s in between"
    lines.append(f"{rate}; model in {report.output}")
    if report.built_in:
        lines.append("It was trained on the built-in bitext: a demonstration, not a usable model.")
    return "\n".join(lines)
