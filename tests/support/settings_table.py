"""Tables of settings, as they are in the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo

from st_paragram.core.formatting import markdown_table
from st_paragram.core.settings import (
    _choices,
    _default,
    _in_words,
    _kinds,
    _options,
    described_fields,
)

KINDS = {bool: "yes or no", int: "whole number", float: "number", Path: "path", str: "text"}
LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def table(cls: Any) -> str:
    """Format a class of settings as a Markdown table."""
    rows = []
    for name, field in described_fields(cls).items():
        option = _options(name, field)[0]
        default = "must be given" if field.is_required() else _in_words(_default(field))
        rows.append([f"`{name}`", f"`{option}`", default, allowed(field), str(field.description)])
    return markdown_table(["setting", "option", "default", "allowed", "what it is"], rows, left=5)


def allowed(field: FieldInfo) -> str:
    """Describe the allowed values of a field."""
    choices = _choices(field)
    if choices:
        return ", ".join(choices)
    limits = []
    for constraint in field.metadata:
        for sign, words in LIMITS.items():
            limit = getattr(constraint, sign, None)
            if limit is not None:
                limits.append(f"{words} {_in_words(limit)}")
    kinds = " or ".join(KINDS[kind] for kind in _kinds(field))
    return ", ".join(part for part in (kinds, " and ".join(limits)) if part)
