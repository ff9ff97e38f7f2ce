"""Texts to embeddings without torch."""
