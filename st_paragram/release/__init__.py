"""A family of models, trained, scored and packed from one description."""
