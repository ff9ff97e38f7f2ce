"""Ablations: training runs that differ from a base in one choice each, with several seeds and scores."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

import pydantic
import yaml
from harness.families.ablation_results import AblationResult, AblationRun, AblationsRun
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from st_paragram.families.psp.objective import arguments, new_model
from st_paragram.learning.training.mega_batch.trainer import MegaBatchTrainer
from torch import Tensor, nn
from transformers import set_seed

from st_paragram.core.files import write_json
from st_paragram.core.pair_store import PairStore
from st_paragram.core.tables import hundredths
from st_paragram.errors import SettingsError
from st_paragram.learning.losses.margin_hard_negative import MarginHardNegativeLoss
from st_paragram.learning.training.development import translation_accuracy
from st_paragram.learning.training.settings import TrainingSettings
from st_paragram.tools.evaluation.correlation import correlate, graded_result
from st_paragram.tools.evaluation.graded_pairs import GradedPairs
from st_paragram.tools.evaluation.translations import Translations

logger = logging.getLogger(__name__)

BASE = "base"


class LossName(str, Enum):
    """The losses that can be compared."""

    MARGIN = "margin"
    MULTIPLE_NEGATIVES = "multiple-negatives"


@dataclass(frozen=True)
class Ablation:
    """One row: a training run, and what it changes.

    Args:
        name: of the row, made of the changes.
        group: what the change is about.
        overrides: the changes.
        settings: of the training run.
        vocab_size: pieces of the vocabulary.
        pairs: to train on; None: all.
        loss: to train with.
    """

    name: str
    group: str
    overrides: Mapping[str, Any]
    settings: TrainingSettings
    vocab_size: int = 50_000
    pairs: int | None = None
    loss: LossName = LossName.MARGIN


def read_ablations(path: str | Path) -> list[Ablation]:
    """Read the rows of a YAML file, `base: {...}` and `groups: {name: [{...}, ...]}`; the base is the first.

    Raises:
        SettingsError: the file is not of this form, or a row has an unknown key or a value that is refused.
    """
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        base = dict(values["base"])
        groups = {str(name): [dict(row) for row in rows] for name, rows in values["groups"].items()}
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        reason = str(error).split("\n")[0]
        raise SettingsError(f"{path}: expected `base: {{...}}` and `groups: {{name: [{{...}}]}}` ({reason})") from error
    rows = [_row(BASE, BASE, base, {}, path)]
    for group, changes in groups.items():
        for overrides in changes:
            name = ", ".join(f"{key} {value}" for key, value in overrides.items())
            rows.append(_row(name, group, base, overrides, path))
    return rows


def _row(name: str, group: str, base: dict[str, Any], overrides: dict[str, Any], path: str | Path) -> Ablation:
    values = base | overrides
    own = {key: values.pop(key) for key in ("vocab_size", "pairs", "loss") if key in values}
    known = {field.name for field in fields(TrainingSettings)}
    if unknown := sorted(set(values) - known):
        raise SettingsError(
            f"{path}: row {name!r}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}"
        )
    try:
        own["loss"] = LossName(own.get("loss", LossName.MARGIN))
    except ValueError as error:
        raise SettingsError(f"{path}: row {name!r}: loss {own['loss']!r}; choose {', '.join(LossName)}") from error
    return Ablation(name, group, overrides, TrainingSettings(**values), **own)


def run_ablations(
    rows: Sequence[Ablation],
    seeds: Sequence[int],
    store_of: Callable[[int], Path],
    development: Sequence[GradedPairs],
    folder: str | Path,
    translations: Sequence[Translations] = (),
) -> Iterator[tuple[Ablation, AblationRun]]:
    """Train every row with every seed; what is finished in `folder` is not trained again.

    Seeds are the outer loop, so that a run that is stopped has whole tables of fewer seeds.

    Args:
        rows: what to train.
        seeds: of the training runs.
        store_of: gives the store for a size of vocabulary.
        development: pairs to score.
        folder: keeps each training's result.
        translations: held out of the text, to look for.

    Yields:
        The row, and the training with its scores.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for row in rows:
            store = PairStore(store_of(row.vocab_size), limit=row.pairs)
            path = folder / f"seed-{seed}.{row.name.replace(', ', '.').replace(' ', '-')}.json"
            settings = asdict(replace(row.settings, seed=seed)) | {"loss": row.loss.value, "pairs": len(store)}
            settings |= {"vocab_size": row.vocab_size, "development": [pairs.name for pairs in development]}
            settings |= {"translations": [pairs.name for pairs in translations]} if translations else {}
            if (result := _finished(path, settings)) is None:
                result = _train(row, seed, store, development, translations)
                write_json(path, {"settings": settings, "result": asdict(result)})
                scores = ", ".join(f"{name} {hundredths(of.pearson)}" for name, of in result.scores.items())
                logger.info(f"{row.name}, seed {seed}: Pearson x 100: {scores}")
            yield row, result


def score_ablations(
    rows: Sequence[Ablation],
    seeds: Sequence[int],
    store_of: Callable[[int], Path],
    development: Sequence[GradedPairs],
    folder: str | Path,
    text: Sequence[str],
    translations: Sequence[Translations] = (),
) -> AblationsRun:
    """Everything that `run_ablations` gives, together; `text` says what was trained on."""
    results: dict[str, AblationResult] = {}
    for row, run in run_ablations(rows, seeds, store_of, development, folder, translations):
        results.setdefault(row.name, AblationResult(row.group, dict(row.overrides), [])).runs.append(run)
    base = {"vocab_size": rows[0].vocab_size, **asdict(rows[0].settings)}
    return AblationsRun(results, list(text), {pairs.name: len(pairs) for pairs in development}, base)


def _finished(path: Path, settings: dict[str, Any]) -> AblationRun | None:
    if not path.is_file():
        return None
    values = json.loads(path.read_text(encoding="utf-8"))
    if values["settings"] != settings:
        return None
    result: AblationRun = pydantic.TypeAdapter(AblationRun).validate_python(values["result"])
    return result


def _train(
    row: Ablation,
    seed: int,
    store: PairStore,
    development: Sequence[GradedPairs],
    translations: Sequence[Translations],
) -> AblationRun:
    settings = replace(row.settings, seed=seed)
    set_seed(seed)
    model = new_model(store, settings)
    with tempfile.TemporaryDirectory() as folder:
        options = arguments(settings, Path(folder), evaluate=False)
        options.save_strategy = "no"
        if row.loss is LossName.MULTIPLE_NEGATIVES:
            options.random_negatives = True  # they are not looked at, and cost no mining
        trainer = MegaBatchTrainer(model, options, store, loss=_loss(row, model))
        started = time.perf_counter()
        trainer.train()
    seconds = time.perf_counter() - started
    scores = {pairs.name: graded_result(len(pairs), correlate(model, pairs)) for pairs in development}
    found = {pairs.name: translation_accuracy(model, pairs) for pairs in translations}
    return AblationRun(seed, scores, len(store), seconds, trainer.pairs_trained / seconds, found)


def _loss(row: Ablation, model: SentenceTransformer) -> nn.Module:
    if row.loss is LossName.MARGIN:
        return MarginHardNegativeLoss(model, row.settings.margin)
    return _OfPairs(MultipleNegativesRankingLoss(model))


class _OfPairs(nn.Module):
    """A loss of two columns where a trainer brings four: the mined negatives are left out."""

    def __init__(self, loss: nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, columns: list[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """The loss of the first two columns."""
        value: Tensor = self.loss(columns[:2], labels)
        return value
