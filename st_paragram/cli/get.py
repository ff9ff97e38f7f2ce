"""`st-paragram get`: write an included model, or some of its languages, to a directory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from st_paragram.core.formatting import listed
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.core.model_directory.find import SHIPPED, SHIPPED_MODELS, shipped_folder
from st_paragram.core.model_directory.languages import read_languages
from st_paragram.errors import SettingsError

DESCRIPTION = (
    f"Write {' or '.join(SHIPPED_MODELS)}, the eight-language models included in st_paragram, to a"
    " directory that SentenceTransformer opens with or without st_paragram. p-sp-es is p-sp-base"
    " with only the pieces of English and Spanish: it is smaller, and texts in these languages"
    " keep their embeddings. Nothing is downloaded or trained."
)
EPILOG = f"""\
  st-paragram get p-sp-es
  st-paragram get {SHIPPED} --languages en es tr --output small
  st-paragram embed lines.txt --model small --output lines.npy

With st_paragram installed, `st_paragram.load("{SHIPPED}")` and `--model {SHIPPED}` work without
this directory.
"""

_WHOLE = "p-sp-base"  # the model that p-sp-es is part of
_CUT = """
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    name = f"{', '.join(SHIPPED_MODELS)}, or p-sp-LANG for English and one of their other languages"
    parser.add_argument("name", metavar="NAME", help=f"model to write: {name}")
    parser.add_argument(
        "--languages",
        nargs="+",
        metavar="LANG",
        help="languages to keep, e.g. en es (default: all)",
    )
    parser.add_argument("--output", metavar="DIR", help="output directory (default: NAME)")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace an existing model directory"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the directory; return the exit status."""
    from st_paragram.conversion.languages import cut
    from st_paragram.core.embedding_table import for_any_reader
    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.model_directory.record import training_text

    output = arguments.output or arguments.name
    check_free(output, arguments.overwrite)
    name = arguments.name
    languages = arguments.languages
    if name not in SHIPPED_MODELS:
        languages = _languages_of_name(name, list(read_languages(shipped_folder(_WHOLE))))
        if arguments.languages:
            raise SettingsError(
                f"{name} does not come with st_paragram; choose {SHIPPED} or {_WHOLE} with"
                " --languages"
            )
        name = _WHOLE
    folder = shipped_folder(name)
    encoder = Encoder(folder)
    card = (folder / "README.md").read_text(encoding="utf-8")
    if languages:
        rows = len(encoder.tokenizer)
        encoder = Encoder(cut(encoder.model, folder, languages))
        note = _CUT.format(
            name=Path(output).name,
            whole=name,
            languages=listed(languages),
            rows=len(encoder.tokenizer),
            all_rows=rows,
        )
        card = _card_of_languages(card, set(read_languages(folder)) - set(languages), note)
    encoder.save(
        output,
        card,
        overwrite=arguments.overwrite,
        dtype=for_any_reader(encoder.model.table.kind),
        training=training_text(folder),
    )
    size = f"{len(encoder.tokenizer):,} pieces, {encoder.dimension} dimensions"
    print(f"{output}: {size}; its README.md is the model card", file=sys.stderr)
    return 0


def _languages_of_name(name: str, languages: Sequence[str]) -> list[str]:
    """Return the languages of a name such as p-sp-es."""
    code = name.removeprefix("p-sp-")
    if f"p-sp-{code}" != name or code not in languages or code == "en":
        names = [f"p-sp-{language}" for language in languages if language != "en"]
        raise SettingsError(
            f"{name} does not come with st_paragram; choose {', '.join([*SHIPPED_MODELS, *names])}"
        )
    return ["en", code]


def _card_of_languages(card: str, others: set[str], note: str) -> str:
    """Return the card without the other languages in its metadata, and with `note` at its top."""
    head, end, body = card.partition("\n---\n")
    kept = [line for line in head.split("\n") if line.removeprefix("- ") not in others]
    return "\n".join(kept) + end + note + body
