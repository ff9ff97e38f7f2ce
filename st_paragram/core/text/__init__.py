"""Parallel text and pair stores: what is read, and what training reads."""
