"""Measures: pure functions of a record. Nothing here imports torch, draws, or changes what it is given."""
