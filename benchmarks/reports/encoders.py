"""Tables of encoders on texts: English similarity, similarity across languages, cost; beside them the paper's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import mean

from harness.families.encoders import STS, STS_SETS, EncoderRun

from st_paragram.core.tables import MISSING, markdown_table
from st_paragram.tools.evaluation.published import Source
from st_paragram.tools.evaluation.sts.benchmark import STS_2017, STS_BY_TEXT

_READING = "Cells have the mean over the seeds (lowest - highest). Rows in italics are published figures."


def encoders_tables(runs: Sequence[EncoderRun]) -> list[str]:
    """STS 2012-2016 of every encoder on every text; STS 2017; seconds and rates."""
    encoders, texts = (list(dict.fromkeys(getattr(run, name) for run in runs)) for name in ("encoder", "text"))

    def cells(figure: Callable[[EncoderRun], float | None], digits: int) -> list[list[str]]:
        return [
            [
                name,
                *(
                    spread([figure(run) for run in runs if (run.encoder, run.text) == (name, text)], digits)
                    for text in texts
                ),
            ]
            for name in encoders
        ]

    years = cells(lambda run: _hundred(run.scores.get(STS)), 1)
    sets = cells(lambda run: _hundred(run.scores.get(STS_SETS)), 1)
    published = [[f"*{row.label}*", *(_of(row.scores, text) for text in texts)] for row in STS_BY_TEXT]
    title = "STS 2012-2016 without SMT: Pearson x 100, mean over"
    tables = [f"{title} the years. {_READING}", markdown_table(["", *texts], years)]
    tables += [f"{title} all sets, as in the paper, which has SMT.", markdown_table(["", *texts], sets + published)]
    tables += ["STS 2017: Pearson x 100", _tracks(runs, texts)]
    tables += ["Seconds that training took", markdown_table(["", *texts], cells(lambda run: run.seconds, 0))]
    return [
        *tables,
        "Pairs a second while training",
        markdown_table(["", *texts], cells(lambda run: run.pairs_per_second, 0)),
    ]


def _tracks(runs: Sequence[EncoderRun], texts: Sequence[str]) -> str:
    """A row for each encoder and text, a column for each track of STS 2017."""
    tracks = sorted({key for run in runs for key in run.scores if key.startswith("2017/")})
    rows = []
    for encoder in dict.fromkeys(run.encoder for run in runs):
        for text in texts:
            same = [run for run in runs if (run.encoder, run.text) == (encoder, text)]
            if same:
                figures = [spread([_hundred(run.scores.get(track)) for run in same], 1) for track in tracks]
                rows.append([f"{encoder}, {text}", *figures])
    names = [track.removeprefix("2017/") for track in tracks]
    published = [
        [f"*{row.label}*", *(_of(row.scores, name) for name in names)] for row in STS_2017 if row.source is Source.SP
    ]
    return markdown_table(["", *names], rows + published)


def _of(scores: dict[str, float], column: str) -> str:
    return f"*{100 * scores[column]:.1f}*" if column in scores else MISSING


def _hundred(value: float | None) -> float | None:
    return None if value is None else 100 * value


def spread(values: Sequence[float | None], digits: int) -> str:
    """Mean, and the lowest and highest of several seeds."""
    found = [value for value in values if value is not None]
    if not found or len(found) < len(values):
        return MISSING
    if len(found) == 1:
        return f"{found[0]:.{digits}f}"
    return f"{mean(found):.{digits}f} ({min(found):.{digits}f} - {max(found):.{digits}f})"
