"""Generation with a generative model: reconstruction, translation, and transfer to another
sentence's style.

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
from st_paragram.families.bgt.settings import NEEDED, SIDES, GenerationSettings, Side, Task, other
from st_paragram.learning.modules.sentence_batch import SentenceBatch

_DEFAULT = GenerationSettings()
_BLOCK = 16  # batches that are read, and sorted by length, at a time


def find_side(
    model: GenerativeEncoder, task: Task, source: str | None = None, target: str | None = None
) -> Side:
    """Return the side whose decoder does a task; for a transfer, the input language (`source`) does
    not matter.
    """
    if not isinstance(model, GenerativeEncoder):
        raise SettingsError(f"a {type(model).__name__} has no decoders; {NEEDED}")
    for language in (source, target):
        if language not in (None, *model.languages):
            raise SettingsError(
                f"no language {language!r} in this model; choose {' or '.join(model.languages)}"
            )
    codes, generator = dict(zip(model.languages, SIDES, strict=True)), model.generator
    read, written = codes.get(source or ""), codes.get(target or "")
    if task == "translate":
        if read and read == written:
            raise SettingsError(
                f"translation from {source} to {target}; name two languages, or choose another task"
            )
        written = written or (other(read) if read else None)
    elif task == "reconstruct":
        if read and written and read != written:
            raise SettingsError(
                f"reconstruction from {source} to {target}; name one language, or choose translate"
            )
        written = written or read
    decoders = generator.translators if task == "translate" else generator.generators
    able = [
        side for side in SIDES if side in decoders and (task != "transfer" or generator.languages)
    ]
    if not able or (written and written not in able):
        there = []
        for name in ("languages", "generators", "translators"):
            known = [code for code, side in codes.items() if side in getattr(generator, name)]
            there.append(
                f"{name.replace('languages', 'language encoders')}: {' and '.join(known) or 'none'}"
            )
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
    side, rows = find_side(model, task, source, target), iter(rows)
    tokenizer, generator = model.sentencepiece, model.generator
    pieces = [tokenizer.piece(one) is not None for one in range(len(tokenizer))]
    writable = torch.tensor(pieces, device=model.device)
    decoder = (generator.translators if task == "translate" else generator.generators)[side]
    # one more position is for the beginning
    longest = max(1, min(settings.max_length, generator.max_length - 1))
    search = (generator.special.end, writable, settings.beam, longest, settings.length_penalty)

    def mean(encoder: nn.Module, texts: Sequence[str]) -> Tensor:
        ids, offsets = tokenizer.encode(texts)
        batch = SentenceBatch.of(ids, offsets, generator.special, generator.max_length).to(
            model.device
        )
        return cast("Tensor", encoder(batch.ids, batch.mask).mean)

    while block := list(islice(rows, _BLOCK * settings.batch_size)):
        written = [""] * len(block)
        full = [row for row, texts in enumerate(block) if all(text.strip() for text in texts)]
        done(len(block) - len(full))
        # sentences of similar length finish at similar times
        full.sort(key=lambda row: len(block[row][1]))
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
