"""The card of a released model: that of its training, with licence, sources and scores, for people and the hub."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from st_paragram.errors import ModelDirectoryError
from st_paragram.evaluation.results import StsResult, TatoebaResult
from st_paragram.models.card import model_card, table_note
from st_paragram.models.configuration import read_configuration
from st_paragram.models.training_record import TRAINING_FILE, read_training_record
from st_paragram.release.plan import ModelPlan
from st_paragram.tables import hundredths, markdown_table

_SECTIONS = """

## Sources

What it was trained on, before preparation, and under which licence each source is offered.

{sources}
"""
_SCORES = """
## Scores on test sets

Spearman's correlation of cosines with grades, x 100 (STS as mteb computes it, which names the sets), and errors of
finding translations by nearest neighbour, mean of both directions, x 100 (Tatoeba).

{scores}
"""


def release_card(
    folder: Path, each: ModelPlan, sts: StsResult | None = None, tatoeba: TatoebaResult | None = None
) -> str:
    """The card of a model or of a smaller copy.

    Args:
        folder: its directory, named as it is.
        each: what the model was made of.
        sts: its scores, if it was scored.
        tatoeba: the same.

    Raises:
        ModelDirectoryError: the directory has no record of a training run.
    """
    name = folder.name
    text = _card_of_training(folder).rstrip("\n")
    if name != each.name:
        text += f"\n\nA smaller copy of {each.name}: its first components, rounded."
    text += _SECTIONS.format(sources=_sources(each))
    text += "".join(f"\n{note}\n" for note in dict.fromkeys(text.licence.note for text in each.texts) if note)
    if sts or tatoeba:
        text += _SCORES.format(scores=markdown_table(("set", "score"), _rows(sts, tatoeba)))
    made = ModelCard(text)
    metadata = cast("ModelCardData", made.data)
    metadata.license = each.model.licence
    metadata.language = sorted({"en", *each.model.languages})
    metadata.model_name = name
    metadata.eval_results = [*_sts_entries(sts), *_tatoeba_entries(tatoeba)] or None
    return str(made)


def _card_of_training(folder: Path) -> str:
    record = read_training_record(folder)
    if record is None:
        raise ModelDirectoryError(f"{folder / TRAINING_FILE}: missing; remove {folder}, and make the release again")
    values = read_configuration(folder).values
    card = model_card(replace(record, name=folder.name), values["embedding_dimension"])
    return card + table_note(values["table_type"])


def _sources(each: ModelPlan) -> str:
    pairs: dict[str, dict[str, int]] = defaultdict(dict)
    licences = {text.source: text.licence.licence for text in each.texts}
    for text, rows in zip(each.texts, each.rows, strict=True):
        pairs[text.source][text.language] = rows
    rows_of = [
        (source, ", ".join(f"{language} {count:,}" for language, count in counts.items()), licences[source])
        for source, counts in sorted(pairs.items())
    ]
    return markdown_table(("source", "pairs", "licence"), rows_of)


def _rows(sts: StsResult | None, tatoeba: TatoebaResult | None) -> list[tuple[str, str]]:
    rows = [(name, hundredths(score)) for name, score in (sts.mteb if sts else {}).items()]
    if tatoeba:
        rows += [(f"Tatoeba {name}, errors", hundredths(of.cosine.mean)) for name, of in tatoeba.languages.items()]
    return rows


def _sts_entries(sts: StsResult | None) -> Sequence[EvalResult]:
    return [
        _entry("STS", name, f"mteb/{name.partition('/')[0].lower()}-sts", "cosine_spearman", score)
        for name, score in (sts.mteb if sts else {}).items()
        if score is not None
    ]


def _tatoeba_entries(tatoeba: TatoebaResult | None) -> Sequence[EvalResult]:
    return [
        _entry("BitextMining", f"Tatoeba/{name}-eng", "mteb/tatoeba-bitext-mining", "accuracy", 1 - of.cosine.mean)
        for name, of in (tatoeba.languages if tatoeba else {}).items()
    ]


def _entry(task: str, dataset: str, address: str, metric: str, share: float) -> EvalResult:
    name, _, subset = dataset.partition("/")
    return EvalResult(
        task_type=task,
        dataset_name=f"MTEB {name} ({subset})" if subset else f"MTEB {name}",
        dataset_config=subset or "default",
        dataset_type=address,
        metric_type=metric,
        metric_value=round(100 * share, 2),
    )
