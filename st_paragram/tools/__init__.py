"""What people do with an encoder and with parallel text. Nothing here needs torch."""
