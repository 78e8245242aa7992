"""Diff of two captures, matched by structure and never by name or number: the cause, then its effects."""
