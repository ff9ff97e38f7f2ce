"""Finding sentences that translate each other."""
