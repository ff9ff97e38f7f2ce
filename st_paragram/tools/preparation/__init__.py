"""Preparation: from parallel text to a pair store."""
