"""What a generative model can write: a sentence again, its translation, its meaning in another sentence's style.

A generator reads a language variable and the meaning, in this order, a translator the meaning alone (EMNLP 2020); all
latent variables are their means here. A sentence that is empty gives an empty one. What the vocabulary does not know is
dropped, and what goes beyond the model's positions is cut.
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
from st_paragram.families.bgt.settings import NEEDED, SIDES, GenerationSettings, Side, Task, other
from st_paragram.learning.modules.sentence_batch import SentenceBatch

_DEFAULT = GenerationSettings()
_BLOCK = 16  # batches that are read, and sorted by length, at a time


def find_side(model: GenerativeEncoder, task: Task, source: str | None = None, target: str | None = None) -> Side:
    """The side whose decoder does a task; for a transfer, the language that is read (`source`) says nothing."""
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
    return written or able[-1 if task == "translate" else 0]


def generate(
    model: GenerativeEncoder,
    task: Task,
    rows: Iterable[tuple[str, str]],
    source: str | None = None,
    target: str | None = None,
    settings: GenerationSettings = _DEFAULT,
    done: Callable[[int], object] = lambda _: None,
) -> Iterator[str]:
    """Write a sentence for each row, in order, with sixteen batches of rows in memory at a time.

    Args:
        model: with the decoder that the task needs.
        task: what to write.
        rows: a sentence and, for a transfer, the one whose style is written; else the sentence itself. Nothing is
            written where either is blank.
        source: code of the language that is read; it may follow from the other.
        target: code of the language that is written; by default the first that the model can do this for, but a
            translation is into its second.
        settings: of the search.
        done: called after each batch with the number of sentences written.
    """
    side, rows = find_side(model, task, source, target), iter(rows)
    tokenizer, generator = model.sentencepiece, model.generator
    pieces = [tokenizer.piece(one) is not None for one in range(len(tokenizer))]
    writable = torch.tensor(pieces, device=model.device)
    decoder = (generator.translators if task == "translate" else generator.generators)[side]
    longest = max(1, min(settings.max_length, generator.max_length - 1))  # one position more is the beginning
    search = (generator.special.end, writable, settings.beam, longest, settings.length_penalty)

    def mean(encoder: nn.Module, texts: Sequence[str]) -> Tensor:
        ids, offsets = tokenizer.encode(texts)
        batch = SentenceBatch.of(ids, offsets, generator.special, generator.max_length).to(model.device)
        return cast("Tensor", encoder(batch.ids, batch.mask).mean)

    while block := list(islice(rows, _BLOCK * settings.batch_size)):
        written = [""] * len(block)
        full = [row for row, texts in enumerate(block) if all(text.strip() for text in texts)]
        done(len(block) - len(full))
        full.sort(key=lambda row: len(block[row][1]))  # those of like length are done at like times
        for start in range(0, len(full), settings.batch_size):
            some = full[start : start + settings.batch_size]
            sentences, styles = zip(*(block[row] for row in some), strict=True)
            with torch.inference_mode():
                latents = mean(generator.semantic, sentences)
                if task != "translate" and generator.languages:
                    latents = torch.cat([mean(generator.languages[side], styles), latents], 1)
                found = beam_search(cast("LatentDecoder", decoder), latents, *search)
            for row, one in zip(some, found, strict=True):
                written[row] = " ".join(tokenizer.decode(one.ids).split())
            done(len(some))
        yield from written
