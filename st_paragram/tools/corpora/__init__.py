"""Corpora by name: their addresses and licenses, and downloads."""
