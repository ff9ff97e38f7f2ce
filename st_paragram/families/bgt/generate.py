"""Generation with a generative model: reconstruction, translation, and transfer of style.

A generator reads a language variable and the meaning, in this order; a translator reads only the
meaning (EMNLP 2020). All latent variables are their means here. An empty sentence gives an empty
sentence. Unknown pieces are dropped, and sentences longer than the model's positions are truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import cast

import torch
from torch import Tensor, nn

from st_paragram.errors import SettingsError
from st_paragram.families.bgt.beam_search import beam_search
from st_paragram.families.bgt.latent_decoder import LatentDecoder
from st_paragram.families.bgt.sentence_transformers_encoder import GenerativeEncoder
from st_paragram.families.bgt.settings import SIDES, GenerationSettings, Side, Task
from st_paragram.learning.modules.sentence_batch import SentenceBatch

_DEFAULT = GenerationSettings()
_BLOCK = 16  # batches that are read, and sorted by length, at a time


def find_side(
    model: GenerativeEncoder, task: Task, source: str | None = None, target: str | None = None
) -> Side:
    """Return the side whose decoder does a task.

    For a transfer, the input language (`source`) does not matter.
    """
    for language in (source, target):
        if language not in (None, *model.languages):
            raise SettingsError(
                f"no language {language!r} in this model; choose {' or '.join(model.languages)}"
            )
    if source and target and task != "transfer" and (source == target) != (task == "reconstruct"):
        raise SettingsError(
            f"cannot {task} from {source} to {target}; translate needs two languages, reconstruct"
            " needs one"
        )
    able = _sides_able(model, task)
    if not able:
        raise SettingsError(f"this model cannot {task}: its objective has no parts for this")
    language = target
    if source and not target and task == "reconstruct":
        language = source
    if source and not target and task == "translate":
        first, second = model.languages
        language = second if source == first else first
    if not language:
        return able[-1] if task == "translate" else able[0]
    side = SIDES[model.languages.index(language)]
    if side not in able:
        possible = model.languages[SIDES.index(able[0])]
        raise SettingsError(f"this model can {task} only into {possible}, not into {language}")
    return side


def _decoders(model: GenerativeEncoder, task: Task) -> nn.ModuleDict:
    return model.generator.translators if task == "translate" else model.generator.generators


def _sides_able(model: GenerativeEncoder, task: Task) -> list[Side]:
    """Return the sides whose decoders can do a task."""
    if task == "transfer" and not model.generator.languages:
        return []
    decoders = _decoders(model, task)
    return [side for side in SIDES if side in decoders]


def generate(
    model: GenerativeEncoder,
    task: Task,
    rows: Iterable[tuple[str, str]],
    source: str | None = None,
    target: str | None = None,
    settings: GenerationSettings = _DEFAULT,
    done: Callable[[int], object] = lambda _: None,
) -> Iterator[str]:
    """Generate a sentence for each row, in order, with sixteen batches of rows in memory at a time.

    Args:
        model: Model with the decoder that the task needs.
        task: The task.
        rows: A sentence and, for a transfer, the sentence whose style is used; otherwise the
            sentence itself. If either is blank, the output is empty.
        source: Code of the input language, if it does not follow from `target`.
        target: Code of the output language; by default the first language that the model can do
            this for, or the second for a translation.
        settings: Settings of the search.
        done: Called after each batch with the number of sentences generated.
    """
    side = find_side(model, task, source, target)
    tokenizer = model.sentencepiece
    generator = model.generator
    decoder = cast("LatentDecoder", _decoders(model, task)[side])
    is_text = [tokenizer.piece(number) is not None for number in range(len(tokenizer))]
    writable = torch.tensor(is_text, device=model.device)
    # one more position is for the beginning
    max_length = max(1, min(settings.max_length, generator.max_length - 1))

    def mean(encoder: nn.Module, texts: Sequence[str]) -> Tensor:
        ids, offsets = tokenizer.encode(texts)
        batch = SentenceBatch.of(ids, offsets, generator.special, generator.max_length)
        batch = batch.to(model.device)
        return cast("Tensor", encoder(batch.ids, batch.mask).mean)

    @torch.inference_mode()
    def write(batch: Sequence[tuple[str, str]]) -> list[str]:
        latents = mean(generator.semantic, [sentence for sentence, _ in batch])
        if task != "translate" and generator.languages:
            styles = mean(generator.languages[side], [style for _, style in batch])
            latents = torch.cat([styles, latents], 1)
        hypotheses = beam_search(
            decoder,
            latents,
            generator.special.end,
            writable=writable,
            beam=settings.beam,
            max_length=max_length,
            penalty=settings.length_penalty,
        )
        texts = [tokenizer.decode(hypothesis.ids) for hypothesis in hypotheses]
        return [" ".join(text.split()) for text in texts]

    rows = iter(rows)
    while block := list(islice(rows, _BLOCK * settings.batch_size)):
        written = [""] * len(block)
        numbers = [
            number for number, (text, style) in enumerate(block) if text.strip() and style.strip()
        ]
        done(len(block) - len(numbers))
        # sentences of similar length finish at similar times
        numbers.sort(key=lambda number: len(block[number][1]))
        for begin in range(0, len(numbers), settings.batch_size):
            batch = numbers[begin : begin + settings.batch_size]
            texts = write([block[number] for number in batch])
            for number, text in zip(batch, texts, strict=True):
                written[number] = text
            done(len(batch))
        yield from written
