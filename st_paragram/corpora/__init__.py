"""Corpora by name: where they are, under which licence, and how to fetch them."""
