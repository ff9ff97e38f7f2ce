"""Families of models, one folder each; `core.families` finds them by name."""
