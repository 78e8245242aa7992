"""Summaries: the most important facts of a capture, a program or a comparison, and their short texts."""
