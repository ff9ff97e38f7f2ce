"""Objectives: which loss a model is trained with, and by which trainer; one a file."""
