"""A page in the browser that shows what a model does."""
