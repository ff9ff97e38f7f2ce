"""Mining from end to end: sentences, embeddings, neighbors both ways, margins, pairs.

Every stage leaves its results in a work folder, task by task, so a run that was interrupted is resumed where it
stopped, and one with another margin or threshold searches nothing again. The pairs do not depend on the size of shards
nor on who did the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from st_paragram.core.encoding.find import find
from st_paragram.core.files import check_output, file_digest
from st_paragram.core.words import counted
from st_paragram.errors import SettingsError
from st_paragram.tools.bitext_mining.pipeline import Pipeline, build
from st_paragram.tools.bitext_mining.report import MiningReport
from st_paragram.tools.bitext_mining.sentence_stage import SentenceStage
from st_paragram.tools.bitext_mining.settings import MiningSettings
from st_paragram.tools.embed_files.collection import one_for_each
from st_paragram.tools.stages.work import Work, work_folder


def mine(
    texts: Sequence[str],
    output: str | Path,
    model: str,
    settings: MiningSettings | None = None,
    overwrite: bool = False,
    work: Work | None = None,
    columns: Sequence[str | None] = (),
) -> MiningReport:
    """Find sentences of two texts, or of one, that mean the same, and write them to a file.

    Args:
        texts: Source and target; for paraphrases one text. Plain or compressed, one sentence per line.
        output: The file to make, `score TAB source TAB target`, best pairs first.
        model: Directory, name or hub id of a model.
        settings: What to do.
        overwrite: Replace an output that exists. One that was made in this very work folder, of the same texts and
            with the same settings, stays in any case.
        work: How to go about it; changes nothing in the pairs.
        columns: Of each text its column, if it is a table (`tables.read_columns`); None, or nothing at all, for plain
            text.

    Raises:
        TextError: A text cannot be read.
        MiningError: A text has too few sentences, or embeddings have no direction.
        SettingsError: Settings are refused.
        ModelDirectoryError: There is no such model.
        MissingExtraError: The search is not exact, and faiss is not installed.
        ParagramError: The output exists or cannot be made, or another run is at work in the folder.

    Example:
        >>> from st_paragram import MiningSettings, mine
        >>> report = mine(["wiki.en", "wiki.es"], "mined.tsv", "p-sp-mini", MiningSettings(threshold=0.0))
    """
    settings, work, output = settings or MiningSettings(), work or Work(), Path(output)
    _check(texts, output, settings, overwrite, work, columns)
    found = find(model)
    with work_folder(work, output):
        pipeline = _pipeline(texts, output, found, settings, overwrite, work, columns)
        times = work.run(pipeline.stages)
        report = pipeline.report(times)
        pipeline.forget_others()
    return report


def _check(
    texts: Sequence[str],
    output: Path,
    settings: MiningSettings,
    overwrite: bool,
    work: Work,
    columns: Sequence[str | None],
) -> None:
    """Refuse what can be refused before a text is read."""
    wanted = 1 if settings.paraphrase else 2
    if len(texts) != wanted:
        seen = f"{counted(len(texts), 'text')}, where {wanted} {'is' if wanted == 1 else 'are'} needed"
        raise SettingsError(f"{seen}; paraphrases are mined in one text, translations in two")
    if any(columns) and settings.with_ids:
        raise SettingsError("a column was named, and lines with ids are wanted; ids are read from plain text only")
    check_output(output, overwrite=True)  # whether it can be made at all
    for text in texts:
        file_digest(text)
    if not work.folder_for(output).exists():  # else the output may be what was made there
        check_output(output, overwrite)


def _pipeline(
    texts: Sequence[str],
    output: Path,
    model: Path,
    settings: MiningSettings,
    overwrite: bool,
    work: Work,
    columns: Sequence[str | None],
) -> Pipeline:
    """The stages; refuses an output that exists, unless it is what this very work folder has made."""
    from st_paragram.core.encoding.directory import fingerprint

    identities = tuple(map(file_digest, texts))
    folder = work.folder_for(output)
    named = one_for_each(columns, texts)
    sentences = SentenceStage(folder, tuple(texts), identities, settings.with_ids, settings.most_repeats, named)
    pipeline = build(sentences, output, model, fingerprint(model), settings, work.workers)
    if not pipeline.made_output():
        check_output(output, overwrite)
    return pipeline
