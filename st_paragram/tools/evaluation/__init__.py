"""Scores of a model on data with known answers."""
