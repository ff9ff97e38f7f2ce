"""`st-paragram get`: a model that comes with the package, or some of its languages, as a directory for any reader."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from st_paragram.core.encoding.directory import check_free
from st_paragram.core.encoding.find import SHIPPED, SHIPPED_MODELS, shipped_folder
from st_paragram.core.words import listed
from st_paragram.errors import SettingsError

DESCRIPTION = (
    f"Write {' or '.join(SHIPPED_MODELS)}, the models of eight languages that come with st_paragram, to a directory "
    "that SentenceTransformer opens, with or without st_paragram. p-sp-es is p-sp-base with the pieces of English and "
    "Spanish alone: smaller, and texts of these languages keep their embeddings. Nothing is downloaded or trained."
)
EPILOG = f"""\
  st-paragram get p-sp-es
  python -c "from sentence_transformers import SentenceTransformer as S; print(S('p-sp-es').encode(['hola']).shape)"
  st-paragram get {SHIPPED} --languages en es tr --output small

Where st_paragram is installed, `st_paragram.load("{SHIPPED}")` and `--model {SHIPPED}` need no such directory.
"""

_WHOLE = "p-sp-base"  # what p-sp-es is cut out of
_CUT = """
# {name}

{whole} for {languages} alone, made by `st-paragram get`: it has the {rows:,} of {all_rows:,} pieces that occur in
training text of these languages. Their texts have the same embeddings as with {whole}, but for rare pieces.

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
    name = f"{', '.join(SHIPPED_MODELS)}, or p-sp-LANG for English and another of their languages"
    parser.add_argument("name", metavar="NAME", help=f"model to write: {name}")
    parser.add_argument("--languages", nargs="+", metavar="LANG", help="keep these languages alone, such as en es tr")
    parser.add_argument("--output", metavar="DIR", help="output directory (default: its name)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing model directory")


def run(arguments: argparse.Namespace) -> int:
    """Write the directory; returns the exit status."""
    from st_paragram.conversion.languages import cut, read_languages
    from st_paragram.core.encoding.encoder import Encoder
    from st_paragram.core.encoding.record import training_text
    from st_paragram.core.encoding.table import for_any_reader

    output = arguments.output or arguments.name
    check_free(output, arguments.overwrite)
    name, languages = _chosen(arguments.name, arguments.languages, list(read_languages(shipped_folder(_WHOLE))))
    folder = shipped_folder(name)
    encoder, card = Encoder(folder), (folder / "README.md").read_text(encoding="utf-8")
    if languages:
        rows = len(encoder.tokenizer)
        encoder = Encoder(cut(encoder.model, folder, languages))
        others = set(read_languages(folder)) - set(languages)
        about = {"whole": name, "languages": listed(languages), "rows": len(encoder.tokenizer), "all_rows": rows}
        card = _card_of_languages(card, others, _CUT.format(name=Path(output).name, **about))
    dtype = for_any_reader(encoder.model.table.kind)
    encoder.save(output, card, arguments.overwrite, dtype, training=training_text(folder))
    size = f"{len(encoder.tokenizer):,} pieces, {encoder.dimension} components"
    print(f"{output}: {size}; its README.md is the model card", file=sys.stderr)
    return 0


def _chosen(name: str, languages: Sequence[str] | None, known: Sequence[str]) -> tuple[str, Sequence[str] | None]:
    """The model that comes with the package, and the languages to keep, for a name such as p-sp-es, too."""
    if name in SHIPPED_MODELS:
        return name, languages
    others = {f"p-sp-{language}": language for language in known if language != "en"}
    if name not in others or languages:
        names = ", ".join((*SHIPPED_MODELS, *others))
        rule = f"choose {SHIPPED} or {_WHOLE} with --languages" if languages else f"choose {names}"
        raise SettingsError(f"{name} does not come with st_paragram; {rule}")
    return _WHOLE, ["en", others[name]]


def _card_of_languages(card: str, others: set[str], text: str) -> str:
    """The card without other languages in its metadata, and a text before its own."""
    head, end, body = card.partition("\n---\n")
    kept = [line for line in head.split("\n") if line.removeprefix("- ") not in others]
    return "\n".join(kept) + end + text + body
