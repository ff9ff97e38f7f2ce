"""Removal of exact and near-duplicates from a text or a parallel text."""
