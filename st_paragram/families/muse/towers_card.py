"""The card of a finished encoder with towers: what they were trained on, and their learning curves."""

from __future__ import annotations

from collections.abc import Sequence

from st_paragram.core.tables import markdown_table
from st_paragram.core.version import installed_version
from st_paragram.core.words import listed
from st_paragram.errors import one_line
from st_paragram.families.muse.card_facts import MUSE, TASKS
from st_paragram.families.muse.sentence_transformers_encoder import EncoderWithTowers
from st_paragram.families.muse.task_vectors import PairRows
from st_paragram.families.muse.towers_training import Curve
from st_paragram.learning.models.card import Card, blocks, citation, render

_RETRIEVAL = """\
```python
questions = model.encode_query(["who wrote it?"])
answers = model.encode_document(["She wrote it in 1843."])
print(model.similarity(questions, answers))
```"""
_CLASSIFY = """\
`model.classify(premises, hypotheses)` gives the probabilities of entailment, neutral and contradiction; a model has it
when `st_paragram.load` opened it."""


def towers_card(
    name: str, encoder: str, model: EncoderWithTowers, rows: Sequence[PairRows], curves: Sequence[Curve]
) -> str:
    """The card in Markdown: of a model after training on these rows, over a finished encoder of this name."""
    encoder = one_line(encoder, 200).replace("`", "'")
    tasks = [text for task, text in TASKS.items() if task in model.values.tasks]
    sizes = [(TASKS[each.task], each.language, f"{len(each):,}") for each in rows]
    shown = [
        (each.measure, f"{each.rows:,}", " ".join(f"{100 * value:.1f}" for value in each.values), str(each.best))
        for each in curves
    ]
    training = f"By `st-paragram towers`, st_paragram {installed_version()}, on these rows:"
    card = Card(
        name=one_line(name, 100),
        summary=f"Sentence embeddings of `{encoder}`, scaled to length 1, with towers and heads trained on "
        f"{listed(tasks)} as in multilingual USE (Yang et al., ACL 2020). The encoder itself was not changed.",
        stock=False,
        note=blocks("Questions and answers:", _RETRIEVAL, _CLASSIFY if model.has_classifier else ""),
        licence="other",
        licence_name="terms-of-the-encoder-and-the-text",
        terms=f"The encoder has the terms that the model card of `{encoder}` states; each text keeps its own license.",
        sections=(
            ("Training", blocks(training, markdown_table(("task", "language", "rows"), sizes, left=2))),
            ("On rows held out", markdown_table(("measure", "rows", "% before and after each epoch", "kept"), shown)),
            citation(MUSE),
        ),
    )
    return render(card)
