"""Facts for the cards of dual encoders trained like multilingual USE."""

from __future__ import annotations

from st_paragram.core.formatting import listed
from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.learning.models.card import CardFacts
from st_paragram.learning.papers import MUSE

_DESCRIPTION = """\
{network} and the mean of sentencepiece
embeddings, trained on {tasks} like multilingual USE (Yang et al., ACL 2020).
`model.encode_query` and `model.encode_document` use its towers for questions and answers."""
_NETWORKS = {"cnn": "convolutions over pieces", "transformer": "a transformer"}
_PLUGIN_ONLY = {
    "cnn": "Where st_paragram is installed, `SentenceTransformer(..., trust_remote_code=True)`"
    " also opens it.",
    "transformer": "",
}

#: Names of the tasks other than translation.
TASKS = {"qa": "questions and answers", "response": "responses", "nli": "inference"}


def card_facts(record: TrainingRecord) -> CardFacts:
    """Return the facts of a dual encoder, by its `architecture` and training tasks."""
    architecture = record.settings["architecture"]
    trained = {name.split()[0] for name in record.tasks}
    tasks = ["translations", *(text for task, text in TASKS.items() if task in trained)]
    description = _DESCRIPTION.format(network=_NETWORKS[architecture], tasks=listed(tasks))
    return CardFacts(
        description,
        network=architecture,
        papers=(MUSE,),
        plugin_only=_PLUGIN_ONLY[architecture],
    )
