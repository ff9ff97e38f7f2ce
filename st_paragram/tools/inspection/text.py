"""An inspection of a pair store as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from st_paragram.tools.inspection.statistics import SideInspection, StoreInspection, TokenizerUse

_BARS = 12  # rows of the histogram of lengths
_WIDTH = 30  # characters of its longest bar
_WIDTHS = (1, 2, 3, 4, 5, 8, 10, 15, 20, 25, 30, 40, 50, 75, 100)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # all but line feeds: pieces could steer the terminal


def render(inspection: StoreInspection) -> str:
    """The inspection as lines of plain text, ended by a line feed."""
    parts = (_head, _preparation, _lengths, _histogram, _vocabularies, _labels, _pairs)
    sections = ("".join(f"{line}\n" for line in part(inspection)) for part in parts)
    return _CONTROL.sub("?", "\n".join(section for section in sections if section))


def _head(found: StoreInspection) -> Iterator[str]:
    yield f"{found.path}: {found.pairs:,} pairs {'-'.join(_languages(found))}, {found.size / 1e6:,.1f} MB"
    cut = f"cut at {found.max_length} pieces" if found.max_length else "not cut"
    tokenizers = [_tokenizer(use) for use in found.tokenizers]
    if len(tokenizers) > 1:
        tokenizers = [f"side {side}: {each}" for side, each in zip("ab", tokenizers, strict=True)]
    yield f"{'; '.join(tokenizers)}; {cut}, seed {found.seed}"
    if len(found.row_languages) > 1:
        counts = (f"{'-'.join(pair)} {count:,}" for pair, count in found.row_languages.items())
        yield f"languages of the pairs: {', '.join(counts)}"


def _tokenizer(use: TokenizerUse) -> str:
    options = dict(use.options)
    parts = [f"{use.kind} tokenizer"]
    if (lower_case := options.pop("lower_case", None)) is not None:
        parts.append("lower case" if lower_case else "case as written")
    if (segmentation := options.pop("segmentation", "none")) != "none":
        parts.append(f"segmented by {segmentation}")
    return ", ".join([*parts, *(f"{name} {value}" for name, value in options.items())])


def _languages(found: StoreInspection) -> list[str]:
    return [side.language for side in found.sides]


def _preparation(found: StoreInspection) -> Iterator[str]:
    """The settings that are plain values, and of the report the texts and what was dropped."""
    report = found.settings.get("report")
    report = report if isinstance(report, dict) else {}
    plain = {name: value for name, value in found.settings.items() if name != "report"}
    if plain:
        yield "Preparation"
        yield from (f"  {name}: {_short(value)}" for name, value in plain.items())
    sources = report.get("sources")
    for source in sources if isinstance(sources, list) else []:
        if isinstance(source, dict):
            yield f"  {source.get('name', 'text')}: {_source(source)}"


def _source(source: dict[str, Any]) -> str:
    numbers = [f"{source[name]:,} {name}" for name in ("rows", "kept") if isinstance(source.get(name), int)]
    dropped = source.get("dropped")
    losses = dropped.items() if isinstance(dropped, dict) else ()
    return ", ".join(numbers + [f"{count:,} {reason}" for reason, count in losses if isinstance(count, int) and count])


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 100 else text[:97] + "..."


def _lengths(found: StoreInspection) -> Iterator[str]:
    yield "Pieces per sentence"
    shares = list(found.sides[0].quantiles())
    header = ["mean", *(f"{100 * share:g} %" for share in shares), "at the limit", "unknown", "pieces"]
    rows = [[f"{side.mean:.1f}", *map(str, side.quantiles().values()), *_shares(side)] for side in found.sides]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for name, row in zip(["side", *_languages(found)], [header, *rows], strict=True):
        yield "  " + f"{name:<6}" + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    ratios = ", ".join(f"{100 * share:g} %: {ratio:.2f}" for share, ratio in found.ratio.items())
    total = found.sides[1].pieces / found.sides[0].pieces
    yield f"  length of {_side_names(found)[1]} over {_side_names(found)[0]}: {ratios}; of all pieces: {total:.2f}"


def _shares(side: SideInspection) -> tuple[str, str, str]:
    return f"{100 * side.at_limit:.2f} %", f"{100 * side.unknown:.3f} %", f"{side.pieces:,}"


def _side_names(found: StoreInspection) -> list[str]:
    """Languages, distinguished if both are the same."""
    names = _languages(found)
    return names if names[0] != names[1] else [f"{name} ({side})" for name, side in zip(names, "ab", strict=True)]


def _histogram(found: StoreInspection) -> Iterator[str]:
    """Bars of sentences by length; the last one holds what is longer than nearly all."""
    longest = max(side.quantiles()[0.99] for side in found.sides)
    width = next((width for width in _WIDTHS if width * _BARS > longest), longest // _BARS + 1)
    edges = np.arange(1, longest + 1, width)
    bars = [np.add.reduceat(np.append(side.lengths, np.zeros(longest + 1, np.int64)), edges) for side in found.sides]
    tallest = max(int(bar.max()) for bar in bars)
    columns = [f"{name:<{_WIDTH + 9}}" for name in _side_names(found)]
    yield f"  {'pieces':>9}  {' '.join(columns)}".rstrip()
    for place, edge in enumerate(edges.tolist()):
        label = f"{edge}+" if place == len(edges) - 1 else f"{edge}-{edge + width - 1}" if width > 1 else str(edge)
        cells = [f"{_bar(int(bar[place]), tallest):<{_WIDTH}} {100 * bar[place] / found.pairs:5.1f} %" for bar in bars]
        yield f"  {label:>9}  {'  '.join(cells)}"


def _bar(count: int, tallest: int) -> str:
    return "#" * (-(-count * _WIDTH // tallest) if count else 0)


def _vocabularies(found: StoreInspection) -> Iterator[str]:
    if len(found.tokenizers) == 1:
        both = zip(_side_names(found), found.sides, strict=True)
        shares = ", ".join(f"{name} {100 * side.used:.1f} %" for name, side in both)
        yield from _vocabulary("Vocabulary", f"; {shares}", found.tokenizers[0], sum(s.pieces for s in found.sides))
        return
    for name, side, use in zip(_side_names(found), found.sides, found.tokenizers, strict=True):
        yield from _vocabulary(f"Vocabulary of {name}", "", use, side.pieces)


def _vocabulary(name: str, shares: str, use: TokenizerUse, total: int) -> Iterator[str]:
    yield f"{name}: {use.size:,} pieces, {use.ordinary:,} without those for control and unknown text"
    share = use.used / max(use.ordinary, 1)
    yield f"  occur in the store: {use.used:,} ({100 * share:.1f} %{shares}); once only: {use.once:,}"
    if use.most_frequent:
        named = ", ".join(f"{piece} {100 * count / total:.1f} %" for piece, count in use.most_frequent)
        yield f"  most frequent: {named}"


def _labels(found: StoreInspection) -> Iterator[str]:
    use = found.labels
    if use is not None:
        yield f"Labels from {use.least:g} to {use.greatest:g}, mean {use.mean:.3g}"
        if use.counts is not None:
            counts = (f"{label:g}: {100 * count / found.pairs:.1f} %" for label, count in use.counts.items())
            yield f"  {', '.join(counts)}"


def _pairs(found: StoreInspection) -> Iterator[str]:
    if found.examples:
        yield f"{len(found.examples)} pairs drawn at random"
    for example in found.examples:
        yield f"  {example.row:,}" if example.label is None else f"  {example.row:,}, label {example.label:g}"
        yield from (f"    {name}  {text}" for name, text in zip(example.languages, example.texts, strict=True))
