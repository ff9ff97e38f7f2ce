"""The languages of a multilingual vocabulary, and models cut down to some of them.

`languages.safetensors` of an included model has bits for each language, uint8 (ceil(V / 8),), in
the order of `numpy.packbits`: they mark which of the V pieces occur in the training text of this
language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from st_paragram.core.embedding_table import Table, for_any_reader
from st_paragram.core.formatting import listed
from st_paragram.core.model_directory import model_files
from st_paragram.core.model_directory.configuration import read_configuration, save_directory
from st_paragram.core.model_directory.model_files import AveragingModel
from st_paragram.core.model_directory.record import training_text
from st_paragram.core.tokenizers.base import Tokenizer
from st_paragram.core.tokenizers.model_file import PIECE, fields
from st_paragram.core.tokenizers.sentencepiece import SentencePieceTokenizer
from st_paragram.errors import SettingsError

FILE = "languages.safetensors"
_BLOCK = 10_000  # texts tokenized at a time
_NOTE = """
# {name}

{whole} for {languages} only, made by `st-paragram get`: it has the {rows:,} of {all_rows:,} pieces
that occur in the training text of these languages. Except for rare pieces, texts in these languages
have the same embeddings as with {whole}.

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{name}")
embeddings = model.encode(["a first sentence", "a second one"])
print(model.similarity(embeddings, embeddings))
```

The card of {whole} follows.
"""

Pieces = NDArray[np.bool_]


def pieces_in(texts: Iterable[str], tokenizer: Tokenizer) -> Pieces:
    """Return which tokens occur in texts, bool (V,)."""
    occurs = np.zeros(len(tokenizer), np.bool_)
    remaining = iter(texts)
    while block := list(islice(remaining, _BLOCK)):
        ids, _ = tokenizer.encode(block)
        occurs[ids] = True
    return occurs


def write_languages(folder: Path, pieces: Mapping[str, Pieces]) -> None:
    """Write `languages.safetensors`; `pieces` marks the pieces (V,) of each language."""
    from safetensors.numpy import save

    packed = {language: np.packbits(pieces[language]) for language in sorted(pieces)}
    (folder / FILE).write_bytes(save(packed))


def read_languages(folder: Path) -> dict[str, NDArray[np.uint8]]:
    """Read the packed bits of each language; empty for a model without `languages.safetensors`."""
    from safetensors.numpy import load_file

    path = folder / FILE
    return load_file(path) if path.is_file() else {}


def cut(model: AveragingModel, folder: Path, languages: Sequence[str]) -> AveragingModel:
    """Cut a model, opened from a folder, to the tokens that occur in some languages.

    Texts in these languages keep their embeddings, except for rare pieces that the training text
    lacked.
    """
    bits = read_languages(folder)
    for language in languages:
        if language not in bits:
            raise SettingsError(
                f"{folder.name} has no tokens of language {language!r}; it knows"
                f" {', '.join(bits) or 'no language'}"
            )
    tokenizer = model.tokenizer
    assert isinstance(tokenizer, SentencePieceTokenizer)  # only such models have the file
    kept = np.array([tokenizer.piece(number) is None for number in range(len(tokenizer))])
    for language in languages:
        kept |= np.unpackbits(bits[language], count=len(kept)).astype(np.bool_)
    scale = model.table.scale
    table = Table(model.table.weight[kept], None if scale is None else scale[kept])
    content = _cut_pieces(tokenizer.content, kept)
    tokenizer = SentencePieceTokenizer(content, **tokenizer.options)
    return replace(model, tokenizer=tokenizer, table=table)


def write_model(
    folder: Path,
    output: str | Path,
    languages: Sequence[str] | None = None,
    overwrite: bool = False,
) -> AveragingModel:
    """Write an included model, or some of its languages, to a directory for every reader.

    Returns the model that was written.
    """
    model = model_files.read(folder, read_configuration(folder).values)
    card = (folder / "README.md").read_text(encoding="utf-8")
    if languages:
        all_rows = len(model.tokenizer)
        model = cut(model, folder, languages)
        note = _NOTE.format(
            name=Path(output).name,
            whole=folder.name,
            languages=listed(languages),
            rows=len(model.tokenizer),
            all_rows=all_rows,
        )
        card = _card_of_languages(card, set(read_languages(folder)) - set(languages), note)
    write = partial(model_files.write, model, dtype=for_any_reader(model.table.kind))
    save_directory(output, write, card, training_text(folder), overwrite)
    return model


def _card_of_languages(card: str, others: set[str], note: str) -> str:
    """Return the card without the other languages in its metadata, and with `note` at its top."""
    head, end, body = card.partition("\n---\n")
    kept = [line for line in head.split("\n") if line.removeprefix("- ") not in others]
    return "\n".join(kept) + end + note + body


def _cut_pieces(model: bytes, kept: Pieces) -> bytes:
    """Remove the pieces that are not `kept`, (V,), from a model; all other bytes stay unchanged."""
    result = bytearray()
    start = 0
    pieces = iter(kept)
    for message, _, stop in fields(model):
        if message != PIECE or next(pieces):
            result += model[start:stop]
        start = stop
    return bytes(result)
