"""Tokenizers: their base class, their kinds, and their conversion to the `tokenizers` library."""
