"""Corpora by name: where they are, under which licence they stand, and how to fetch them."""
