"""The cards of trained models, from the records of their training."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePath

from huggingface_hub import EvalResult

from st_paragram.core.extras import installed_version
from st_paragram.core.formatting import hundredths, in_words, listed, markdown_table
from st_paragram.core.languages import codes_of_sides
from st_paragram.core.model_directory.card import Card, blocks
from st_paragram.core.model_directory.record import Score, TrainingRecord, TranslationScore
from st_paragram.learning.papers import Paper

AFTER = "after training"  # name of the saved model in a training record
_JIEBA = """\
This model segments Chinese with jieba before sentencepiece, as in the paper. `st_paragram.load`
does this; plain sentence-transformers does not, so its embeddings of Chinese text DIFFER unless you
segment the text first."""


@dataclass(frozen=True)
class CardFacts:
    """Facts shared by the cards of a family's trained models, returned by its `card_facts`."""

    description: str  # what an embedding is and its origin, after "Sentence embeddings for ...: "
    network: str  # its kind in one word, a tag on the hub
    papers: tuple[Paper, ...]  # whose method the training followed
    plugin_only: str = ""  # why plain sentence-transformers cannot open the model; empty if it can


def citation(*papers: Paper) -> tuple[str, str]:
    """Return title and text of the section with citations."""
    entries = blocks(*(paper.bibtex for paper in papers))
    return "Citation", f"```bibtex\n{entries}\n```"


def score_entry(task: str, name: str, metric: str, share: float | None) -> list[EvalResult]:
    """Return a score, x 100, as an entry of the hub's `model-index`; empty for a missing score.

    `task` is a task type of the hub, `name` the name of the data; `share` is in -1 .. 1.
    """
    if share is None or not math.isfinite(share):
        return []
    short_name = re.sub(r"[^a-z0-9]+", "-", name.partition(" (")[0].lower()).strip("-") or "data"
    return [EvalResult(task, short_name, name, metric, round(100 * share, 2))]


def from_record(
    record: TrainingRecord,
    facts: CardFacts,
    dim: int | None = None,  # dimensions of the model, if they are fewer than were trained
    license: str | None = None,
    sources: bool = True,  # list the texts of the pairs, if the record has them
) -> Card:
    """Make the card of a trained model: data, settings, scores, citations."""
    codes = codes_of_sides(record.languages)
    bare_codes = dict.fromkeys(code.partition("_")[0] for code in codes)  # without scripts
    start = str(record.settings.get("init") or "")
    base = start.partition("@")[0]
    name = r"[A-Za-z0-9][\w.-]*"
    on_hub = re.fullmatch(f"{name}/{name}", base) and not Path(base).exists()
    return Card(
        name=record.name,
        summary=(
            f"Sentence embeddings for {listed(codes)}: {facts.description}"
            f" {dim or record.settings['dim']} dimensions,\ncompared by cosine."
        ),
        stock=not facts.plugin_only,
        network=facts.network,
        note=blocks(facts.plugin_only, _JIEBA if record.segmentation == "jieba" else ""),
        license=license,
        sections=(
            ("Data", _data(record, sources)),
            ("Training", _training(record, start)),
            ("Scores", _scores(record)),
            citation(*facts.papers),
        ),
        languages=tuple(code for code in bare_codes if re.fullmatch("[a-z]{2,3}", code)),
        base_model=base if on_hub else None,
        scores=tuple(_entries(record)),
    )


def _data(record: TrainingRecord, sources: bool) -> str:
    parts = [
        f"{record.data}: {record.pairs:,} pairs of {' and '.join(record.languages)} after"
        " preparation, whose settings and reports are in `training.json`."
    ]
    # Records of other versions may lack the report, or have another.
    report = record.preparation.get("report")
    texts = report.get("sources") if isinstance(report, Mapping) else None
    if sources and isinstance(texts, Sequence) and texts:
        keys = ("name", "languages", "dropped", "rows", "kept")
        rows = [tuple(_cell(text.get(key)) for key in keys) for text in texts]
        parts.append(markdown_table(("text", "languages", "left out", "pairs", "kept"), rows, 3))
    if record.tasks:
        tasks = [(task, f"{count:,}") for task, count in record.tasks.items()]
        parts.append(markdown_table(("task", "pairs"), tasks))
    return blocks(*parts)


def _training(record: TrainingRecord, start: str) -> str:
    parts = []
    if start:
        parts.append(f"The training started from the weights of `{_cell(start)}`.")
    if record.discarded:
        parts.append(
            f"The training was discarded: {record.discarded}. The model has its weights before"
            " training."
        )
    settings = []
    for name, value in record.settings.items():
        if not isinstance(value, Mapping):
            settings.append((name, _cell(value)))
    return blocks(
        *parts,
        markdown_table(("setting", "value"), settings, left=2),
        f"{record.seconds:.0f} s including evaluation and checkpoints;"
        f" {record.pairs_per_second:,.0f} pairs/s while training, on {record.machine}.",
    )


def _scores(record: TrainingRecord) -> str:
    correlations = []
    for score in record.scores:
        pearson = hundredths(score.correlation.pearson)
        spearman = hundredths(score.correlation.spearman)
        correlations.append((f"{score.data} ({score.pairs:,})", score.model, pearson, spearman))
    parts = [
        "Correlation of cosines with graded similarity, x 100, on development pairs (watched during"
        " training: no benchmark).",
        markdown_table(("pairs", "model", "Pearson", "Spearman"), correlations),
    ]
    if record.translations:
        accuracies = []
        for result in record.translations:
            data = f"{result.data} ({result.pairs:,})"
            accuracies.append((data, result.model, hundredths(result.accuracy)))
        parts += [
            "Held-out translations found by nearest neighbor, mean of both directions, x 100.",
            markdown_table(("translations", "model", "accuracy"), accuracies),
        ]
    if record.task_scores:
        held_out = []
        for task in record.task_scores:
            share = hundredths(task.accuracy)
            held_out.append((f"{task.task} ({task.rows:,})", task.model, share))
        parts += [
            "Rows of each task that were held out of training, x 100: texts that find their"
            " partner among those of the held-out rows (translations: mean of both directions),"
            " and right labels of inference.",
            markdown_table(("held-out rows", "model", "accuracy"), held_out),
        ]
    return blocks(
        *parts,
        f"Made with st_paragram {installed_version()}, sentence-transformers"
        f" {version('sentence-transformers')}, torch {version('torch')}.",
    )


def _entries(record: TrainingRecord) -> list[EvalResult]:
    """Return the scores for the hub, without the built-in pairs, which are too few."""
    saved = record.scores[0].model if record.discarded else AFTER
    entries = []
    scores: list[Score | TranslationScore] = [*record.scores, *record.translations]
    for score in scores:
        if score.model != saved or score.data.startswith("built-in-"):
            continue
        name = f"{score.data} (development)"
        if isinstance(score, TranslationScore):
            entries += score_entry("translation", name, "mean_accuracy", score.accuracy)
        else:
            task = "semantic-similarity"
            entries += score_entry(task, name, "pearson_cosine", score.correlation.pearson)
            entries += score_entry(task, name, "spearman_cosine", score.correlation.spearman)
    return entries


def _cell(value: object) -> str:
    """Format a value for a card; of a file on the training machine, only the name is shown."""
    if isinstance(value, str):
        return PurePath(value).name if Path(value).is_absolute() else value
    return str(value) if isinstance(value, int | float) else in_words(value)
