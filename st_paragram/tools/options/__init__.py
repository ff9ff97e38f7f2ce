"""Command-line options shared by several commands."""
