"""Training runs: trainers on pair stores, settings, checkpoints."""
