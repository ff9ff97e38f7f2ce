"""What a generative model can write: a sentence again, its translation, its meaning in another sentence's style.

A generator reads a language variable and the meaning, in this order, a translator the meaning alone (EMNLP 2020); all
latent variables are their means here. A sentence that is empty gives an empty one. What the vocabulary does not know is
dropped, and what goes beyond the model's positions is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

import torch
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.beam_search import NextLogits, beam_search
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import NEEDED, SIDES, GenerationSettings, Side, Task, other
from st_paragram.learning.modules.sentence_batch import SentenceBatch

_DEFAULT = GenerationSettings()
_BLOCK = 16  # batches that are read, and sorted by length, at a time


@dataclass(frozen=True)
class Route:
    """The decoder that does a task: that of the side of a language."""

    task: Task
    side: Side


def reconstruct(
    model: GenerativeEncoder, texts: Sequence[str], language: str | None = None, settings: GenerationSettings = _DEFAULT
) -> list[str]:
    """Write sentences again, from their meaning and, where the model has one, their language variable.

    Their language is by default the first that the model can do this for.
    """
    return list(generate(model, find_route(model, "reconstruct", language), ((text, text) for text in texts), settings))


def translate(
    model: GenerativeEncoder,
    texts: Sequence[str],
    source: str | None = None,
    target: str | None = None,
    settings: GenerationSettings = _DEFAULT,
) -> list[str]:
    """Write what sentences mean in the model's other language; by default, in its second."""
    route = find_route(model, "translate", source, target)
    return list(generate(model, route, ((text, text) for text in texts), settings))


def transfer(
    model: GenerativeEncoder,
    texts: Sequence[str],
    styles: Sequence[str],
    language: str | None = None,
    settings: GenerationSettings = _DEFAULT,
) -> list[str]:
    """Write what sentences, of either language, mean in the style of others: with the others' language variable.

    The language of the styles, which is written, is by default the first that the model can do this for.
    """
    if len(texts) != len(styles):
        raise SettingsError(f"{len(texts)} sentences and {len(styles)} styles; give a style for each sentence")
    route = find_route(model, "transfer", target=language)
    return list(generate(model, route, zip(texts, styles, strict=True), settings))


def find_route(model: GenerativeEncoder, task: Task, source: str | None = None, target: str | None = None) -> Route:
    """The decoder that does a task; for a transfer, the language that is read (`source`) says nothing."""
    if not isinstance(model, GenerativeEncoder):
        raise SettingsError(f"a {type(model).__name__} is an encoder alone; {NEEDED}")
    for language in (source, target):
        if language not in (None, *model.languages):
            raise SettingsError(f"no language {language!r} in this model; it knows {' and '.join(model.languages)}")
    codes, generator = dict(zip(model.languages, SIDES, strict=True)), model.generator
    read, written = codes.get(source or ""), codes.get(target or "")
    if task == "translate":
        if read and read == written:
            raise SettingsError(f"a translation from {source} to {target}; name two languages, or choose another task")
        written = written or (other(read) if read else None)
    elif task == "reconstruct":
        if read and written and read != written:
            raise SettingsError(f"a reconstruction from {source} to {target}; name one language, or translate")
        written = written or read
    decoders = generator.translators if task == "translate" else generator.generators
    able = [side for side in SIDES if side in decoders and (task != "transfer" or generator.languages)]
    if not able or (written and written not in able):
        there = []
        for name in ("languages", "generators", "translators"):
            known = [code for code, side in codes.items() if side in getattr(generator, name)]
            there.append(f"{name.replace('languages', 'language encoders')}: {' and '.join(known) or 'none'}")
        language = next((code for code, side in codes.items() if side == written), "")
        where = f" {'into' if task == 'translate' else 'in'} {language}" if able else ""
        raise SettingsError(f"this model cannot {task}{where}: {'; '.join(there)}")
    return Route(task, written or able[-1 if task == "translate" else 0])


def generate(
    model: GenerativeEncoder,
    route: Route,
    rows: Iterable[tuple[str, str]],
    settings: GenerationSettings = _DEFAULT,
    done: Callable[[int], object] = lambda _: None,
) -> Iterator[str]:
    """Write a sentence for each row, in order, with sixteen batches of rows in memory at a time.

    Args:
        model: that the route was found for.
        route: what to write, by which decoder.
        rows: a source and the sentence whose style is written; nothing is written where either is blank.
        settings: of the search.
        done: called after each batch with the number of sentences written.
    """
    tokenizer, rows = model.sentencepiece, iter(rows)
    pieces = [tokenizer.piece(one) is not None for one in range(len(tokenizer))]
    writable = torch.tensor(pieces, device=model.device)
    while block := list(islice(rows, _BLOCK * settings.batch_size)):
        written = [""] * len(block)
        full = [row for row, texts in enumerate(block) if all(text.strip() for text in texts)]
        done(len(block) - len(full))
        full.sort(key=lambda row: len(block[row][1]))  # those of like length are done at like times
        for start in range(0, len(full), settings.batch_size):
            some = full[start : start + settings.batch_size]
            texts = _written(model, route, [block[row] for row in some], writable, settings)
            for row, text in zip(some, texts, strict=True):
                written[row] = text
            done(len(some))
        yield from written


@torch.inference_mode()
def _written(
    model: GenerativeEncoder, route: Route, rows: list[tuple[str, str]], writable: Tensor, settings: GenerationSettings
) -> list[str]:
    """Write a sentence for each row of a batch."""
    generator, (sources, styles) = model.generator, zip(*rows, strict=True)

    def mean(encoder: nn.Module, texts: Sequence[str]) -> Tensor:
        ids, offsets = model.sentencepiece.encode(texts)
        batch = SentenceBatch.of(ids, offsets, generator.special, generator.max_length).to(model.device)
        return cast("Tensor", encoder(batch.ids, batch.mask).mean)

    latents, decoders = mean(generator.semantic, sources), generator.translators
    if route.task != "translate":
        decoders = generator.generators
        if generator.languages:
            latents = torch.cat([mean(generator.languages[route.side], styles), latents], 1)
    decoder = cast("NextLogits", decoders[route.side])
    longest = max(1, min(settings.max_length, generator.max_length - 1))  # one position more is the beginning
    search = (settings.beam, longest, settings.length_penalty)
    found = beam_search(decoder, latents, generator.special.end, writable, *search)
    return [" ".join(model.sentencepiece.decode(one.ids).split()) for one in found]
