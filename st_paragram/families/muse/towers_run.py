"""From a finished encoder and folders of rows to a model directory with towers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from st_paragram.core.damage import printable
from st_paragram.core.encoding.find import find
from st_paragram.core.files import make_folder, output_lock
from st_paragram.core.tables import markdown_table
from st_paragram.core.value_words import listed
from st_paragram.core.version import installed_version
from st_paragram.families.muse.card_facts import MUSE
from st_paragram.families.muse.sentence_transformers_towers import EncoderWithTowers
from st_paragram.families.muse.task_vectors import PairRows, read_rows, vectors_of
from st_paragram.families.muse.towers_settings import TowersSettings
from st_paragram.families.muse.towers_training import Curve, train_towers
from st_paragram.learning.models import directory
from st_paragram.learning.models.card import Card, render
from st_paragram.tools.cleaning.known_test_sentences import KnownSentences

_NAMES = {"qa": "questions and answers", "response": "responses", "nli": "inference"}
_USAGE = """\
questions = model.encode_query(["who wrote it?"])
answers = model.encode_document(["She wrote it in 1843."])
print(model.similarity(questions, answers))"""
_CLASSIFY = """\
`model.classify(premises, hypotheses)` gives the probabilities of entailment, neutral and contradiction; a model has it
when `st_paragram.load` opened it."""


def make_towers(
    model: str | Path,
    folders: Mapping[str, Path],
    output: str | Path,
    settings: TowersSettings | None = None,
    name: str | None = None,
    overwrite: bool = False,
) -> list[Curve]:
    """Train towers and a classifier over a finished encoder, and save it with them.

    Vectors are kept in `.<output>.work` until all is done; the same call resumes an interrupted
    run there.

    Args:
        model: Directory, name or hub id of the encoder, any SentenceTransformer.
        folders: Folders of `LANG.tsv` (see `task_files`) by their tasks: "qa", "response", "nli".
        output: The model directory to make.
        settings: Of the training.
        name: The encoder's name on the card; by default that of its directory.
        overwrite: Replace a model directory that exists.

    Returns:
        Learning curves on rows that were held out.

    Raises:
        ModelDirectoryError: There is no such model, or the output is refused.
        TextError: A folder has no file, or a file is refused.
        SettingsError: The model has towers already.
        ParagramError: Another run is writing the output.
    """
    settings, output, found = settings or TowersSettings(), Path(output), find(model)
    encoder = directory.load(found)
    torch.manual_seed(settings.seed)
    made = EncoderWithTowers.over(encoder)
    work = output.with_name(f".{output.name}.work")
    with output_lock(output):
        make_folder(work)
        rows = read_rows(folders, work / "texts.txt", KnownSentences())
        curves = train_towers(made, rows, vectors_of(work / "texts.txt", found, work), settings)
        card = _card(output.name, name or found.name, made, rows, curves)
        directory.save(made, output, card, overwrite)
        shutil.rmtree(work)
    return curves


def _card(name: str, encoder: str, model: EncoderWithTowers, rows: Sequence[PairRows], curves: Sequence[Curve]) -> str:
    encoder = printable(encoder, 200).replace("`", "'")
    tasks = [text for task, text in _NAMES.items() if task in model.values.tasks]
    summary = (
        f"Sentence embeddings of `{encoder}`, scaled to length 1, with towers and heads trained on {listed(tasks)} as "
        "in multilingual USE (Yang et al., ACL 2020). The encoder itself was not changed."
    )
    sizes = [(_NAMES[each.task], each.language, f"{len(each):,}") for each in rows]
    shown = [
        (each.measure, f"{each.rows:,}", " ".join(f"{100 * value:.1f}" for value in each.values), str(each.best))
        for each in curves
    ]
    sections = (
        ("Training", f"By `st-paragram towers`, st_paragram {installed_version()}, on these rows:"),
        ("Rows", markdown_table(("task", "language", "rows"), sizes, left=2)),
        ("On rows held out", markdown_table(("measure", "rows", "% before and after each epoch", "kept"), shown)),
        ("Citation", f"```bibtex\n{MUSE}\n```"),
    )
    card = Card(
        name=printable(name, 100),
        summary=summary,
        stock=False,
        usage=_USAGE,
        note=_CLASSIFY if model.has_classifier else "",
        licence="other",
        licence_name="terms-of-the-encoder-and-the-text",
        terms=f"The encoder has the terms that the model card of `{encoder}` states; each text keeps its own license.",
        sections=sections,
    )
    return render(card)
