"""What stands above the report's sections, and what people wrote for them by hand."""

from __future__ import annotations

import re
from pathlib import Path

from st_paragram.errors import EvaluationError

_ABOUT = """\
# Results

This page has every score that was measured on one family of models: \
how well they follow grades of similarity, find translations and mine parallel text.
"""
_READING = """\
How to read the tables:

- Each section has a heading that names the test and its protocol, that is, what exactly is computed. \
[Evaluation](../../../docs/evaluation.md) explains the tests and the protocols.
- STS (semantic textual similarity) are sets of sentence pairs that people graded.
  The score is the correlation of the grades with the model's cosines: \
Pearson's, or Spearman's, which looks at the order alone.
- Figures are shares or correlations times 100. "-" means that something was not measured. \
"constant" means that all scores were alike, so that there is no correlation.
- Rows marked (published) are the papers' own figures, measured with their models and their data.
  All other figures were made by the commands beneath their tables (absolute paths are cut to their last component).
- *SMT* is a part of STS 2013 that may not be passed on."""
_WITHOUT_SMT = " Our figures are without it."


def introduction(note: str, without_smt: bool) -> str:
    """The title, what the page is about, and how to read it.

    Args:
        note: of the models of this page; may be empty.
        without_smt: our averages of STS lack the set 2013/SMT.
    """
    above = _ABOUT + (f"{note}\n" if note else "")
    return f"{above}\n{_READING}{_WITHOUT_SMT if without_smt else ''}\n"


def read_notes(path: str | Path) -> dict[str, str]:
    """Title of a section -> Markdown to stand on top of it; what is above the first heading has the title "".

    Raises:
        EvaluationError: the file cannot be read, or has a heading twice.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise EvaluationError(f"{path}: no notes can be read here ({error}); give a Markdown file in UTF-8") from error
    above, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    titles = [part.partition("\n")[0].strip() for part in parts]
    if twice := [title for title in titles if titles.count(title) > 1]:
        raise EvaluationError(f"{path}: the heading {twice[0]!r} occurs more than once; put its notes under one")
    bodies = (part.partition("\n")[2].strip() for part in parts)
    return {"": above.strip()} | dict(zip(titles, bodies, strict=True))
