"""Corpora by name: where they are, their licenses, and how to fetch them."""
