"""The card of a trained model, built from the record of its training: data, settings, scores, what to cite."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

from huggingface_hub import EvalResult

from st_paragram.core.encoding.record import TrainingRecord
from st_paragram.core.families import entry_of_record
from st_paragram.core.tables import hundredths, markdown_table
from st_paragram.core.version import installed_version
from st_paragram.core.words import in_words, listed
from st_paragram.learning.models.card import Card, CardFacts, blocks, render, score_entry

#: How a training record calls the model that was saved.
AFTER = "after training"
_BUILT_IN = "built-in-"
_LANGUAGE = re.compile("[a-z]{2,3}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_OF_BLSTM = ("hidden_dim", "scramble")
_JIEBA = """\
This model segments Chinese with jieba before sentencepiece, as in the paper. `st_paragram.load` does so too; a stock
`SentenceTransformer` cannot, and its embeddings of Chinese text DIFFER: use `st_paragram.load`, or segment the text."""


def model_card(
    record: TrainingRecord,
    dim: int | None = None,
    licence: str | None = None,
    address: str | None = None,
    sources: bool = True,
) -> str:
    """The text of `training_card`."""
    return render(training_card(record, dim, licence, address, sources))


def training_card(
    record: TrainingRecord,
    dim: int | None = None,
    licence: str | None = None,
    address: str | None = None,
    sources: bool = True,
) -> Card:
    """The card of a trained model.

    Args:
        record: of the training run.
        dim: components of the model, where they are fewer than were trained.
        licence: an identifier of the hub, such as "cc-by-4.0"; without one the card says that none has been stated.
        address: on the hub, `owner/name`; without one the snippets name the model's directory.
        sources: list the texts that the pairs were prepared of, as far as the record knows them.
    """
    facts = _facts(record)
    codes = dict.fromkeys(code for side in record.languages for code in side.split("-"))
    bare = dict.fromkeys(code.partition("_")[0] for code in codes)  # without scripts and countries
    components = f"{dim or record.settings['dim']} components,\ncompared by cosine."
    return Card(
        name=record.name,
        summary=f"Sentence embeddings for {listed(list(codes))}: {facts.description} {components}",
        stock=not facts.plugin_only,
        network=facts.network,
        usage=facts.usage,
        note=blocks(facts.plugin_only, _JIEBA if record.segmentation == "jieba" else ""),
        address=address,
        licence=licence,
        sections=(
            ("Data", _data(record, sources)),
            ("Training", _training(record)),
            ("Scores", _scores(record)),
            *([("Citation", "```bibtex\n" + "\n\n".join(facts.citations) + "\n```")] if facts.citations else []),
        ),
        languages=tuple(code for code in bare if _LANGUAGE.fullmatch(code)),
        base_model=_base_model(record.settings),
        scores=tuple(_entries(record)),
    )


def _facts(record: TrainingRecord) -> CardFacts:
    """Those of the record's family; one of another package need not have any."""
    name, entry = entry_of_record(record.settings)
    if find_spec(f"{entry.package}.card_facts") is None:
        return CardFacts(f"a model of the family {name}.", name, ())
    facts: CardFacts = entry.module("card_facts").card_facts(record)
    return facts


def _base_model(settings: Mapping[str, Any]) -> str | None:
    """The model of the hub that the training began with, if there was one; the hub knows no others."""
    name = str(settings.get("init") or "").partition("@")[0]
    return name if _HUB_ID.fullmatch(name) and not Path(name).exists() else None


def _data(record: TrainingRecord, sources: bool) -> str:
    first, second = record.languages
    return blocks(
        f"{record.data}: {record.pairs:,} pairs of {first} and {second} after preparation.",
        _sources(record) if sources else "",
        _table(("task", "pairs"), [(name, f"{count:,}") for name, count in record.tasks.items()]),
        _table(("preparation", "value"), _preparation(record), left=2),
    )


def _sources(record: TrainingRecord) -> str:
    """The texts that were prepared, where the record's report has them; else empty."""
    report = record.preparation.get("report")
    texts = report.get("sources") if isinstance(report, Mapping) else None
    if not isinstance(texts, list) or not all(isinstance(one, Mapping) for one in texts):
        return ""
    keys = ("name", "languages", "dropped", "rows", "kept")
    rows = [tuple(_cell(one.get(key)) for key in keys) for one in texts]
    return _table(("text", "languages", "left out", "pairs", "kept"), rows, left=3)


def _preparation(record: TrainingRecord) -> list[tuple[str, ...]]:
    """Rows of the settings; where the size of the vocabulary was left to the number of pairs, the size it has."""
    values = dict(record.preparation)
    if values.get("vocab_size", 0) is None:
        values["vocab_size"] = f"{values['report']['vocabulary_size']} (by the number of pairs)"
    return _simple(values)


def _training(record: TrainingRecord) -> str:
    init = record.settings.get("init")
    unknown = () if record.settings.get("encoder") in ("blstm", "blstm-word") else _OF_BLSTM
    settings = _simple({name: value for name, value in record.settings.items() if name not in unknown})
    return blocks(
        f"The training began with the weights of `{_cell(init)}`." if init else "",
        markdown_table(("setting", "value"), settings, left=2),
        f"{record.seconds:.0f} s of wall time with evaluation and checkpoints; {record.pairs_per_second:.0f} pairs/s "
        f"while training, on {record.machine}.",
    )


def _scores(record: TrainingRecord) -> str:
    correlations = [
        (f"{s.data} ({s.pairs})", s.model, hundredths(s.correlation.pearson), hundredths(s.correlation.spearman))
        for s in record.scores
    ]
    found = [(f"{s.data} ({s.pairs})", s.model, hundredths(s.accuracy)) for s in record.translations]
    return blocks(
        "Correlation of cosines with graded similarity, x 100, on development pairs (watched during training: no "
        "benchmark).",
        markdown_table(("pairs", "model", "Pearson", "Spearman"), correlations),
        "Held-out translations found by nearest neighbor, mean of both directions, x 100." if found else "",
        _table(("translations", "model", "accuracy"), found),
        f"Made with st_paragram {installed_version()}, sentence-transformers {version('sentence-transformers')}, torch "
        f"{version('torch')}.",
    )


def _entries(record: TrainingRecord) -> Iterator[EvalResult]:
    """Scores of the trained model for the hub, less the built-in pairs: too few, too rough to compare models by."""
    for score in record.scores:
        if score.model == AFTER and not score.data.startswith(_BUILT_IN):
            names = _data_names(score.data)
            yield from score_entry("semantic-similarity", *names, "pearson_cosine", score.correlation.pearson)
            yield from score_entry("semantic-similarity", *names, "spearman_cosine", score.correlation.spearman)
    for found in record.translations:
        if found.model == AFTER:
            yield from score_entry("translation", *_data_names(found.data), "mean_accuracy", found.accuracy)


def _data_names(data: str) -> tuple[str, str]:
    """How development data are called: for people, and in one word."""
    return f"{data} (development)", re.sub(r"[^a-z0-9]+", "-", data.lower()).strip("-") or "development"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], left: int = 1) -> str:
    return markdown_table(head, rows, left) if rows else ""


def _simple(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows of the plain values; nested reports stay in the store."""
    return [(name, _cell(value)) for name, value in values.items() if not isinstance(value, Mapping)]


def _cell(value: object) -> str:
    """A value as a card shows it: what names a file of the machine that trained is cut down to its last part."""
    text = str(value) if isinstance(value, str | int | float) else in_words(value)
    return PurePath(text).name if isinstance(value, str) and Path(text).is_absolute() else text
