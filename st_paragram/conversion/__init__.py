"""Import of checkpoints and published weights."""
