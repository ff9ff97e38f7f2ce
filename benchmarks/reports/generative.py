"""Tables and a picture of the generative model next to its ablations and baselines, with the paper's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from harness.families.encoders import STS
from harness.families.generative import GenerativeRun

from reports.encoders import spread
from st_paragram.core.figures import COLOURS, SMALL, new_figure, save, tidy
from st_paragram.core.tables import markdown_table

#: Mean of STS 2012-2016 with SMT, Hard+, Hard-, Pearson x 100 (EMNLP 2020, table 2; en-fr, 1M pairs, 1,024 components).
PUBLISHED = {
    "BGT": (73.1, 22.5, 46.6),
    "BGT without language variables": (72.3, 24.1, 46.8),
    "BGT without prior": (71.6, 17.9, 45.5),
    "BilingualTrans": (71.4, 20.0, 48.2),
    "EnglishTrans": (71.3, 18.0, 47.2),
    "EnglishVAE": (65.9, 16.8, 42.7),
    "EnglishAE": (65.7, 15.7, 36.0),
    "SP": (71.9, 19.1, 29.8),
}
_COLUMNS = (STS, "Hard+", "Hard-")
_WIDTH, _HEIGHT = 11.0, 3.4
_SHOWN = {
    "kl_semantic": "KL of the semantic variable, nats",
    "kl_a": "KL of English's variable, nats",
    "kl_b": "KL of the other language's, nats",
    "active_units": "active units of the semantic one",
}


def generative_tables(runs: Sequence[GenerativeRun], language: str) -> list[str]:
    """English similarity next to the paper's; across languages, Tatoeba; cost. Means over seeds, lowest and highest.

    Args:
        runs: in the order of the rows.
        language: other than English; sets of others are left out.
    """
    names = list(dict.fromkeys(run.name for run in runs))
    trained = [name for name in names if any(run.name == name and run.seconds and " / " not in name for run in runs)]
    keys = dict.fromkeys(key for run in runs for key in run.scores if _is_of(key, language))
    tracks = sorted(key for key in keys if key.startswith(("2017/", "stsb/", "tatoeba/")))

    def row(name: str, *figures: Callable[[GenerativeRun], float | None], digits: int = 1) -> list[str]:
        same = [run for run in runs if run.name == name]
        return [name, *(spread([figure(run) for run in same], digits) for figure in figures)]

    english = [row(name, *map(_score_of, _COLUMNS)) for name in names]
    english += [[f"*{name}, paper*", *(f"*{value}*" for value in values)] for name, values in PUBLISHED.items()]
    across = [row(name, *map(_score_of, tracks)) for name in names]
    cost = [row(name, *_COSTS.values(), digits=0) for name in trained]
    return [
        "STS 2012-2016 without SMT, Hard STS: Pearson x 100",
        markdown_table(["", "STS 2012-2016", "Hard+", "Hard-"], english),
        "STS 2017: Pearson x 100; Tatoeba: errors in %",
        markdown_table(["", *(track.removeprefix("2017/") for track in tracks)], across),
        "Training",
        markdown_table(["", *_COSTS], cost),
    ]


_COSTS: dict[str, Callable[[GenerativeRun], float | None]] = {
    "seconds": lambda run: run.seconds,
    "pairs/s": lambda run: run.pairs_per_second,
    "pieces/s": lambda run: run.pieces_per_second,
    "MB": lambda run: run.peak_mb,
    "KL semantic, nats": lambda run: _last(run, "kl_semantic"),
    "KL of English, nats": lambda run: _last(run, "kl_a"),
    "active units": lambda run: _last(run, "active_units"),
}


def plot_generative(runs: Sequence[GenerativeRun], path: Path) -> None:
    """What each latent variable holds over updates, and how much of the semantic one is active; first seeds."""
    figure = new_figure(_WIDTH, _HEIGHT)
    shown = {run.name: run for run in reversed(runs) if run.history}
    for axes, (key, title) in zip(figure.subplots(1, len(_SHOWN)), _SHOWN.items(), strict=True):
        for colour, (name, run) in zip(COLOURS * 2, reversed(shown.items()), strict=False):
            points = [(line["step"], line[key]) for line in run.history if key in line]
            if points:
                axes.plot(*zip(*points, strict=True), color=colour, label=name, linewidth=1.2)
        axes.set_title(title, fontsize=SMALL)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("updates")
        tidy(axes)
    figure.legend(*figure.axes[-1].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=SMALL)
    save(figure, path)


def _is_of(key: str, language: str) -> bool:
    """Whether a track of STS 2017 has no other language than these two."""
    languages = {part for part in key.partition("/")[2].split("-") if part.isalpha()}
    return not key.startswith("2017/") or languages <= {"en", language}


def _score_of(key: str) -> Callable[[GenerativeRun], float | None]:
    def figure(run: GenerativeRun) -> float | None:
        value = run.scores.get(key)
        return None if value is None else 100 * value

    return figure


def _last(run: GenerativeRun, key: str) -> float | None:
    values = [line[key] for line in run.history if key in line]
    return values[-1] if values else None
