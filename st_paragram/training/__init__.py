"""Mega-batch training."""
