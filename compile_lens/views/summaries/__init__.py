"""Summaries: what a reader needs first of a capture, a program or a comparison, and their short texts."""
