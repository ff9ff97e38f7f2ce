"""What tests share: small data, a local HTTP server, plain references."""
