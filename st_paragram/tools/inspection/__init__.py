"""Inspect a pair store: numbers, text and a picture."""
