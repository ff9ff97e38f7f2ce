"""Losses, one per file."""
