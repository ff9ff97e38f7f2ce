"""Import of checkpoints and published weights, and models cut to some languages."""
