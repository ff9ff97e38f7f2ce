"""Bitext mining: find sentences that translate each other."""
