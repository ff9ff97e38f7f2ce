"""Sentence alignment of documents, and mining within pairs of documents."""
