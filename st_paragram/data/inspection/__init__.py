"""Look at a pair store: numbers, text and a picture."""
