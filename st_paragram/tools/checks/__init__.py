"""Checks of parallel text before training, which warn of likely mistakes."""
