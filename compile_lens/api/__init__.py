"""Public functions."""
