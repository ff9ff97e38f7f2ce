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
from st_paragram.families.bgt.gaussian_latent import Gaussian
from st_paragram.families.bgt.generation.beam_search import NextLogits, beam_search
from st_paragram.families.bgt.generation.settings import NEEDED, GenerationSettings, Task
from st_paragram.families.bgt.generative_objective import SIDES, Side, other
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.learning.modules.sentence_batch import SentenceBatch

_DEFAULT = GenerationSettings()
_BLOCK = 16  # batches that are read, and sorted by length, at a time


@dataclass(frozen=True)
class Route:
    """Which of a model's decoders writes.

    Attributes:
        task: What it writes.
        side: The side of the language that it writes.
        language: Its code.
    """

    task: Task
    side: Side
    language: str


def reconstruct(
    model: GenerativeEncoder,
    texts: Sequence[str],
    language: str | None = None,
    settings: GenerationSettings = _DEFAULT,
) -> list[str]:
    """Write sentences again: from their meaning and, where the model has one, their language variable.

    Args:
        model: with a generator of the language.
        texts: N sentences of it.
        language: its code; by default the first that the model can do this for.
        settings: of the search.

    Raises:
        SettingsError: the model knows no such language, or cannot do this.
    """
    return list(generate(model, find_route(model, "reconstruct", language), ((text, text) for text in texts), settings))


def translate(
    model: GenerativeEncoder,
    texts: Sequence[str],
    source: str | None = None,
    target: str | None = None,
    settings: GenerationSettings = _DEFAULT,
) -> list[str]:
    """Write what sentences mean in the model's other language.

    Args:
        model: with a translator.
        texts: N sentences.
        source: code of their language; by default the one that `target` is not.
        target: code of the language to write; by default the second of the model, if it is not the source.
        settings: of the search.

    Raises:
        SettingsError: the model knows no such language, or cannot do this.
    """
    route = find_route(model, "translate", source, target)
    return list(generate(model, route, ((text, "") for text in texts), settings))


def transfer(
    model: GenerativeEncoder,
    texts: Sequence[str],
    styles: Sequence[str],
    language: str | None = None,
    settings: GenerationSettings = _DEFAULT,
) -> list[str]:
    """Write what sentences mean in the style of others: with the others' language variable.

    Args:
        model: with a generator and an encoder of the language.
        texts: N sentences, of either language.
        styles: N sentences of the language that is written.
        language: its code; by default the first that the model can do this for.
        settings: of the search.

    Raises:
        SettingsError: the model knows no such language, or cannot do this; or there is not a style for each sentence.
    """
    if len(texts) != len(styles):
        raise SettingsError(f"{len(texts)} sentences and {len(styles)} styles; give a style for each sentence")
    route = find_route(model, "transfer", target=language)
    return list(generate(model, route, zip(texts, styles, strict=True), settings))


def find_route(model: GenerativeEncoder, task: Task, source: str | None = None, target: str | None = None) -> Route:
    """The decoder that does a task.

    Args:
        model: any.
        task: what to write.
        source: language of the sentences that are read; for a transfer it says nothing.
        target: language to write.

    Raises:
        SettingsError: the model knows no such language, languages and task contradict each other, or the model has no
            such decoder; or it is an encoder alone.
    """
    if not isinstance(model, GenerativeEncoder):
        raise SettingsError(f"a {type(model).__name__} is an encoder alone; {NEEDED}")
    read, written = _side(model, source), _side(model, target)
    generator, first = model.generator, "a"
    if task == "translate":
        first, written = "b", written or (other(read) if read else None)
        if read and read == written:
            raise SettingsError(f"a translation from {source} to {target}; name two languages, or choose another task")
    elif task == "reconstruct":
        if read and written and read != written:
            raise SettingsError(f"a reconstruction from {source} to {target}; name one language, or translate")
        written = written or read
    decoders = generator.translators if task == "translate" else generator.generators
    if not decoders or (task == "transfer" and not generator.languages):
        raise SettingsError(f"this model cannot {task}: {_told(model)}")
    side = written or cast("Side", first if first in decoders else next(iter(decoders)))
    language = model.languages[SIDES.index(side)]
    if side not in decoders:
        where = f"into {language}" if task == "translate" else f"in {language}"
        raise SettingsError(f"this model cannot {task} {where}: {_told(model)}")
    return Route(task, side, language)


def _side(model: GenerativeEncoder, language: str | None) -> Side | None:
    if language is None:
        return None
    if language not in model.languages:
        raise SettingsError(f"no language {language!r} in this model; it knows {' and '.join(model.languages)}")
    return SIDES[model.languages.index(language)]


def _told(model: GenerativeEncoder) -> str:
    """What a model has, for messages."""
    generator = model.generator
    parts = {
        "language encoders": generator.languages,
        "generators": generator.generators,
        "translators": generator.translators,
    }
    codes = dict(zip(SIDES, model.languages, strict=True))
    return "; ".join(
        f"{name}: {' and '.join(codes[side] for side in SIDES if side in part) or 'none'}"
        for name, part in parts.items()
    )


def generate(
    model: GenerativeEncoder,
    route: Route,
    rows: Iterable[tuple[str, str]],
    settings: GenerationSettings = _DEFAULT,
    done: Callable[[int], object] | None = None,
) -> Iterator[str]:
    """Write a sentence for each row, in order, with sixteen batches of rows in memory at a time.

    Args:
        model: that the route was found for.
        route: what to write, by which decoder.
        rows: a source and, for a transfer, a style; else the second text is not read.
        settings: of the search.
        done: called after each batch with the number of sentences written.
    """
    writer = _Writer(model, route, settings, done or (lambda _: None))
    rows = iter(rows)
    while block := list(islice(rows, _BLOCK * settings.batch_size)):
        yield from writer.block([source for source, _ in block], [style for _, style in block])


class _Writer:
    """A model's parts that do a task."""

    def __init__(
        self, model: GenerativeEncoder, route: Route, settings: GenerationSettings, done: Callable[[int], object]
    ) -> None:
        self.tokenizer, self.device = model.sentencepiece, model.device
        self.generator, self.route, self.settings, self.done = model.generator, route, settings, done
        pieces = [self.tokenizer.piece(one) is not None for one in range(len(self.tokenizer))]
        self.writable = torch.tensor(pieces, device=self.device)
        decoders = self.generator.translators if route.task == "translate" else self.generator.generators
        self.decoder = cast("NextLogits", decoders[route.side])

    def block(self, sources: Sequence[str], styles: Sequence[str]) -> list[str]:
        """Write a sentence for each source; those of like length together, since they are done at like times."""
        if self.route.task != "transfer":
            styles = sources
        written = [""] * len(sources)
        full = [row for row in range(len(sources)) if sources[row].strip() and styles[row].strip()]
        self.done(len(sources) - len(full))
        full.sort(key=lambda row: len(styles[row]))
        for start in range(0, len(full), self.settings.batch_size):
            rows = full[start : start + self.settings.batch_size]
            texts = self._batch([sources[row] for row in rows], [styles[row] for row in rows])
            for row, text in zip(rows, texts, strict=True):
                written[row] = text
            self.done(len(rows))
        return written

    @torch.inference_mode()
    def _batch(self, sources: Sequence[str], styles: Sequence[str]) -> list[str]:
        settings, generator = self.settings, self.generator
        found = beam_search(
            self.decoder,
            self._latents(sources, styles),
            generator.special.end,
            self.writable,
            settings.beam,
            max(1, min(settings.max_length, generator.max_length - 1)),  # one position more is the beginning
            settings.length_penalty,
        )
        return [" ".join(self.tokenizer.decode(one.ids).split()) for one in found]

    def _latents(self, sources: Sequence[str], styles: Sequence[str]) -> Tensor:
        """What the decoder reads, float (S, k) or (S, 2 k)."""
        languages = self.generator.languages
        meaning = self._mean(self.generator.semantic, sources)
        if self.route.task == "translate" or not languages:
            return meaning
        return torch.cat([self._mean(languages[self.route.side], styles), meaning], 1)

    def _mean(self, encoder: nn.Module, texts: Sequence[str]) -> Tensor:
        ids, offsets = self.tokenizer.encode(texts)
        batch = SentenceBatch.of(ids, offsets, self.generator.special, self.generator.max_length).to(self.device)
        gaussian: Gaussian = encoder(batch.ids, batch.mask)
        return gaussian.mean
