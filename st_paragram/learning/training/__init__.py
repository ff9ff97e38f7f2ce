"""Training runs: trainers on pair stores, objectives, settings, checkpoints."""
