"""Vectors in fewer bytes, and in shards on disk."""
