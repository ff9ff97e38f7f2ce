"""Small dual encoders for tests, stores of all tasks, and their trainers."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.families.muse import train as dual_encoder
from st_paragram.families.muse.settings import DualEncoderSettings, MuseData
from st_paragram.tools.evaluation.nli import NLI_LABELS
from support.data import make_pairs

ARCHITECTURES = ("cnn", "transformer")
TASKS = ("translation", "qa", "response", "nli")


def tiny(architecture="cnn", **changes):
    """Settings of a run that takes milliseconds a step."""
    sizes = {
        "dim": 16,
        "layers": 2,
        "filters": 4,
        "heads": 2,
        "ffn_dim": 24,
        "max_length": 30,
        "context_length": 40,
    }
    run = {"batch_size": 8, "length_buckets": 2, "steps": 6, "warmup_updates": 0, "seed": 3}
    return DualEncoderSettings(
        architecture=architecture, **(sizes | run | {"device": "cpu"} | changes)
    )


def write_bitext(path, vocabulary, pairs, languages=("xx", "yy")):
    """A store of translations; with two languages, two of three rows are of the first."""
    named = [("en", language) for language in languages]
    numbers = np.arange(len(pairs)) % 3 // 2 if len(languages) > 1 else np.zeros(len(pairs), int)
    with PairStoreWriter(
        path, ("en", "-".join(languages)), vocabulary, 100, row_languages=named
    ) as writer:
        sides = [vocabulary.encode(list(texts)) for texts in zip(*pairs, strict=True)]
        writer.append(*sides[0], *sides[1], pairs=numbers)
    return PairStore(path)


@dataclass(frozen=True)
class Data:
    """A store of translations, and what else there is to train on."""

    bitext: PairStore
    more: MuseData


def contexts_of(pairs):
    """Texts around answers; every third has none."""
    return [
        "" if i % 3 == 0 else f"{pairs[i - 1][1]} {answer}" for i, (_, answer) in enumerate(pairs)
    ]


def write_data(folder, vocabulary, rows=40, few=1):
    """Data of all tasks: questions and inference in two languages, responses in one.

    The second language has `few` rows.
    """
    pairs, few_pairs = make_pairs(rows, seed=5), make_pairs(few, seed=8)
    bitext = write_bitext(folder / "bitext.h5", vocabulary, make_pairs(rows, seed=6))

    def write(task, language, cells):
        (folder / task).mkdir(exist_ok=True)
        lines = ("\t".join(row) + "\n" for row in cells)
        (folder / task / f"{language}.tsv").write_text("".join(lines), encoding="utf-8")

    for language, rows_of_language in {"en": pairs, "xx": few_pairs}.items():
        contexts = contexts_of(rows_of_language)
        answers = zip(rows_of_language, contexts, strict=True)
        write("qa", language, [(*pair, context) for pair, context in answers])
        labelled = enumerate(rows_of_language)
        write("nli", language, [(NLI_LABELS[number % 3], *pair) for number, pair in labelled])
    write("response", "en", pairs[::-1])
    return Data(bitext, MuseData({task: folder / task for task in ("qa", "response", "nli")}))


def new_model(store, architecture="cnn", **changes):
    """An untrained model; the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return dual_encoder.new_model(store, tiny(architecture, **changes)).eval()


def unlike_new(model, tasks=TASKS):
    """A copy with other weights, as if it was trained on these tasks."""
    model = copy.deepcopy(model)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(2)
        for parameter in [*model[-1].parameters(), *model.heads.parameters()]:
            parameter.add_(0.2 * torch.randn_like(parameter))
        for name, parameter in model.named_parameters():
            if "layer_weights" not in name and "gate" not in name:
                parameter.add_(0.05 * torch.randn_like(parameter))
    model.trained_on(tasks)
    return model.eval()


def new_trainer(data, settings, folder, **arguments):
    """A trainer with `arguments`; by default it saves and evaluates nothing."""
    torch.manual_seed(settings.seed)
    model = dual_encoder.new_model(data.bitext, settings)
    trainer = dual_encoder.trainer(model, data.bitext, settings, folder, None, data.more)
    for name, value in ({"save_strategy": "no"} | arguments).items():
        setattr(trainer.args, name, value)
    return trainer
