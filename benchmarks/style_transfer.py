r"""Style transfer: the meaning of one sentence written in the style of another, by a generative model.

    python benchmarks/style_transfer.py bgt-es --pairs pairs.tsv --to en

Rows of the file are `source TAB style`: sources of either language of the model, styles of the one that is written.
Prints a Markdown table of what was written, with measures, and a table of the measures' means.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from harness.families.style_transfer import run_style_transfer, style_tables
from harness.output import write_result

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.encoding.find import SHIPPED
from st_paragram.core.settings import add_setting_options, given
from st_paragram.families.bgt.generation.settings import GenerationSettings


def main() -> int:
    """Write, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="a directory made by st-paragram train bgt")
    parser.add_argument("--pairs", required=True, metavar="FILE.tsv", help="rows `source TAB style`")
    parser.add_argument("--to", metavar="LANG", help="language to write (the model's first)")
    parser.add_argument("--scorer", default=SHIPPED, metavar="MODEL", help="embeds sentences for cosines (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    add_setting_options(parser, GenerationSettings)
    arguments = parser.parse_args()
    settings = GenerationSettings(**given(arguments, GenerationSettings))
    run = run_style_transfer(arguments.model, arguments.pairs, arguments.to, arguments.scorer, settings)
    if arguments.json:
        write_result(arguments.json, run=asdict(run))
    print("\n\n".join(style_tables(run)))
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("style_transfer", main))
