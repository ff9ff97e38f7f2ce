"""Checks of parallel text before a training: what looks like a mistake is reported in a line."""
