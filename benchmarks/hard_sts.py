"""Hard STS: `python benchmarks/hard_sts.py MODEL... --data FOLDER`.

Splits of STS 2012-2016 where likeness in words misleads (symmetric word error rate against grade) and with a negation
on one side, after BGT (Wieting et al., EMNLP 2020). The folder is that of benchmarks/sts.py; `--hub` fetches what it
lacks. Prints Markdown tables with the paper's rows and numbers of pairs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from st_paragram.cli.main import run_reporting_errors
from st_paragram.errors import SettingsError
from st_paragram.evaluation.models import load_model
from st_paragram.evaluation.published import HARD_STS, HARD_STS_NAMED, HARD_STS_PAIRS
from st_paragram.evaluation.record import new_record, write_record
from st_paragram.evaluation.sts.catalogue import YEARS
from st_paragram.evaluation.sts.hard import SPLITS, SplitScore, different_pairs, score_hard_sts, split_rows
from st_paragram.evaluation.sts.sts_files import find_sts
from st_paragram.tables import MISSING, hundredths, markdown_table

NOTES = (
    "Hard+ and Hard- are as the paper's text defines them. Its Table 1 shows examples the other way round, so the "
    "published figures of these two columns may belong to each other's definition.",
    "Published rows are on the paper's splits, which have STS 2013 SMT too and come of another tokeniser.",
)


def main() -> int:
    """Score every model on every split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--hub", action="store_true", help="fetch from the Hugging Face hub what the folder lacks")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.hub:
        raise SettingsError("no data: give --data FOLDER, --hub, or both")

    data = find_sts(arguments.data, YEARS, arguments.hub)
    pairs = different_pairs(data.everything().values())
    rows = split_rows(pairs)
    models = {name: score_hard_sts(load_model(name), pairs, rows) for name in dict.fromkeys(arguments.models)}

    print("## Hard STS: which pairs\n")
    counts = ((s.name, s.definition, f"{len(rows[s.name]):,}", _paper_count(s.name)) for s in SPLITS)
    print(markdown_table(("split", "definition", "pairs", "pairs in the paper"), list(counts)))
    print("\n## Hard STS: Pearson / Spearman x 100\n")
    print(markdown_table(("model", *rows), [*(_row(*model) for model in models.items()), *_published_rows()]))
    print()
    for note in (*NOTES, *data.notes):
        print(f"- {note}")
    if arguments.json:
        results = {name: {key: _result(score) for key, score in scores.items()} for name, scores in models.items()}
        about = {"folder": str(arguments.data or ""), "hub": arguments.hub, "notes": [*data.notes, *NOTES]}
        write_record(new_record("hard-sts", list(models), about, results), arguments.json)
    return 0


def _paper_count(name: str) -> str:
    return f"{HARD_STS_PAIRS[name]:,}" if name in HARD_STS_PAIRS else MISSING


def _row(name: str, scores: dict[str, SplitScore]) -> list[str]:
    both = (score.correlation for score in scores.values())
    return [name, *(f"{hundredths(found.pearson)} / {hundredths(found.spearman)}" for found in both)]


def _published_rows() -> list[list[str]]:
    """One row a model: the paper has the two splits with names and those of its appendix in two tables."""
    scores: dict[str, dict[str, float]] = {}
    for row in (*HARD_STS, *HARD_STS_NAMED):
        scores[row.label] = scores.get(row.label, {}) | row.scores
    return [[label, *(hundredths(found.get(split.name)) for split in SPLITS)] for label, found in scores.items()]


def _result(score: SplitScore) -> dict[str, float]:
    return {"pairs": score.pairs, "pearson": score.correlation.pearson, "spearman": score.correlation.spearman}


if __name__ == "__main__":
    sys.exit(run_reporting_errors("hard_sts", main))
