"""Families of models, one folder each; `runs.families` has the table, `loading` opens any model."""
