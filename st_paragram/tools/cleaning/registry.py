"""The filters and repairs by name; each is imported when it is asked for."""

from __future__ import annotations

import importlib
from dataclasses import fields

from st_paragram.tools.cleaning.base import RowStep

STEPS = {
    "length": "st_paragram.tools.cleaning.length:Length",
    "ratio": "st_paragram.tools.cleaning.ratio:Ratio",
    "copied": "st_paragram.tools.cleaning.copied:Copied",
    "script": "st_paragram.tools.cleaning.script:Script",
    "language": "st_paragram.tools.cleaning.language:Language",
    "markup": "st_paragram.tools.cleaning.markup:Markup",
    "test_sets": "st_paragram.tools.cleaning.test_sets:KnownTestSentences",
    "overlap": "st_paragram.tools.cleaning.overlap:Overlap",
    "paraphrase_score": "st_paragram.tools.cleaning.paraphrase_score:ParaphraseScore",
    "label": "st_paragram.tools.cleaning.label:Label",
    "repair_encoding": "st_paragram.tools.cleaning.repair_encoding:RepairEncoding",
}

LANGUAGES = "languages"
"""A field of steps that is not an option: the languages of the rows, given when a step is made."""


def step_class(name: str) -> type[RowStep]:
    """The class of a filter or repair.

    Raises:
        KeyError: There is none of this name.
    """
    module, _, attribute = STEPS[name].partition(":")
    found: type[RowStep] = getattr(importlib.import_module(module), attribute)
    return found


def needs_languages(cls: type[RowStep]) -> bool:
    """Whether a step must know the languages of the rows."""
    return any(field.name == LANGUAGES for field in fields(cls))  # type: ignore[arg-type]


def option_names(cls: type) -> dict[str, bool]:
    """The options of a class made by `options`, in order, and whether each must be given."""
    described = cls.__pydantic_fields__  # type: ignore[attr-defined]
    return {name: field.is_required() for name, field in described.items() if name != LANGUAGES}
