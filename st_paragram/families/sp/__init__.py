"""SP, the parent of P-SP: BiLSTM encoders and ParaNMT (ACL 2019)."""
