"""Corpora by name: where they are, their licences, and how to fetch them."""
