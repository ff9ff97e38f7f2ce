r"""Probing: which properties of one sentence per linear classifier finds in frozen embeddings.

    python benchmarks/probing.py --model p-sp-es --bitext en-es.tsv.xz --lang es --conllu UD_English-EWT

`--senteval FOLDER` takes SentEval's files (subj_number.txt, obj_number.txt, tree_depth.txt, top_constituents.txt,
word_content.txt, sentence_length.txt; --train 100000 --valid 10000 --test 10000 for all of them). `--bitext` makes
tasks of length, word content, punctuation and, for es and fr, gender of articles; `--conllu` makes tasks of number
and tree depth from a treebank of Universal Dependencies: pip install "st_paragram[probing]". Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from harness.output import write_result
from harness.quality.probing import find_tasks, run_probing
from harness.quality.probing_tasks import ProbingSettings
from reports.probing import probing_tables

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.settings import add_setting_options, given


def main() -> int:
    """Make tasks, probe every model and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", required=True, metavar="PATH", help="may be repeated")
    parser.add_argument("--senteval", type=Path, metavar="FOLDER", help="SentEval's probing files")
    parser.add_argument("--bitext", metavar="FILE", help="rows `english TAB other`, plain or compressed")
    parser.add_argument("--lang", metavar="CODE", help="of the second column of the bitext")
    parser.add_argument("--conllu", type=Path, metavar="FOLDER", help="with *.conllu files in it or beneath")
    parser.add_argument("--untrained", action="store_true", help="probe random embeddings, too")
    parser.add_argument("--published", action="store_true", help="print the paper's rows, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    add_setting_options(parser, ProbingSettings)
    arguments = parser.parse_args()
    settings = ProbingSettings(**given(arguments, ProbingSettings))
    tasks, notes = find_tasks(arguments.senteval, arguments.bitext, arguments.lang, arguments.conllu, settings)
    run = run_probing(arguments.model, tasks, notes, arguments.untrained)
    if arguments.json:
        write_result(arguments.json, settings=asdict(settings), run=asdict(run))
    print("\n\n".join(probing_tables(run, arguments.published)))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("probing", main))
