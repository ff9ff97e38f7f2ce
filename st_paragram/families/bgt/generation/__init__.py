"""Sentences written by generative models: beam search, what it writes out of which sentences, and measures of it."""
