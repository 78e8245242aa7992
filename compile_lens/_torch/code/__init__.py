"""Inductor's generated code, read as text, and its assembly."""
