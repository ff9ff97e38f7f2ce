"""Which texts help: short trainings with and without each of them, and a mixture with a weight for each."""
