"""The cards of dual encoders trained like multilingual USE, and of finished encoders with towers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from st_paragram.core.extras import installed_version
from st_paragram.core.formatting import listed, markdown_table
from st_paragram.core.model_directory.record import TrainingRecord
from st_paragram.errors import one_line
from st_paragram.learning.models.card import Card, CardFacts, blocks, citation, render
from st_paragram.learning.papers import Paper

if TYPE_CHECKING:
    from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
    from st_paragram.families.muse.towers_training import Curve, PairRows

_DESCRIPTION = """\
{network} and the mean of sentencepiece
embeddings, trained on {tasks} like multilingual USE (Yang et al., ACL 2020).
`model.encode_query` and `model.encode_document` use its towers for questions and answers."""
_CONVOLUTIONS = """\
Where st_paragram is installed, `SentenceTransformer(..., trust_remote_code=True)` also opens it."""
_RETRIEVAL = """\
Questions and answers:

```python
questions = model.encode_query(["who wrote it?"])
answers = model.encode_document(["She wrote it in 1843."])
print(model.similarity(questions, answers))
```"""
_CLASSIFY = """\
`model.classify(premises, hypotheses)` gives the probabilities of entailment, neutral and contradiction, if the model
was opened by `st_paragram.load`."""

TASKS = {"qa": "questions and answers", "response": "responses", "nli": "inference"}
MUSE = Paper(
    "yang-etal-2020-multilingual",
    "Multilingual Universal Sentence Encoder for Semantic Retrieval",
    "Yang, Yinfei and Cer, Daniel and Ahmad, Amin and Guo, Mandy and Law, Jax and Constant, Noah"
    " and Hernandez Abrego, Gustavo and Yuan, Steve and Tar, Chris and Sung, Yun-hsuan and Strope,"
    " Brian and Kurzweil, Ray",
    "Proceedings of ACL 2020: System Demonstrations",
    2020,
    "https://arxiv.org/abs/1907.04307",
)


def card_facts(record: TrainingRecord) -> CardFacts:
    """Return the facts of a dual encoder, by its `architecture` and training tasks."""
    architecture = record.settings["architecture"]
    network = {"cnn": "convolutions over pieces", "transformer": "a transformer"}[architecture]
    others = [
        name for task, name in TASKS.items() if any(key.split()[0] == task for key in record.tasks)
    ]
    description = _DESCRIPTION.format(network=network, tasks=listed(["translations", *others]))
    return CardFacts(
        description, architecture, (MUSE,), _CONVOLUTIONS if architecture == "cnn" else ""
    )


def towers_card(
    name: str,
    encoder: str,
    model: EncoderWithTowers,
    rows: Sequence[PairRows],
    curves: Sequence[Curve],
) -> str:
    """Make the card of towers trained on these rows over a finished encoder of this name."""
    encoder = one_line(encoder, 200).replace("`", "'")
    tasks = listed([text for task, text in TASKS.items() if task in model.tasks])
    sizes = [(TASKS[each.task], each.language, f"{len(each):,}") for each in rows]
    shown = [(each.measure, f"{each.rows:,}", str(each), str(each.best)) for each in curves]
    training = f"Trained by `st-paragram towers`, st_paragram {installed_version()}, on these rows:"
    card = Card(
        name=one_line(name, 100),
        summary=(
            f"Sentence embeddings of `{encoder}`, scaled to length 1, with towers and heads trained"
            f" on {tasks} as in multilingual USE (Yang et al., ACL 2020). The encoder itself was"
            " not changed."
        ),
        stock=False,
        note=blocks(_RETRIEVAL, _CLASSIFY if model.has_classifier else ""),
        license="other",
        license_name="terms-of-the-encoder-and-the-text",
        terms=(
            f"The encoder keeps the terms stated in the model card of `{encoder}`; each text keeps"
            " its own license."
        ),
        sections=(
            (
                "Training",
                blocks(training, markdown_table(("task", "language", "rows"), sizes, left=2)),
            ),
            (
                "On held-out rows",
                markdown_table(("measure", "rows", "% before and after each epoch", "kept"), shown),
            ),
            citation(MUSE),
        ),
    )
    return render(card)
