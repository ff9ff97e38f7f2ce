"""InfoNCE against the margin loss at equal processor time: `python benchmarks/info_nce.py --lang es --text FILE ...`.

Trains the base of a configuration with the margin loss, and with InfoNCE for as many seconds of processor time, and
prints Pearson x 100 and the translations found. Set OMP_NUM_THREADS=1, so that time waiting for threads is not counted.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path

from harness.families.ablations import Ablation, read_ablations
from harness.families.info_nce import InfoNceSettings, InfoNceTrainer
from sentence_transformers import SentenceTransformer
from st_paragram.families.psp.objective import new_model, trainer
from transformers import set_seed

from st_paragram.cli.main import run_reporting_errors
from st_paragram.core.files import cache_folder
from st_paragram.core.pair_store import PairStore
from st_paragram.core.text.parallel import parse_source
from st_paragram.learning.training.development import development_pairs, development_translations, translation_accuracy
from st_paragram.tools.evaluation.correlation import correlate
from st_paragram.tools.preparation.prepare import prepare_cached
from st_paragram.tools.preparation.settings import PrepareSettings

CONFIG = Path(__file__).parent / "configs" / "ablations_es.yaml"


def main() -> int:
    """Train, score and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lang", required=True, help="language of the other side, e.g. es")
    parser.add_argument("--text", nargs="+", required=True, metavar="FILE", help="parallel text, as `prepare` takes it")
    parser.add_argument("--dev", nargs="+", required=True, metavar="FILE.tsv", help="development pairs")
    parser.add_argument("--dev-bitext", nargs="+", default=[], metavar="FILE.tsv", help="held-out translations")
    parser.add_argument("--config", default=CONFIG, help="its base is trained with the margin loss (%(default)s)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="(%(default)s)")
    parser.add_argument("--cpu-seconds", type=float, help="budget of InfoNCE (that of the margin loss, trained first)")
    for name, of, default in (("batch-size", int, 2048), ("scale", float, 20), ("rate", float, 0.05)):
        parser.add_argument(f"--{name}", nargs="+", type=of, default=[default], help="(%(default)s)")
    parser.add_argument("--mined", nargs="+", type=int, default=[0], help="batches to mine in; 0: none (%(default)s)")
    parser.add_argument("--dropout", nargs="+", type=float, default=[0.0], help="(%(default)s)")
    arguments = parser.parse_args()
    languages = "en", arguments.lang
    base = read_ablations(arguments.config)[0]
    prepare = PrepareSettings(languages=languages, vocab_size=base.vocab_size)
    texts = [parse_source(spec, languages) for spec in arguments.text]
    store = PairStore(prepare_cached(texts, prepare, cache_folder() / "stores"), limit=base.pairs)
    pairs = [development_pairs(path, arguments.lang) for path in arguments.dev]
    held = [development_translations(path, arguments.lang) for path in arguments.dev_bitext]

    def report(name: str, seed: int, seconds: float, epochs: float, model: SentenceTransformer) -> None:
        model.eval()
        scores = [f"{of.name} {100 * correlate(model, of).pearson:.2f}" for of in pairs]
        scores += [f"{of.name} {100 * translation_accuracy(model, of):.2f}" for of in held]
        print(f"{name}, seed {seed}, {seconds:.1f} s, {epochs:.2f} epochs: {', '.join(scores)}", flush=True)

    grid = (arguments.batch_size, arguments.scale, arguments.rate, arguments.mined, arguments.dropout)
    budget = arguments.cpu_seconds
    for seed in arguments.seeds:
        if arguments.cpu_seconds is None:
            model, seconds = trained_with_margin(base, store, seed)
            budget = budget or seconds
            report("margin", seed, seconds, base.settings.epochs, model)
        for values in itertools.product(*grid):
            settings = InfoNceSettings(*values)
            set_seed(seed)
            model = new_model(store, replace(base.settings, seed=seed))
            training = InfoNceTrainer(model, store, settings, seed)
            training.train(budget)
            name = " ".join(f"{key} {value}" for key, value in asdict(settings).items())
            report(f"InfoNCE {name}", seed, budget, training.pairs / len(store), model)
    return 0


def trained_with_margin(base: Ablation, store: PairStore, seed: int) -> tuple[SentenceTransformer, float]:
    """Train as `st-paragram train` does; the model, and the seconds of processor time."""
    settings = replace(base.settings, seed=seed)
    set_seed(seed)
    model = new_model(store, settings)
    with tempfile.TemporaryDirectory() as folder:
        training = trainer(model, store, settings, Path(folder))
        training.args.save_strategy = "no"
        started = time.process_time()
        training.train()
    return model, time.process_time() - started


if __name__ == "__main__":
    sys.exit(run_reporting_errors("info_nce", main))
