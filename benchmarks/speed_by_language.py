"""Speed by language, compared with sentencepiece: `python benchmarks/speed_by_language.py`.

A table for each model has one row per language: median and range of the rounds. In each round,
every language is encoded in a new process, one after another.

sentences      sentences/s of `Encoder`, one pass over text that is new to the process
known words    the same in later passes over the same text
sentencepiece  sentences/s of tokenization alone: later passes of `SentencePieceProcessor.encode`
               with the model's sentencepiece file
ratio          sentences/s of `Encoder` for new text, divided by those of sentencepiece
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness.encoding import later_rate, rate
from harness.machine import describe_machine
from harness.output import new_file, table, write_result
from harness.processes import Program, in_turn
from harness.texts import sentences

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.model_directory.find import find
from st_paragram.core.sample import LANGUAGES, sample_pairs

FIRST = "2024"  # the first text, which should make no words known
LEAST_SECONDS = 1.0  # minimum time of the later passes together


def measure(model: str, file: str, threads: str) -> dict[str, float]:
    """Encode a text, and tokenize it with sentencepiece alone; return figures by name."""
    from sentencepiece import SentencePieceProcessor

    from st_paragram import Encoder

    texts = json.loads(Path(file).read_text(encoding="utf-8"))
    encode = Encoder(model).encode
    encode([FIRST])
    new = rate(encode, texts)
    known = later_rate(encode, texts, LEAST_SECONDS)
    processor: Any = SentencePieceProcessor(model_file=str(find(model) / "sentencepiece.model"))
    alone = later_rate(
        lambda some: processor.encode(some, num_threads=int(threads)), texts, LEAST_SECONDS
    )
    return {
        "sentences/s": new,
        "known words: sentences/s": known,
        "sentencepiece: sentences/s": alone,
        "ratio": new / alone,
    }


def texts_by_language(files: list[tuple[str, str]], count: int) -> dict[str, list[str]]:
    """Return sentences of files by language, or of the built-in sample."""
    if files:
        return {language: sentences(Path(file), count) for language, file in files}
    return {
        language: [sentence for _, sentence in sample_pairs(language, count)]
        for language in LANGUAGES
    }


def language_and_file(words: str) -> tuple[str, str]:
    """Read LANG=FILE from the command line."""
    language, equals, file = words.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{words!r} is not LANG=FILE, such as es=spanish.txt")
    return language, file


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--models",
        nargs="+",
        default=["p-sp-mini", "p-sp-large"],
        metavar="MODEL",
        help="averaging models with a sentencepiece file (default: p-sp-mini p-sp-large)",
    )
    add(
        "--text",
        nargs="+",
        type=language_and_file,
        default=[],
        metavar="LANG=FILE",
        help="one sentence per line (default: the built-in sample, 8 languages)",
    )
    add("--count", type=int, default=9000, help="number of sentences per language (%(default)s)")
    add("--rounds", type=int, default=7, help="(%(default)s)")
    add("--threads", type=int, nargs="+", default=[1], help="(%(default)s)")
    add("--json", type=new_file, metavar="FILE", help="also write every round")
    add("--process", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        print(json.dumps(measure(*arguments.process)))
        return 0
    texts = texts_by_language(arguments.text, arguments.count)
    machine = describe_machine()
    print(
        f"{machine.cpu}, {machine.cores} cores, {machine.instructions}; {arguments.rounds} rounds:"
        " median (range)"
    )
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for language, lines in texts.items():
            file = Path(folder) / f"{language}.json"
            file.write_text(json.dumps(lines), encoding="utf-8")
        for model in arguments.models:
            for threads in arguments.threads:
                programs = {}
                for language in texts:
                    words = [model, str(Path(folder) / f"{language}.json"), str(threads)]
                    programs[language] = Program([__file__, "--process", *words], threads)
                runs = in_turn(programs, arguments.rounds)
                title = f"{model}, threads: {threads}"
                results[title] = {
                    language: [run.figures for run in some] for language, some in runs.items()
                }
                print(f"\n### {title}\n\n{table(results[title])}", flush=True)
    options = {name: str(value) for name, value in vars(arguments).items()}
    write_result(arguments.json, options=options, rounds=results)
    return 0


if __name__ == "__main__":
    sys.exit(run_reporting_errors("speed_by_language", main))
