"""Time and memory of mining, also in comparison with sentence-transformers' paraphrase mining.

    python benchmarks/mining.py --bitext en-es.tsv --sizes 10000 100000
    python benchmarks/mining.py --bitext en-es.tsv --sizes --paraphrases 30000

The bitext is repeated and changed to the requested sizes. Every run is a new process, whose memory
is measured (Linux).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from harness.output import new_file, print_growing, write_result
from harness.processes import Program, Run, in_turn, spread
from harness.texts import write_distinct

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.formatting import markdown_table
from st_paragram.tools.bitext_mining.miner import mine
from st_paragram.tools.bitext_mining.settings import MiningSettings

STAGES = ["sentences", "embed", "search", "pairs"]
HEAD = [
    "sentences per side",
    "start",
    *STAGES,
    "all, s",
    "pairs",
    "peak RssAnon, MB",
    "index",
    "recall",
]
OURS, PEER = "st_paragram", "sentence-transformers"
Pairs = dict[tuple[str, str], float]


def process(
    name: str, model: str, output: str, settings: dict[str, Any], texts: list[str]
) -> dict[str, Any]:
    """Mine with one of the programs; return the report."""
    if name == OURS:
        return asdict(mine(texts, output, model, MiningSettings(**settings), overwrite=True))
    from sentence_transformers.util import paraphrase_mining

    import st_paragram

    lines, k = (
        Path(texts[0]).read_text(encoding="utf-8").removesuffix("\n").split("\n"),
        settings["neighbors"],
    )
    # no limit that drops pairs, and batches as large as ours
    pairs = paraphrase_mining(
        st_paragram.load(model),
        lines,
        top_k=k,
        max_pairs=k * len(lines),
        batch_size=4096,
        show_progress_bar=False,
    )
    with Path(output).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(
            f"{score:.6f}\t{lines[int(one)]}\t{lines[int(other)]}\n" for score, one, other in pairs
        )
    return {"pairs": len(pairs)}


def program(name: str, model: str, output: Path, settings: dict[str, Any], *texts: Path) -> Program:
    """Return a process of one of the programs."""
    return Program(
        [
            __file__,
            "--process",
            json.dumps([name, model, str(output), settings, [*map(str, texts)]]),
        ]
    )


def size_row(count: int, run: Run) -> list[str]:
    """Return a row under `HEAD`."""
    report = run.figures
    seconds = [report["seconds"].get(stage, 0.0) for stage in STAGES]
    searched = report["searched"][0]
    return [
        f"{count:,}",
        *(f"{value:.1f}" for value in (run.seconds - sum(seconds), *seconds, run.seconds)),
        f"{report['pairs']:,}",
        f"{run.peak_anonymous_mb:,.0f}",
        searched["index"] or "exact",
        f"{searched['effort']['recall']:.3f}" if searched["effort"] else "1",
    ]


def read_pairs(path: Path) -> Pairs:
    """Read the pairs of a file `score TAB one TAB other`, in either order, with their scores."""
    rows = (
        line.split("\t") for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    )
    return {(min(one, other), max(one, other)): float(score) for score, one, other in rows}


def agreement(ours: Pairs, theirs: Pairs, least: float) -> list[str]:
    """Compare pairs with a score of at least `least`: their number, the shares in common, and score
    differences.
    """
    one, two = ({pair for pair, score in each.items() if score >= least} for each in (ours, theirs))
    shared = (one | two) & ours.keys() & theirs.keys()
    shares = [100 * len(a & b.keys()) / max(len(a), 1) for a, b in ((one, theirs), (two, ours))]
    difference = max((abs(ours[pair] - theirs[pair]) for pair in shared), default=0.0)
    return [
        f"{least:g}",
        f"{len(one):,}",
        f"{len(two):,}",
        *(f"{share:.3f}" for share in shares),
        f"{difference:.5f}",
    ]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--bitext", type=Path, metavar="FILE", help="two tab-separated columns, plain or compressed"
    )
    add("--model", default="p-sp-mini", help="(%(default)s)")
    sizes = [10_000, 30_000, 100_000, 300_000, 1_000_000]
    add(
        "--sizes",
        type=int,
        nargs="*",
        default=sizes,
        help="sentences per side for mining translations (%(default)s)",
    )
    add(
        "--paraphrases",
        type=int,
        default=0,
        metavar="N",
        help="compare paraphrase mining in N sentences (default: no)",
    )
    add("--top-k", type=int, default=20, help="neighbors for paraphrases (%(default)s)")
    add("--rounds", type=int, default=3, help="rounds of the comparison (%(default)s)")
    add("--index", default="auto", help="see `st-paragram mine --help`")
    add("--memory", default="4G", help="see `st-paragram mine --help`")
    add(
        "--folder",
        type=Path,
        default=Path(),
        help="folder for temporary files: about 5 KB per sentence",
    )
    add("--json", type=new_file, metavar="FILE", help="also write the figures")
    add("--process", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        print(json.dumps(process(*json.loads(arguments.process)), default=str))
        return 0
    if arguments.bitext is None:
        parser.error("--bitext is missing; give a file")
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)

        def rows() -> Iterator[list[str]]:
            settings = {"index": arguments.index, "memory": arguments.memory}
            for count in arguments.sizes:
                texts = write_distinct(arguments.bitext, folder, count)
                run = program(OURS, arguments.model, folder / "pairs", settings, *texts).run()
                figures[str(count)] = {
                    "seconds": run.seconds,
                    "peak_mb": run.peak_anonymous_mb,
                    **run.figures,
                }
                yield size_row(count, run)

        print_growing(HEAD, rows())
        if arguments.paraphrases:
            text, _ = write_distinct(arguments.bitext, folder, arguments.paraphrases)
            settings = {
                "neighbors": arguments.top_k,
                "margin": "absolute",
                "candidates": "all",
                "paraphrase": True,
            }
            outputs = {each: folder / each for each in (OURS, PEER)}
            runs = in_turn(
                {
                    each: program(each, arguments.model, path, settings, text)
                    for each, path in outputs.items()
                },
                arguments.rounds,
            )
            seconds = {each: [run.seconds for run in some] for each, some in runs.items()}
            peaks = {
                each: f"{median(run.peak_anonymous_mb for run in some):,.0f}"
                for each, some in runs.items()
            }
            table = [[each, spread(seconds[each]), peaks[each]] for each in runs]
            head = ["paraphrases", "seconds: median (range)", "peak RssAnon, MB"]
            print(f"\n{markdown_table(head, table)}\n")
            ours, theirs = map(read_pairs, outputs.values())
            head = [
                "score from",
                "our pairs",
                "theirs",
                "% of ours that they have",
                "% of theirs",
                "largest difference",
            ]
            print(
                markdown_table(head, [agreement(ours, theirs, least) for least in (-1, 0.7, 0.9)])
            )
            figures["paraphrases"] = seconds
    write_result(arguments.json, figures=figures)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mining", main))
