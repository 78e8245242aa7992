"""Observers of a whole program. They call the functions that they wrap, record the effect, and change no compile."""
