"""`st-paragram get`: write an included model, or some of its languages, to a directory that other
software can read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from st_paragram.core.formatting import listed
from st_paragram.core.model_directory.configuration import check_free
from st_paragram.core.model_directory.find import SHIPPED, SHIPPED_MODELS, shipped_folder
from st_paragram.errors import SettingsError

DESCRIPTION = (
    f"Write {' or '.join(SHIPPED_MODELS)}, the eight-language models included in st_paragram, to a"
    " directory that SentenceTransformer opens with or without st_paragram. p-sp-es is p-sp-base"
    " with only the pieces of English and Spanish: it is smaller, and texts in these languages"
    " keep their embeddings. Nothing is downloaded or trained."
)
EPILOG = f"""\
  st-paragram get p-sp-es
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-es').encode(['hola']).shape)"
  st-paragram get {SHIPPED} --languages en es tr --output small

With st_paragram installed, `st_paragram.load("{SHIPPED}")` and `--model {SHIPPED}` work without this directory.
"""

_WHOLE = "p-sp-base"  # the model that p-sp-es is part of
_CUT = """
# {name}

{whole} for {languages} only, made by `st-paragram get`: it has the {rows:,} of {all_rows:,} pieces that occur in the
training text of these languages. Except for rare pieces, texts in these languages have the same embeddings as with
{whole}.

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
    from st_paragram.conversion.languages import cut, read_languages
    from st_paragram.core.embedding_table import for_any_reader
    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.model_directory.record import training_text

    output = arguments.output or arguments.name
    check_free(output, arguments.overwrite)
    name, languages = _chosen(
        arguments.name, arguments.languages, list(read_languages(shipped_folder(_WHOLE)))
    )
    folder = shipped_folder(name)
    encoder, card = Encoder(folder), (folder / "README.md").read_text(encoding="utf-8")
    if languages:
        rows = len(encoder.tokenizer)
        encoder = Encoder(cut(encoder.model, folder, languages))
        others = set(read_languages(folder)) - set(languages)
        about = {
            "whole": name,
            "languages": listed(languages),
            "rows": len(encoder.tokenizer),
            "all_rows": rows,
        }
        card = _card_of_languages(card, others, _CUT.format(name=Path(output).name, **about))
    dtype = for_any_reader(encoder.model.table.kind)
    encoder.save(output, card, arguments.overwrite, dtype, training=training_text(folder))
    size = f"{len(encoder.tokenizer):,} pieces, {encoder.dimension} dimensions"
    print(f"{output}: {size}; its README.md is the model card", file=sys.stderr)
    return 0


def _chosen(
    name: str, languages: Sequence[str] | None, known: Sequence[str]
) -> tuple[str, Sequence[str] | None]:
    """Return the included model and the languages to keep; the name may also be such as p-sp-es."""
    if name in SHIPPED_MODELS:
        return name, languages
    others = {f"p-sp-{language}": language for language in known if language != "en"}
    if name not in others or languages:
        names = ", ".join((*SHIPPED_MODELS, *others))
        rule = f"choose {SHIPPED} or {_WHOLE} with --languages" if languages else f"choose {names}"
        raise SettingsError(f"{name} does not come with st_paragram; {rule}")
    return _WHOLE, ["en", others[name]]


def _card_of_languages(card: str, others: set[str], text: str) -> str:
    """Return the card without the other languages in its metadata, and with `text` at its
    beginning.
    """
    head, end, body = card.partition("\n---\n")
    kept = [line for line in head.split("\n") if line.removeprefix("- ") not in others]
    return "\n".join(kept) + end + text + body
