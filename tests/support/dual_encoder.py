"""Small dual encoders for tests, stores of all tasks, and their trainers."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch

from st_paragram.core.pair_store import PairStore, PairStoreWriter
from st_paragram.families.muse import objective as dual_encoder
from st_paragram.families.muse.settings import DualEncoderSettings
from st_paragram.families.muse.tasks.task_stores import TaskStore
from st_paragram.families.muse.training_data import OtherTasks
from support.data import make_pairs

ARCHITECTURES = ("cnn", "transformer")
TASKS = ("translation", "qa", "response", "nli")


def tiny(architecture="cnn", **changes):
    """Settings of a run that takes milliseconds a step."""
    sizes = {"dim": 16, "layers": 2, "filters": 4, "heads": 2, "ffn_dim": 24, "max_length": 30, "context_length": 40}
    run = {"batch_size": 8, "length_buckets": 2, "similar_batches": 2, "steps": 6, "warmup_updates": 0, "seed": 3}
    return DualEncoderSettings(architecture=architecture, **(sizes | run | {"device": "cpu"} | changes))


def only(task, share=1.0):
    """Shares with which a run has steps of one task alone."""
    return {f"{name}_share": share if name == task else 0.0 for name in TASKS}


def write_rows(path, vocabulary, rows, language="en", labels=None):
    """A store of pairs of texts of one language, with their labels if they have some."""
    with PairStoreWriter(
        path, (language, language), vocabulary, 100, labels=None if labels is None else "i1"
    ) as writer:
        sides = [vocabulary.encode(list(texts)) for texts in zip(*rows, strict=True)]
        writer.append(*sides[0], *sides[1], labels=None if labels is None else np.array(labels))
    return PairStore(path)


def write_bitext(path, vocabulary, pairs, languages=("xx", "yy")):
    """A store of translations into several languages, in turn; of three rows two are of the first."""
    named = [("en", language) for language in languages]
    numbers = np.arange(len(pairs)) % 3 // 2 if len(languages) > 1 else np.zeros(len(pairs), int)
    with PairStoreWriter(path, ("en", "-".join(languages)), vocabulary, 100, row_languages=named) as writer:
        sides = [vocabulary.encode(list(texts)) for texts in zip(*pairs, strict=True)]
        writer.append(*sides[0], *sides[1], pairs=numbers)
    return PairStore(path)


@dataclass(frozen=True)
class Data:
    """Stores of all tasks."""

    bitext: PairStore
    tasks: OtherTasks


def contexts_of(pairs):
    """Texts around answers: every third has none, and the answer stands in for it, as stores have it."""
    return [answer if i % 3 == 0 else f"{pairs[i - 1][1]} {answer}" for i, (_, answer) in enumerate(pairs)]


def write_data(folder, vocabulary, rows=40, few=1):
    """Stores of all tasks: questions of two languages, one of which has `few`, responses, inference of two."""
    pairs = make_pairs(rows, seed=5)
    bitext = write_bitext(folder / "bitext.h5", vocabulary, make_pairs(rows, seed=6))

    def qa(language, pairs):
        store = write_rows(folder / f"qa-{language}.h5", vocabulary, pairs, language)
        around = [(answer, context) for (_, answer), context in zip(pairs, contexts_of(pairs), strict=True)]
        contexts = write_rows(folder / f"qa-{language}.contexts.h5", vocabulary, around, language)
        return TaskStore("qa", language, store, contexts)

    def nli(language, pairs):
        labels = [number % 3 for number in range(len(pairs))]
        path = folder / f"nli-{language}.h5"
        return TaskStore("nli", language, write_rows(path, vocabulary, pairs, language, labels))

    response = TaskStore("response", "en", write_rows(folder / "response-en.h5", vocabulary, pairs[::-1]))
    few_pairs = make_pairs(few, seed=8)
    stores = [qa("en", pairs), qa("xx", few_pairs), response, nli("en", pairs), nli("xx", few_pairs)]
    return Data(bitext, OtherTasks(stores))


def new_model(store, architecture="cnn", **changes):
    """An untrained model; the same weights each time."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return dual_encoder.new_model(store, tiny(architecture, **changes)).eval()


def unlike_new(model, tasks=TASKS):
    """A copy whose numbers are none of those that new models have, as if it was trained on these tasks."""
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
    """A trainer that saves, logs and evaluates as `arguments` say; by default it saves and evaluates nothing."""
    torch.manual_seed(settings.seed)
    model = dual_encoder.new_model(data.bitext, settings)
    trainer = dual_encoder.trainer(model, data.bitext, settings, folder, tasks=data.tasks)
    for name, value in ({"save_strategy": "no"} | arguments).items():
        setattr(trainer.args, name, value)
    return trainer


def flat(vocabulary, texts):
    """Texts as flat ids."""
    return vocabulary.encode(list(texts))
