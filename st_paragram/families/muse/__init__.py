"""mUSE: dual encoders trained on several tasks (ACL 2020)."""
