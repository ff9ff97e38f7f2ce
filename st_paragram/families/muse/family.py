"""mUSE: multilingual dual encoders trained on several tasks (ACL 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from st_paragram.core.formatting import listed
from st_paragram.errors import SettingsError
from st_paragram.families.muse.settings import NO_TASK, TASK_NAMES, DualEncoderSettings, MuseData
from st_paragram.learning.family import Family, Training

if TYPE_CHECKING:
    from st_paragram.core.model_directory.record import TrainingRecord
    from st_paragram.learning.models.card import CardFacts

_DESCRIPTION = """\
{network} and the mean of sentencepiece
embeddings, trained on {tasks} like multilingual USE (Yang et al., ACL 2020).
`model.encode_query` and `model.encode_document` use its towers for questions and answers."""
_NETWORKS = {"cnn": "convolutions over tokens", "transformer": "a transformer"}
_PLUGIN_ONLY = {
    "cnn": "Where st_paragram is installed, `SentenceTransformer(..., trust_remote_code=True)`"
    " also opens it.",
    "transformer": "",
}


class DualEncoderFamily(Family):
    """Dual encoders trained on translations, questions, responses and inference."""

    name = "muse"
    settings = DualEncoderSettings
    default_config = "muse_small"
    built_in_config = "muse_small"

    def check_data(self, data: MuseData | None, settings: DualEncoderSettings) -> None:
        """Refuse folders without files of their task, files with a wrong first row, and shares of
        the steps that leave no data.
        """
        from st_paragram.families.muse.tasks import check_first_row, files_in, task_files

        data = data or MuseData()
        if not any(settings.shares[task] for task in ("translation", *data.tasks)):
            raise SettingsError(NO_TASK)
        for task, folder in data.tasks.items():
            files = task_files(folder, task)
            if data.languages:
                files = files_in(folder, task, data.languages)
            for path in files.values():
                check_first_row(path, task)

    @property
    def training(self) -> Training:
        """The module that makes models and trainers."""
        from st_paragram.families.muse import train

        return train

    def card_facts(self, record: TrainingRecord) -> CardFacts:
        """Return the facts of a dual encoder, by its `architecture` and training tasks."""
        from st_paragram.learning.models.card import CardFacts
        from st_paragram.learning.papers import MUSE

        architecture = record.settings["architecture"]
        trained = {name.split()[0] for name in record.tasks}
        tasks = ["translations", *(text for task, text in TASK_NAMES.items() if task in trained)]
        description = _DESCRIPTION.format(network=_NETWORKS[architecture], tasks=listed(tasks))
        return CardFacts(
            description,
            network=architecture,
            papers=(MUSE,),
            plugin_only=_PLUGIN_ONLY[architecture],
        )
