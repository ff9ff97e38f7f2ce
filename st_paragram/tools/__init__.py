"""Tools that use an encoder or parallel text. Nothing here needs torch."""
