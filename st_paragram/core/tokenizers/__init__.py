"""Tokenizers: their common interface, their kinds, and their conversion to the `tokenizers`
library.
"""
