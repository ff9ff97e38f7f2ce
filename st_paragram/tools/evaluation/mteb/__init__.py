"""Models and data of this package for the mteb package."""
