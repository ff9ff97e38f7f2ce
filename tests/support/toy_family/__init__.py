"""A family of models in one folder, as somebody else's package would have it."""
