"""What the cards of dual encoders by the method of multilingual USE say."""

from __future__ import annotations

from st_paragram.core.encoding.record import TrainingRecord
from st_paragram.core.words import listed
from st_paragram.learning.models.card import CardFacts, Paper

_DESCRIPTION = """\
{network} and the mean of sentencepiece
embeddings, trained on {tasks} as multilingual USE is (Yang et al., ACL 2020).
`model.encode_query` and `model.encode_document` are its towers of questions and of answers."""
_CONVOLUTIONS = """\
Where st_paragram is installed, `SentenceTransformer(..., trust_remote_code=True)` opens it, too."""

TASKS = {"qa": "questions and answers", "response": "responses", "nli": "inference"}
MUSE = Paper(
    "yang-etal-2020-multilingual",
    "Multilingual Universal Sentence Encoder for Semantic Retrieval",
    "Yang, Yinfei and Cer, Daniel and Ahmad, Amin and Guo, Mandy and Law, Jax and Constant, Noah and Hernandez Abrego, "
    "Gustavo and Yuan, Steve and Tar, Chris and Sung, Yun-hsuan and Strope, Brian and Kurzweil, Ray",
    "Proceedings of ACL 2020: System Demonstrations",
    2020,
    "https://arxiv.org/abs/1907.04307",
)


def card_facts(record: TrainingRecord) -> CardFacts:
    """Those of a dual encoder, by its `architecture` and the tasks that it was trained on."""
    architecture = record.settings["architecture"]
    network = {"cnn": "convolutions over pieces", "transformer": "a transformer"}[architecture]
    others = [name for task, name in TASKS.items() if any(key.split()[0] == task for key in record.tasks)]
    description = _DESCRIPTION.format(network=network, tasks=listed(["translations", *others]))
    return CardFacts(description, architecture, (MUSE,), _CONVOLUTIONS if architecture == "cnn" else "")
