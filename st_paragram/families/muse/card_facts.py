"""What the cards of dual encoders by the method of multilingual USE say."""

from __future__ import annotations

from st_paragram.core.encoding.record import TrainingRecord
from st_paragram.core.words import listed
from st_paragram.learning.models.card import CardFacts

_DESCRIPTION = """\
{network} and the mean of sentencepiece
embeddings, trained on {tasks} as multilingual USE is (Yang et al., ACL 2020).
`model.encode_query` and `model.encode_document` are its towers of questions and of answers."""

_NETWORKS = {"cnn": "convolutions over pieces", "transformer": "a transformer"}
_TASKS = {"qa": "questions and answers", "response": "responses", "nli": "inference"}

MUSE = """\
@inproceedings{yang-etal-2020-multilingual,
  title = {Multilingual Universal Sentence Encoder for Semantic Retrieval},
  author = {Yang, Yinfei and Cer, Daniel and Ahmad, Amin and Guo, Mandy and Law, Jax and Constant, Noah and
            Hernandez Abrego, Gustavo and Yuan, Steve and Tar, Chris and Sung, Yun-hsuan and Strope, Brian and
            Kurzweil, Ray},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics: System
               Demonstrations},
  year = {2020},
  url = {https://arxiv.org/abs/1907.04307},
}"""


def card_facts(record: TrainingRecord) -> CardFacts:
    """Those of a dual encoder, by its `architecture` and the tasks that it was trained on."""
    network = record.settings["architecture"]
    others = [name for task, name in _TASKS.items() if any(key.split()[0] == task for key in record.tasks)]
    tasks = listed(["translations", *others])
    return CardFacts(_DESCRIPTION.format(network=_NETWORKS.get(network, "a network"), tasks=tasks), network, (MUSE,))
