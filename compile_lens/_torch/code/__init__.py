"""The code that Inductor generated, read as text, and its assembly."""
