"""Benchmarks of mining: `python benchmarks/mining.py PART ...`, of which each has its own `--help`.

planted    known pairs hidden among sentences without a translation: precision, recall and F1 by each margin
bucc       the same on files of the BUCC shared task, beside the figures of benchmarks/bucc.py
scaling    time by stage and memory against the number of sentences
indexes    what indexes that are not exact save and lose
peers      beside a straight implementation, and beside sentence-transformers' paraphrase mining

Every part prints Markdown, writes a record with `--json FILE` and pictures to `--plot DIR`. Mining is run in processes
of its own, whose memory is watched (Linux only).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import mining_indexes, mining_peers, mining_scaling
from harness.mining_known import mine_known
from harness.mining_planted import Recipe, write_planted
from harness.mining_process import WatchedMining
from harness.mining_scores import HEAD, LABELS, Scored, score_figures, score_rows
from harness.mining_texts import write_distinct

from st_paragram.bitext_mining.margin import DEFAULT_K
from st_paragram.bitext_mining.settings import MiningSettings
from st_paragram.cli.main import run_reporting_errors
from st_paragram.evaluation.record import new_record, write_record
from st_paragram.search.settings import AUTO, parse_memory
from st_paragram.tables import hundredths, markdown_table

Figures = dict[str, Any]


def main() -> int:
    """Run one part."""
    arguments = _parser().parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        data, results = arguments.run(arguments, Path(temporary))
    if arguments.json:
        record = new_record(f"mining-{arguments.part}", [arguments.model], data, {arguments.model: results})
        write_record(record, arguments.json)
    return 0


def planted(arguments: argparse.Namespace, folder: Path) -> tuple[Figures, Figures]:
    """Known pairs among distractors."""
    recipe = Recipe(
        str(arguments.bitext),
        tuple(arguments.held),
        arguments.held_swapped,
        arguments.planted,
        arguments.distractors,
        (tuple(arguments.distractor_source), tuple(arguments.distractor_target)),
        arguments.target_share,
        arguments.block,
        arguments.seed,
    )
    made = write_planted(recipe, folder / "planted", arguments.pair)
    counts = " and ".join(f"{all_:,}" for all_ in made.distractors)
    _say(f"{made.pairs:,} known pairs among {counts} distractors ({arguments.pair})")
    _say(f"left out: {made.known_to_model} held pairs that are in the bitext, {made.repeated} that repeat a side")
    _say(f"not taken, since near to others: {made.near[0]:,} sources, {made.near[1]:,} targets")
    if any(made.from_more):
        _say(f"from further texts: {made.from_more[0]:,} sources, {made.from_more[1]:,} targets")
    if made.pairs < arguments.planted or min(made.distractors) < arguments.distractors:
        _say(f"(fewer than the {arguments.planted:,} and {arguments.distractors:,} asked for: the texts have no more)")
    memory = parse_memory(arguments.memory)
    scored, mined = mine_known(
        folder / "planted", arguments.pair, arguments.model, folder, arguments.k, memory, arguments.index
    )
    _print_scored(f"Planted pairs, {arguments.pair}, {arguments.model}", scored, mined)
    return asdict(recipe) | asdict(made), score_figures(scored) | {"mining": _mining(mined)}


def bucc(arguments: argparse.Namespace, folder: Path) -> tuple[Figures, Figures]:
    """BUCC's files, by the command and by the evaluation."""
    from harness.mining_scores import score_mined

    from st_paragram.evaluation.bucc import mine
    from st_paragram.evaluation.bucc_files import bucc_prefix, read_bucc
    from st_paragram.evaluation.correlation import embed
    from st_paragram.evaluation.models import load_model

    prefix = bucc_prefix(arguments.data, arguments.pair)
    memory = parse_memory(arguments.memory)
    scored, mined = mine_known(
        prefix, arguments.pair, arguments.model, folder, arguments.k, memory, arguments.index, arguments.seed
    )
    _print_scored(f"BUCC {prefix.name}, {arguments.model}", scored, mined)
    texts, model = read_bucc(prefix, arguments.pair), load_model(arguments.model)
    evaluated = mine(embed(model, texts.source), embed(model, texts.target), arguments.k)
    expected = score_mined(evaluated, texts, arguments.seed)
    rows = [
        [how, LABELS[margin], hundredths(row.f1, 2), hundredths(expected[how][margin].f1, 2)]
        for how, by_margin in scored.items()
        for margin, row in by_margin.items()
    ]
    _say(markdown_table(("threshold", "score", "F1, mine", "F1, benchmarks/bucc.py"), rows))
    return {"data": str(prefix), "k": arguments.k}, {
        "mine": score_figures(scored),
        "evaluation": score_figures(expected),
        "mining": _mining(mined),
    }


def scaling(arguments: argparse.Namespace, folder: Path) -> tuple[Figures, Figures]:
    """Sizes."""
    settings = MiningSettings(k=arguments.k, memory=parse_memory(arguments.memory), index=arguments.index)
    sizes = []
    _say(f"## Mining of N x N sentences, memory {arguments.memory}, workers: {arguments.workers}; seconds by stage\n")
    for count in arguments.sizes:
        sizes.append(
            mining_scaling.measure_size(arguments.bitext, arguments.model, count, folder, settings, arguments.workers)
        )
        table = markdown_table(mining_scaling.HEAD, [mining_scaling.size_row(sizes[-1])])
        _say(table if len(sizes) == 1 else table.split("\n")[-1])
    _say("\nMost time: " + "; ".join(mining_scaling.growth(sizes)))
    if arguments.plot:
        from harness.mining_plots import plot_scaling

        plot_scaling(sizes, arguments.plot / "mining-scaling.png")
    data = {"bitext": str(arguments.bitext), "memory": arguments.memory, "workers": arguments.workers}
    return data, {"sizes": [asdict(size) for size in sizes]}


def indexes(arguments: argparse.Namespace, folder: Path) -> tuple[Figures, Figures]:
    """Exact search against others."""
    from st_paragram.evaluation.models import load_model

    texts = write_distinct(arguments.bitext, folder, arguments.sentences)
    model = load_model(arguments.model)
    sides = [mining_indexes.embed_text(model, text, folder / text.suffix[1:]) for text in texts]
    factories = arguments.factories or mining_indexes.default_factories(len(sides[1]), sides[1].dim)
    points = []
    _say(f"## {arguments.queries:,} queries in {len(sides[1]):,} sentences, the {arguments.k} nearest, all cores\n")
    for point in mining_indexes.compare_indexes(
        sides[1], sides[0], factories, folder, arguments.k, arguments.queries, arguments.rounds
    ):
        points.append(point)
        table = markdown_table(mining_indexes.HEAD, mining_indexes.index_rows(points))
        _say(table if len(points) == 1 else table.split("\n")[-1])
    if arguments.plot:
        from harness.mining_plots import plot_indexes

        plot_indexes(points, arguments.plot / "mining-indexes.png")
    data = {"bitext": str(arguments.bitext), "sentences": arguments.sentences, "k": arguments.k}
    return data | {"queries": arguments.queries}, {"points": [asdict(point) for point in points]}


def peers(arguments: argparse.Namespace, folder: Path) -> tuple[Figures, Figures]:
    """Others' mining."""
    memory = parse_memory(arguments.memory)
    comparisons = []
    if arguments.sentences:
        texts = write_distinct(arguments.bitext, folder, arguments.sentences)
        comparisons.append(
            mining_peers.compare_bitext(
                texts, arguments.model, folder, arguments.rounds, arguments.k, memory, arguments.ratios
            )
        )
        _print_comparison(comparisons[-1], f"{arguments.sentences:,} x {arguments.sentences:,} sentences", arguments)
    if arguments.paraphrase_sentences:
        text = write_distinct(arguments.bitext, folder, arguments.paraphrase_sentences)[0]
        comparisons.append(
            mining_peers.compare_paraphrases(
                text, arguments.model, folder, arguments.rounds, arguments.top_k, memory, arguments.cosines
            )
        )
        what = f"{arguments.paraphrase_sentences:,} sentences, top_k {arguments.top_k}"
        _print_comparison(comparisons[-1], what, arguments)
    data = {"sentences": arguments.sentences, "paraphrase sentences": arguments.paraphrase_sentences}
    data |= {"rounds": arguments.rounds, "k": arguments.k, "top_k": arguments.top_k}
    return data, {comparison.title: comparison.figures() for comparison in comparisons}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for run in (planted, bucc, scaling, indexes, peers):
        part = parts.add_parser(run.__name__, help=run.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        part.set_defaults(run=run)
        add = part.add_argument
        add("--model", required=True)
        if run is not bucc:
            add("--bitext", required=True, type=Path, help="source TAB target, plain or compressed")
        add("--k", type=int, default=DEFAULT_K, help="neighbours")
        add("--memory", default="4G", help="that mining may take")
        add("--folder", type=Path, default=Path(), help="for temporary files: some 5 KB a sentence")
        add("--json", type=Path, metavar="FILE")
        add("--plot", type=Path, metavar="DIR")
        if run in (planted, bucc, scaling):
            add("--index", default=AUTO)
        if run in (planted, bucc):
            add("--pair", default="en-xx" if run is planted else "zh-en", help="codes of the languages")
            add("--seed", type=int, default=0)
        if run in (indexes, peers):
            add("--rounds", type=int, default=3)
    _add_own(parts.choices)
    return parser


def _add_own(parts: dict[str, argparse.ArgumentParser]) -> None:
    add = parts["planted"].add_argument
    add("--held", nargs="+", required=True, metavar="FILE", help="known pairs, source TAB target")
    add("--held-swapped", action="store_true", help="their columns are target TAB source")
    add("--planted", type=int, default=1000, help="pairs")
    add("--distractors", type=int, default=200_000, help="on each side")
    add("--distractor-source", nargs="+", default=[], metavar="FILE", help="more sources (first column)")
    add("--distractor-target", nargs="+", default=[], metavar="FILE", help="more targets (first column)")
    add("--target-share", type=float, default=0.5, help="of the bitext's rows that give targets")
    add("--block", type=int, default=500, help="neighbouring rows of the bitext that are for one side")
    parts["bucc"].add_argument("--data", required=True, metavar="DIR|PREFIX", help="as for benchmarks/bucc.py")
    add = parts["scaling"].add_argument
    add("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 300_000, 1_000_000])
    add("--workers", type=int, default=1)
    add = parts["indexes"].add_argument
    add("--sentences", type=int, default=100_000)
    add("--queries", type=int, default=2000)
    add("--factories", nargs="+", metavar="FACTORY", help="faiss factory strings, instead of those for the size")
    add = parts["peers"].add_argument
    add("--sentences", type=int, default=50_000, help="on each side of the bitext; 0 leaves it out")
    add("--paraphrase-sentences", type=int, default=30_000, help="0 leaves paraphrases out")
    add("--top-k", type=int, default=20, help="neighbours, of paraphrases")
    add("--ratios", type=float, nargs="*", default=[1.05, 1.1], help="from which upwards pairs are compared too")
    add("--cosines", type=float, nargs="*", default=[0.7, 0.9], help="the same for paraphrases")


def _print_scored(title: str, scored: Scored, mined: WatchedMining) -> None:
    _say(f"\n## {title}; precision, recall, F1 x 100\n")
    _say(markdown_table(HEAD, score_rows(scored)))
    stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in mined.stages.items())
    indexes = ", ".join(sorted({each["index"] for each in mined.report["searched"]}))
    _say(f"\nIndex: {indexes}. Seconds: {stages}; all {mined.run.seconds:.1f}. Peak {_peak(mined)} MB.\n")


def _print_comparison(comparison: mining_peers.Comparison, what: str, arguments: argparse.Namespace) -> None:
    _say(f"\n## {comparison.title}: {what}; medians of {arguments.rounds} rounds\n")
    _say(markdown_table(mining_peers.HEAD, comparison.rows()) + "\n")
    _say(markdown_table(mining_peers.AGREEMENT_HEAD, mining_peers.agreement_rows(comparison.agreements)))


def _mining(mined: WatchedMining) -> Figures:
    run = {"seconds": mined.run.seconds, "peak_anonymous_mb": mined.run.peak_anonymous_mb}
    return run | {"stages": mined.stages, "searched": mined.report["searched"]}


def _peak(mined: WatchedMining) -> str:
    return f"{mined.run.peak_anonymous_mb:,.0f}"


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(run_reporting_errors("mining", main))
