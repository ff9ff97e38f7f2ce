"""Built-in parallel text: a phrase grammar in eight languages and held-out sentences, all offline."""
