"""Model directories of averaging models, and the encoder that reads them without torch."""
