"""Training runs: their description, data, development data, and the families they train."""
