"""What plans say of removing duplicates."""

from __future__ import annotations

from st_paragram.core.plan import Needs, Plan
from st_paragram.tools.deduplication.settings import DeduplicationSettings, Method
from st_paragram.tools.options.plans import PlannedModel, PlannedText
from st_paragram.tools.options.search_plans import search_in_words, search_needs
from st_paragram.tools.search.settings import SearchSettings

# Measured on two cores with 1,000,000 lines of 13 words (docs/data.md).
_SECONDS_A_LINE = {Method.EXACT: 8e-6, Method.MINHASH: 100e-6}
_MEMORY = 150 << 20
_MEMORY_A_LINE = 20  # bytes
_BYTES_OF_A_WORD = 6


def deduplication_plan(
    text: PlannedText,
    columns: int,
    makes: list[str],
    settings: DeduplicationSettings,
    search: SearchSettings,
    model: PlannedModel | None,
    workers: int,
) -> Plan:
    """What would be done.

    Args:
        text: What is read.
        columns: Texts of a row.
        makes: What is made.
        settings: What counts as a duplicate.
        search: How embeddings are searched.
        model: That embeds; None without embeddings.
        workers: Processes.

    Raises:
        SettingsError: The index is refused.
        MissingExtraError: The index needs faiss, which is not installed.
    """
    methods, views = settings.methods, len(settings.views(columns))
    what = [f"methods {', '.join(method.value for method in methods)}; the {settings.keep.value} one stays"]
    what += [f"sides: {settings.sides.value}"] if columns == 2 else []
    if Method.MINHASH in methods:
        found = f"{settings.bands} keys of {settings.minima} minimum hashes"
        what.append(f"minhash: {settings.unit.value} {settings.size}-grams, threshold {settings.threshold:g}, {found}")
    if model is not None:
        what.append(f"embeddings: cosine {settings.cosine:g}, {settings.neighbors} neighbors")
        what.append(search_in_words(search, text.rows, text.rows, model))
    what.append(f"{workers:,} process{'' if workers == 1 else 'es'}")
    reads = [text.line, *([model.line] if model else [])]
    return Plan("remove duplicates", reads, makes, what, _needs(text, columns * views, settings, search, model))


def _needs(
    text: PlannedText, texts: int, settings: DeduplicationSettings, search: SearchSettings, model: PlannedModel | None
) -> Needs:
    if text.rows is None or text.bytes is None:
        return Needs()
    seconds: float | None = text.rows * texts * sum(_SECONDS_A_LINE.get(method, 0) for method in settings.methods)
    keys = 12 * (1 + settings.bands * (Method.MINHASH in settings.methods))
    disk: int | None = 2 * text.bytes + text.rows * texts * keys + 8 * text.bytes // _BYTES_OF_A_WORD
    memory: int | None = _MEMORY + _MEMORY_A_LINE * text.rows
    if model is not None:
        more = search_needs(search, text.rows, text.rows, model, texts=1)
        seconds = None if more.seconds is None or seconds is None else seconds + texts * more.seconds
        memory = None if more.memory is None or memory is None else max(memory, more.memory)
        disk = None if more.disk is None or disk is None else disk + texts * more.disk
    return Needs(seconds, memory, disk)
