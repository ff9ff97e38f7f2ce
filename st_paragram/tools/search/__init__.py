"""Semantic search in a text or a search index."""
