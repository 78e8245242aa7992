"""Observers of a whole program: they call what they wrap, and note what it did; nothing of a compile is changed."""
