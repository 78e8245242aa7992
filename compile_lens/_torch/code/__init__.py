"""The code that Inductor wrote, read as text, and what compilers make of it."""
