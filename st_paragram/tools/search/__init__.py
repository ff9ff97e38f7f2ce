"""Nearest neighbors of embeddings, exactly or through an index, in memory or from disk."""
