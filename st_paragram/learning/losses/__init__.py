"""Losses: one a file."""
