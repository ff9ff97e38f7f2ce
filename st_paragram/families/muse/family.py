"""mUSE: multilingual dual encoders trained on several tasks (ACL 2020)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from st_paragram.families.muse.settings import DualEncoderSettings, MuseData
from st_paragram.learning.family import Family

if TYPE_CHECKING:
    from sentence_transformers.base.evaluation import BaseEvaluator

    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.core.pair_store import PairStore
    from st_paragram.families.muse.dual_encoder_trainer import DualEncoderTrainer
    from st_paragram.families.muse.sentence_transformers_encoder import DualEncoder
    from st_paragram.learning.models.card import CardFacts


class DualEncoderFamily(Family):
    """Dual encoders trained on translations, questions, responses and inference."""

    name = "muse"
    settings = DualEncoderSettings
    default_config = "muse_small"
    built_in_config = "muse_small"

    def check_data(self, data: MuseData | None) -> None:
        """Refuse folders without files of their task."""
        from st_paragram.families.muse.tasks import task_files

        for task, folder in (data or MuseData()).tasks.items():
            task_files(folder, task)

    def new_model(self, store: PairStore, settings: DualEncoderSettings) -> DualEncoder:
        """Make the initial encoder with its towers."""
        from st_paragram.families.muse.train import new_model

        return new_model(store, settings)

    def trainer(
        self,
        model: DualEncoder,
        store: PairStore,
        settings: DualEncoderSettings,
        *,
        folder: Path,
        evaluator: BaseEvaluator,
        data: MuseData | None,
    ) -> DualEncoderTrainer:
        """Make the trainer of a run on translations and the tasks of `data`."""
        from st_paragram.families.muse.train import trainer

        return trainer(model, store, settings, folder, evaluator, data)

    def card_facts(self, record: TrainingRecord) -> CardFacts:
        """Return the facts of a dual encoder."""
        from st_paragram.families.muse.card_facts import card_facts

        return card_facts(record)
