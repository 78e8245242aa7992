"""Observers of a whole program: they call what they wrap, and record its effect; a compile is not changed."""
