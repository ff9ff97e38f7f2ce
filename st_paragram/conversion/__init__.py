"""Import of models: the authors' checkpoints and published weights; models cut to some languages."""
